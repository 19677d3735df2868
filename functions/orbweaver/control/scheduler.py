"""Store schedules of recurring crawls, and start the runs.

A schedule has the name of its crawl and contains the whole definition. So no file is read when a
run starts. The id of a run is made from the name and the due time. So a repeated event starts no
second run, and completes an interrupted start.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from orbweaver.control import definition
from orbweaver.control.crawl_control import Control, ControlError
from orbweaver.control.crawl_spec import CrawlSpec, Overlap
from orbweaver.control.schedule import (
    NAME_CHARS_MAX,
    Scheduled,
    ScheduleError,
    firing_input,
    firing_of,
    recurrence_in,
    recurrence_of,
    when_typed,
    window_warning,
)
from orbweaver.control.spec_checks import crawl_of
from orbweaver.model.crawl import run_id
from orbweaver.model.metrics import Metric
from orbweaver.model.value import value_class

if TYPE_CHECKING:
    from orbweaver.model.ports import Clock, Metrics


class Schedules(Protocol):
    """Stores schedules. Each schedule contains the content of its events."""

    async def put(self, scheduled: Scheduled) -> None: ...

    async def list(self) -> tuple[Scheduled, ...]: ...

    async def remove(self, name: str) -> bool:
        """Remove a schedule. Returns False if no schedule has this name."""


NEXT_MAX = 3

_log = logging.getLogger(__name__)


@value_class
class Coming:
    """A schedule and the next times when it is due.

    The times are empty if the schedule is paused or has an unknown expression. `when` is
    the interval or cron expression as the user typed it.
    """

    scheduled: Scheduled
    next_ms: tuple[int, ...]
    when: str
    warning: str | None = None


@value_class
class Timetable:
    """Adds, lists, pauses, resumes and removes schedules."""

    schedules: Schedules
    control: Control
    clock: Clock

    async def put(self, plan: CrawlSpec) -> Coming:
        """Add or replace the schedule of a plan. Raises PlanError and ControlError."""
        now_ms = self.clock.now_ms()
        crawl = crawl_of(plan, now_ms)
        recurrence = recurrence_in(plan)
        if recurrence is None:
            raise ControlError(
                "the definition does not say when: give every or cron in its table [schedule]"
            )
        self.control.check(crawl)
        if len(crawl.name) > NAME_CHARS_MAX:
            fix = f"give one of at most {NAME_CHARS_MAX} characters"
            raise ControlError(f"the name {crawl.name!r} is too long for a schedule: {fix}")
        document = definition.document_of(replace(plan, name=crawl.name))
        try:
            told = firing_input(document)
        except ScheduleError as error:
            raise ControlError(str(error)) from error
        scheduled = Scheduled(
            name=crawl.name,
            expression=recurrence.expression,
            timezone=recurrence.timezone,
            first_ms=recurrence.first_ms(now_ms),
            input=told,
        )
        coming = self._coming(scheduled, now_ms)
        if not coming.next_ms:
            raise ControlError(f"{recurrence.expression} never comes: give a time that does")
        await self.schedules.put(scheduled)
        return coming

    async def list(self) -> tuple[Coming, ...]:
        now_ms = self.clock.now_ms()
        return tuple(self._coming(one, now_ms) for one in await self.schedules.list())

    async def remove(self, name: str) -> None:
        """Remove a schedule. Raises ControlError if it does not exist."""
        if not await self.schedules.remove(name):
            raise _unknown(name, await self.schedules.list())

    async def pause(self, name: str, *, paused: bool = True) -> Coming:
        """Pause or resume a schedule. Raises ControlError if it does not exist.

        Runs that were due during a pause are not started afterwards.
        """
        known = await self.schedules.list()
        scheduled = next((one for one in known if one.name == name), None)
        if scheduled is None:
            raise _unknown(name, known)
        if scheduled.paused is not paused:
            scheduled = replace(scheduled, paused=paused)
            await self.schedules.put(scheduled)
        return self._coming(scheduled, self.clock.now_ms())

    def _coming(self, scheduled: Scheduled, now_ms: int) -> Coming:
        recurrence = None if scheduled.paused else recurrence_of(scheduled)
        times = recurrence.firings_after(now_ms, scheduled.first_ms, NEXT_MAX) if recurrence else ()
        plan, when = _stored(scheduled)
        warning = None if plan is None else window_warning(plan, now_ms)
        return Coming(scheduled=scheduled, next_ms=times, when=when, warning=warning)


def _stored(scheduled: Scheduled) -> tuple[CrawlSpec | None, str]:
    try:
        document = json.loads(scheduled.input)["definition"]
        plan, when = definition.parse(document), when_typed(document)
    except (ValueError, KeyError, TypeError):  # written by another version or by hand
        return None, scheduled.expression
    return plan, when or scheduled.expression


def _unknown(name: str, known: Sequence[Scheduled]) -> ControlError:
    names = ", ".join(one.name for one in known) or "none"
    return ControlError(f"there is no schedule {name[:100]!r}; those that there are: {names}")


@value_class
class Starter:
    """Starts the run of a schedule when an event arrives."""

    control: Control
    clock: Clock
    metrics: Metrics

    async def fire(self, event: Mapping[str, Any]) -> dict[str, str]:
        """Start the run of an event, or skip it if another run of its name has not ended.

        Returns the id of the run. If the run is skipped, also returns the id of the other run. An
        error cannot be fixed by a retry, so the event then goes to the queue of failed calls.
        """
        firing = firing_of(event, self.clock.now_ms())
        plan = definition.parse(firing.definition)
        name = crawl_of(plan, firing.due_ms).name
        run = run_id(name, firing.due_ms)
        if plan.overlap is Overlap.SKIP and (other := await self._in_the_way(name, run)):
            _log.warning("schedule.skipped", extra={"crawl": run, "running": other})
            self.metrics.add(Metric.SCHEDULES_SKIPPED, 1)
            return {"skipped": run, "running": other}
        crawl = await self.control.start(replace(plan, id=run), goes_on=False)
        _log.info("schedule.started", extra={"crawl": crawl.id})
        self.metrics.add(Metric.SCHEDULES_STARTED, 1)
        return {"crawl": crawl.id}

    async def _in_the_way(self, name: str, run: str) -> str | None:
        """Return the id of an unfinished run of `name`. None: there is none, or `run` exists."""
        crawls = [crawl for crawl in await self.control.crawls() if crawl.name == name]
        if any(crawl.id == run for crawl in crawls):
            return None
        return next((crawl.id for crawl in crawls if crawl.finished_at_ms is None), None)
