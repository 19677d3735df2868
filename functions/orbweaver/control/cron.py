"""Parse cron expressions of EventBridge Scheduler, with six fields, and find their next times.

The fields are minutes, hours, day-of-month, month, day-of-week and year. A time that the clock
skips in spring does not occur. A time that the clock repeats in autumn occurs once. Source:
docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html.

Libraries support only some of the 23 expressions in the tests. cronsim 2.8 supports 15 (no `15W`,
no year), and croniter 7.0 supports 14 (no `LW`, no `6L`). Their errors do not name the invalid
field.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from orbweaver.model.value import value_class

CHARS_MAX = 200
# Maximum number of days to search for the next time. The calendar repeats after 28 years (until
# 2100).
DAYS_AHEAD_MAX = 28 * 366
DAY_MINUTES = 24 * 60
FRIDAY, SATURDAY, SUNDAY = 4, 5, 6  # as datetime counts
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
# A field can have `*` (any), `,` (several), `-` (a range) and `/` (a step). Exactly one of the two
# fields for days is `?`, so only the other field decides on the day.
FIELDS = (
    ("minutes", 0, 59, ()),
    ("hours", 0, 23, ()),
    ("day-of-month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day-of-week", 1, 7, _DAYS),
    ("year", 1970, 2199, ()),
)
DAY_OF_MONTH, DAY_OF_WEEK = 2, 4


class CronError(ValueError):
    """The text is no cron expression. The message names the invalid field and the fix."""


@value_class
class Cron:
    """A parsed expression: the allowed values of each field."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    months: frozenset[int]
    years: frozenset[int]
    admits: Callable[[date], bool]

    def gap_minutes(self) -> int:
        """Return the shortest time between two occurrences on one day or on consecutive days."""
        moments = sorted(hour * 60 + minute for hour in self.hours for minute in self.minutes)
        pairs = zip(moments, [*moments[1:], moments[0] + DAY_MINUTES], strict=True)
        return min(later - earlier for earlier, later in pairs)

    def can_match(self) -> bool:
        return any(
            self.admits(date(year, month, day))
            for year in sorted(self.years)
            for month in sorted(self.months)
            for day in range(1, monthrange(year, month)[1] + 1)
        )

    def has_passed(self, at_ms: int) -> bool:
        """Whether the last year of the expression is over in all time zones."""
        year = datetime.fromtimestamp(at_ms / 1000, tz=UTC) - timedelta(days=1)
        return max(self.years) < year.year

    def firings_after(self, at_ms: int, zone: ZoneInfo | None) -> Iterator[int]:
        """Yield the times after `at_ms`, in ms since the epoch. `zone` None: UTC."""
        clock = zone or UTC
        at = datetime.fromtimestamp(at_ms / 1000, tz=UTC)
        first = at.astimezone(clock).date()
        last_ms = at_ms
        for ahead in range(DAYS_AHEAD_MAX):
            day = first + timedelta(days=ahead)
            if day.year > max(self.years):
                return
            for hour, minute in self._times(day):
                moment = datetime.combine(day, time(hour, minute), tzinfo=clock)
                moment_ms = round(moment.timestamp() * 1000)
                back = datetime.fromtimestamp(moment.timestamp(), tz=clock)
                if moment_ms > last_ms and back.replace(tzinfo=None) == moment.replace(tzinfo=None):
                    last_ms = moment_ms
                    yield moment_ms

    def _times(self, day: date) -> Iterator[tuple[int, int]]:
        if day.year in self.years and day.month in self.months and self.admits(day):
            yield from ((hour, minute) for hour in self.hours for minute in self.minutes)


def parse(text: str) -> Cron:
    """Parse an expression of six fields. Raises CronError."""
    fields = text.upper().split()
    if len(text) > CHARS_MAX or len(fields) != len(FIELDS):
        names = " ".join(name for name, *_ in FIELDS)
        raise CronError(f"it has {len(fields)} fields: give six, {names}, like 0 3 * * ? *")
    of_month, of_week = fields[DAY_OF_MONTH], fields[DAY_OF_WEEK]
    if (of_month == "?") is (of_week == "?"):
        raise CronError("give ? in one of day-of-month and day-of-week, and not in both")
    plain = [
        _plain(field, place)
        for place, field in enumerate(fields)
        if place not in (DAY_OF_MONTH, DAY_OF_WEEK)
    ]
    minutes, hours, months, years = plain
    return Cron(
        minutes=tuple(sorted(minutes)),
        hours=tuple(sorted(hours)),
        months=months,
        years=years,
        admits=_of_month(of_month) if of_week == "?" else _of_week(of_week),
    )


# --- fields -------------------------------------------------------------------------------------


def _plain(field: str, place: int) -> frozenset[int]:
    found: set[int] = set()
    for part in field.split(","):
        found |= _numbers(part, place)
    return frozenset(found)


def _numbers(part: str, place: int) -> set[int]:
    name, low, high, _ = FIELDS[place]
    match = re.fullmatch(r"(?:(\*)|(\w+)(?:-(\w+))?)(?:/([0-9]{1,4}))?", part, re.ASCII)
    if match is None:
        raise _unfit(part, place)
    star, first_text, last_text, step_text = match.groups()
    first = low if star else _number(first_text, place)
    last = _number(last_text, place) if last_text else first
    if star or (step_text and not last_text):
        last = high
    step = int(step_text) if step_text else 1
    if first <= last and step:
        return set(range(first, last + 1, step))
    raise CronError(f"{part[:40]!r} in the field {name} names nothing")


def _number(text: str, place: int) -> int:
    _, low, high, names = FIELDS[place]
    if text in names:
        return names.index(text) + low
    if text.isdigit() and len(text) <= len(str(high)) and low <= int(text) <= high:
        return int(text)
    raise _unfit(text, place)


def _unfit(text: str, place: int) -> CronError:
    name, low, high, names = FIELDS[place]
    named = f" or {names[0]} to {names[-1]}" if names else ""
    return CronError(f"{text[:40]!r} does not fit the field {name}: give {low} to {high}{named}")


def _of_month(field: str) -> Callable[[date], bool]:
    """Parse the field day-of-month.

    `L` is the last day, `LW` the last working day, `15W` the working day nearest to the 15th.
    """
    if field == "L":
        return lambda day: day.day == _last(day)
    if field == "LW":
        return lambda day: day.day == _working(day, _last(day))
    if nearest := re.fullmatch(r"([0-9]{1,2})W", field):
        wanted = _number(nearest[1], DAY_OF_MONTH)
        return lambda day: wanted <= _last(day) and day.day == _working(day, wanted)
    numbers = _plain(field, DAY_OF_MONTH)
    return lambda day: day.day in numbers


def _of_week(field: str) -> Callable[[date], bool]:
    """Parse the field day-of-week, in which Sunday is 1.

    `6L` is the last Friday of a month, `6#2` the second Friday.
    """
    if field == "L":  # of the week
        return lambda day: day.weekday() == SATURDAY
    if last := re.fullmatch(r"([1-7]|[A-Z]{3})L", field):
        wanted = _number(last[1], DAY_OF_WEEK)
        return lambda day: _weekday(day) == wanted and day.day + 7 > _last(day)
    if nth := re.fullmatch(r"([1-7]|[A-Z]{3})#([1-5])", field):
        wanted, number = _number(nth[1], DAY_OF_WEEK), int(nth[2])
        return lambda day: _weekday(day) == wanted and (day.day - 1) // 7 + 1 == number
    numbers = _plain(field, DAY_OF_WEEK)
    return lambda day: _weekday(day) in numbers


# --- days ---------------------------------------------------------------------------------------


def _weekday(day: date) -> int:
    """Return the number of a day's weekday as in cron: Sunday is 1."""
    return (day.weekday() + 1) % 7 + 1


def _last(day: date) -> int:
    return monthrange(day.year, day.month)[1]


def _working(day: date, wanted: int) -> int:
    """Return the working day of the same month that is nearest to a day."""
    match day.replace(day=wanted).weekday():
        case weekday if weekday <= FRIDAY:
            return wanted
        case weekday if weekday == SATURDAY:
            return wanted - 1 if wanted > 1 else wanted + 2
        case _:
            return wanted + 1 if wanted < _last(day) else wanted - 2
