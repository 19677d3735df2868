"""Define schedules of crawls: intervals, cron expressions, and the event that starts a run.

An event (firing) contains the whole definition and the time when it is due. So a repeated event is
recognised, and an edited file has no effect until the schedule is stored again. Source:
docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html,
…/managing-schedule-context-attributes.html.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, tzinfo
from itertools import count, islice, pairwise
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from orbweaver.control.crawl_spec import CrawlSpec
from orbweaver.control.cron import CronError, parse
from orbweaver.model.amounts import span
from orbweaver.model.value import value_class

# Minimum interval in minutes. Starting and ending a run takes this long.
EVERY_MINUTES_MIN = 5
EVERY_MINUTES_MAX = 366 * 24 * 60
NAME_CHARS_MAX = 64
INTERVALS_LOOKED_AT = 15
# Maximum size of an event: AWS limits asynchronous invocations to it.
INPUT_BYTES_MAX = 256 * 1024
MINUTE_MS = 60_000
DUE = "<aws.scheduler.scheduled-time>"
UNITS = (("day", 24 * 60), ("hour", 60), ("minute", 1))
EVERY = re.compile(r"([0-9]{1,6}) ?(m|min|minutes?|h|hours?|d|days?)", re.ASCII)
RATE = re.compile(r"rate\(([0-9]{1,6}) (minute|hour|day)s?\)", re.ASCII)
ZONE = re.compile(r"[A-Za-z][\w+-]*(/[\w+-]+){0,2}", re.ASCII)


class ScheduleError(ValueError):
    """The schedule cannot be stored or parsed, or belongs to another stack.

    The message contains the reason.
    """


@value_class
class Recurrence:
    """When a schedule is due: at a rate, or by a cron expression in a time zone."""

    every_minutes: int | None = None
    cron: str | None = None
    timezone: str | None = None

    @property
    def expression(self) -> str:
        """Expression in the format of EventBridge Scheduler."""
        if self.cron is not None:
            return f"cron({self.cron})"
        minutes = self.every_minutes or EVERY_MINUTES_MIN
        unit, size = next((unit, size) for unit, size in UNITS if minutes % size == 0)
        number = minutes // size
        return f"rate({number} {unit}{'' if number == 1 else 's'})"

    def first_ms(self, at_ms: int) -> int | None:
        """Return the first time of a rate: one interval after `at_ms`. Cron has no first time."""
        return None if self.every_minutes is None else at_ms + self.every_minutes * MINUTE_MS

    def interval_ms(self, at_ms: int) -> int | None:
        """Return the shortest time in ms between the next firings. None: at most one is left."""
        times = self.firings_after(at_ms, self.first_ms(at_ms), INTERVALS_LOOKED_AT)
        return min((later - early for early, later in pairwise(times)), default=None)

    def firings_after(self, at_ms: int, first_ms: int | None, most: int) -> tuple[int, ...]:
        """Return at most `most` firings after `at_ms`. `first_ms` is the first firing of a rate."""
        if self.cron is not None:
            zone = zone_of(self.timezone) if self.timezone else None
            return tuple(islice(parse(self.cron).firings_after(at_ms, zone), most))
        if self.every_minutes is None or first_ms is None:
            return ()
        step_ms = self.every_minutes * MINUTE_MS
        begun = max(0, (at_ms - first_ms) // step_ms + 1)
        return tuple(islice(count(first_ms + begun * step_ms, step_ms), most))


@value_class
class Scheduled:
    """A stored schedule. `input` is the JSON of each event, with a placeholder for the due time."""

    name: str
    expression: str
    timezone: str | None
    first_ms: int | None
    input: str
    paused: bool = False


@value_class
class Firing:
    """One event of a schedule: the definition of the crawl, and the due time."""

    definition: Mapping[str, Any]
    due_ms: int


# --- reading ------------------------------------------------------------------------------------


def recurrence_in(plan: CrawlSpec) -> Recurrence | None:
    if plan.every is None and plan.cron is None:
        return None
    minutes = None if plan.every is None else _minutes(plan.every)
    return Recurrence(every_minutes=minutes, cron=plan.cron, timezone=plan.timezone)


def recurrence_of(scheduled: Scheduled) -> Recurrence | None:
    """Parse the expression of a stored schedule. None: its format is unknown."""
    if match := RATE.fullmatch(scheduled.expression):
        return Recurrence(every_minutes=int(match[1]) * dict(UNITS)[match[2]])
    fields = scheduled.expression.removeprefix("cron(").removesuffix(")")
    try:
        parse(fields)
    except CronError:
        return None
    return Recurrence(cron=fields, timezone=scheduled.timezone)


def problems_in(plan: CrawlSpec, now_ms: int | None = None) -> Iterator[tuple[str, str]]:
    """Yield the problems of a plan's schedule: the part of the plan, and a message with the fix.

    If `now_ms` is given, a schedule whose last time has passed is a problem.
    """
    if plan.every is not None:
        yield from (("every", problem) for problem in _of_every(plan.every))
    if plan.cron is not None and plan.every is not None:
        yield "cron", f"{plan.cron[:60]!r} and every are both given: give one of them"
    elif plan.cron is not None:
        yield from (("cron", problem) for problem in _of_cron(plan.cron, now_ms))
    if plan.timezone is not None:
        yield from (("timezone", problem) for problem in _of_zone(plan.timezone, plan.cron))
    if plan.name is not None and len(plan.name) > NAME_CHARS_MAX and recurrence_in(plan):
        fix = f"a crawl that recurs has a name of at most {NAME_CHARS_MAX} characters"
        yield "name", f"{plan.name[:100]!r} does not fit: {fix}"


def _of_every(every: str) -> Iterator[str]:
    minutes = _minutes(every)
    if minutes is None:
        yield f"{every[:60]!r} does not fit: give minutes, hours or days, like 30m, 6h or 1 day"
    elif not EVERY_MINUTES_MIN <= minutes <= EVERY_MINUTES_MAX:
        most = EVERY_MINUTES_MAX // 24 // 60
        yield f"{every[:60]!r} does not fit: give {EVERY_MINUTES_MIN} minutes to {most} days"


def _minutes(every: str) -> int | None:
    match = EVERY.fullmatch(every.strip().lower())
    if match is None:
        return None
    return int(match[1]) * next(minutes for unit, minutes in UNITS if unit[0] == match[2][0])


def _of_cron(cron: str, now_ms: int | None) -> Iterator[str]:
    try:
        read = parse(cron)
    except CronError as error:
        yield f"{cron[:60]!r} does not fit: {error}"
        return
    if not read.can_match():
        yield f"{cron[:60]!r} never comes: no day of the calendar is like that"
    elif now_ms is not None and read.has_passed(now_ms):
        yield f"{cron[:60]!r} never comes: its last year is {max(read.years)}, which is over"
    gap = read.gap_minutes()
    if gap < EVERY_MINUTES_MIN:
        fix = f"leave {EVERY_MINUTES_MIN} minutes between two times, and not {gap}"
        yield f"{cron[:60]!r} does not fit: {fix}"


def _of_zone(timezone: str, cron: str | None) -> Iterator[str]:
    if cron is None:
        yield f"{timezone[:60]!r} is for cron alone: leave it out, or give cron"
        return
    known = available_timezones() if not (ZONE.fullmatch(timezone) and zone_of(timezone)) else None
    if known:  # without a list of zones, AWS validates the zone
        by_lower = {name.lower(): name for name in known}
        near = difflib.get_close_matches(timezone[:60].lower(), by_lower, n=1)
        fix = f"did you mean {by_lower[near[0]]}?" if near else "give one like Europe/Berlin"
        yield f"{timezone[:60]!r} is no time zone: {fix}"


def zone_of(timezone: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, OSError, ValueError):  # a folder of zones is an OSError
        return None


def window_warning(plan: CrawlSpec, now_ms: int) -> str | None:
    """Return a warning if the dedup window makes each run skip the pages of the run before.

    A run skips pages that were requested within the window before its start. So with a window as
    long as the interval, a run skips all pages of the previous run.
    """
    recurrence = recurrence_in(plan)
    interval_ms = None if recurrence is None else recurrence.interval_ms(now_ms)
    if interval_ms is None or not plan.window_s or plan.window_s * 1000 < interval_ms:
        return None
    interval, window = span(interval_ms // 1000), span(plan.window_s)
    return (
        f"a run skips pages requested within the window of {window}, and runs start every"
        f' {interval}: give dedup.window = "0s" to request all pages in each run'
    )


def when_typed(definition: Mapping[str, Any]) -> str | None:
    """Return a definition's interval or cron expression as the user typed it. None: it has none."""
    table = definition.get("schedule")
    if not isinstance(table, Mapping):
        return None
    for name, words in (("every", "every {}"), ("cron", "cron {}")):
        if isinstance(table.get(name), str):
            return words.format(table[name])
    return None


# --- firings ------------------------------------------------------------------------------------


def firing_input(definition: Mapping[str, Any]) -> str:
    """Return the JSON of a schedule's events. Raises ScheduleError if it is too large."""
    # `<` is escaped, so that AWS replaces only the placeholder of the due time.
    text = json.dumps(definition, separators=(",", ":")).replace("<", "\\u003c")
    told = f'{{"due":"{DUE}","definition":{text}}}'
    if len(told) > INPUT_BYTES_MAX:  # it is ASCII
        raise ScheduleError(
            f"the definition takes {len(told):,} bytes, and a schedule holds {INPUT_BYTES_MAX:,}:"
            " name a sitemap that lists the seeds instead of them"
        )
    return told


def firing_of(event: Mapping[str, Any], at_ms: int) -> Firing:
    """Parse an event that arrived at `at_ms`. Raises ScheduleError if it is invalid."""
    definition, due = event.get("definition"), event.get("due")
    if not isinstance(definition, Mapping) or not isinstance(due, str):
        raise ScheduleError("a firing has the fields definition and due")
    # Some emulators do not replace the placeholder. Then the minute of the arrival is the due time.
    if due == DUE:
        return Firing(definition=definition, due_ms=at_ms - at_ms % MINUTE_MS)
    try:
        moment = datetime.fromisoformat(due)
    except ValueError as error:
        raise ScheduleError(f"due is no time: {due[:60]!r}") from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return Firing(definition=definition, due_ms=round(moment.timestamp() * 1000))


def zone_or_utc(name: str | None) -> tzinfo:
    """Return a time zone, UTC by default. Raises ValueError for an unknown name."""
    if name is None:
        return UTC
    if (zone := zone_of(name)) is None:
        raise ValueError(f"{name[:60]!r} is no time zone: give one like Europe/Berlin")
    return zone


def day_in(at_ms: int, zone: tzinfo) -> str:
    return f"{datetime.fromtimestamp(at_ms / 1000, tz=zone):%Y-%m-%d}"
