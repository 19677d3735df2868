"""State of the whole store or stack: queues, workers, alarms, dollars by day, schedules.

All dollars of a run count for the day when the run started, because counters have no times. Only
the newest runs are included.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from orbweaver.api.problems import Refused
from orbweaver.budget.prices import spent
from orbweaver.control.definition import parse
from orbweaver.control.schedule import day_in, zone_or_utc
from orbweaver.control.scheduler import Coming, Timetable
from orbweaver.frontier.retrying import all_of
from orbweaver.frontier.yield_drop import pages_of
from orbweaver.model.errors import ControlError
from orbweaver.model.value import value_class

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import tzinfo

    from orbweaver.app.ports import PortSet
    from orbweaver.console.runs import ConsolePlace
    from orbweaver.control.crawl_control import Control
    from orbweaver.model.crawl import Counts, Crawl

RUNS_READ, READ_AT_ONCE, DAYS_SHOWN = 100, 16, 14
SLOW_MS = 60_000


@value_class
class _Reading:
    """Cached alarms, and the newest runs with their counters."""

    at_ms: int
    alarms: Any
    # Start of each run in ms since the epoch, and its counters.
    runs: list[tuple[int, Counts]]
    runs_more: int


@dataclass(slots=True, kw_only=True)
class GlobalStatus:
    """Reads queues, workers, alarms, sums and schedules. Caches alarms and sums for a minute."""

    ports: PortSet
    control: Control
    where: ConsolePlace
    _slow: _Reading | None = field(default=None)

    async def read(self, zone: str | None = None) -> dict[str, Any]:
        """Return queues, workers, alarms, and dollars by the days of a time zone."""
        depths = await self.where.depths()
        return {
            "where": self.where.title,
            "billed": self.where.billed,
            "queues": None if depths is None else asdict(depths),
            "workers": await self.where.workers(),
            "idle": await self.where.idle_workers(),
            **await self._read_seldom(zone),
        }

    async def switch(self, *, on: bool) -> dict[str, Any]:
        """Switch all workers of a stack on or off. The new states become visible after a while."""
        states = await self.where.switch(on=on)
        if states is None:
            raise ControlError("a store has no workers to switch: end the command that serves it")
        return {"workers": states}

    async def _read_seldom(self, zone: str | None) -> dict[str, Any]:
        try:
            clock = zone_or_utc(zone)
        except ValueError as error:
            raise Refused(400, f"zone: {error}") from error
        now_ms = self.ports.clock.now_ms()
        if self._slow is None or now_ms - self._slow.at_ms >= SLOW_MS:
            self._slow = await self._reading(now_ms)
        spending = {"days": _days(self._slow.runs, clock), "runs_more": self._slow.runs_more}
        return {"spending": spending, "alarms": self._slow.alarms}

    async def _reading(self, now_ms: int) -> _Reading:
        crawls = await self.control.crawls()
        newest = crawls[:RUNS_READ]
        counters = await all_of(map(self.ports.crawls.counters, newest), READ_AT_ONCE)
        runs = [
            (crawl.started_at_ms, read.total) for crawl, read in zip(newest, counters, strict=True)
        ]
        alarms = await self.where.alarms()
        more = len(crawls) - len(newest)
        return _Reading(at_ms=now_ms, alarms=alarms, runs=runs, runs_more=more)

    # --- schedules --------------------------------------------------------------------------------

    @property
    def _timetable(self) -> Timetable:
        ports = self.ports
        return Timetable(schedules=ports.schedules, control=self.control, clock=ports.clock)

    async def schedules(self) -> dict[str, Any]:
        known = await self._timetable.list()
        runs = {crawl.name: crawl for crawl in reversed(await self.control.crawls())}
        last = [runs.get(coming.scheduled.name) for coming in known]
        read = await all_of((self._last(run) for run in last), READ_AT_ONCE)
        return {
            "schedules": [
                {**schedule_row(coming), "last": one}
                for coming, one in zip(known, read, strict=True)
            ]
        }

    async def _last(self, run: Crawl | None) -> dict[str, Any] | None:
        if run is None:
            return None
        pages = pages_of((await self.ports.crawls.counters(run)).total)
        return {
            "id": run.id,
            "state": str(run.state),
            "started_ms": run.started_at_ms,
            "pages": pages,
        }

    async def recur(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Add or replace the schedule of a definition. Raises DefinitionError and ControlError."""
        return schedule_row(await self._timetable.put(await asyncio.to_thread(parse, document)))

    async def pause(self, name: str, *, paused: bool) -> dict[str, Any]:
        return schedule_row(await self._timetable.pause(name, paused=paused))

    async def stop_recurring(self, name: str) -> dict[str, Any]:
        """Remove a schedule. Runs that it started continue."""
        await self._timetable.remove(name)
        return {"removed": name}


def schedule_row(coming: Coming) -> dict[str, Any]:
    """Describe a schedule for the browser, without its definition, which can contain secrets."""
    scheduled = coming.scheduled
    return {
        "name": scheduled.name,
        "when": coming.when,
        "expression": scheduled.expression,
        "timezone": scheduled.timezone or "UTC",
        "paused": scheduled.paused,
        "warning": coming.warning,
        "next_ms": list(coming.next_ms),
    }


def _days(runs: list[tuple[int, Counts]], zone: tzinfo) -> list[dict[str, Any]]:
    """Sum runs, pages and dollars by day of start, newest day first."""
    days: defaultdict[str, dict[str, float]] = defaultdict(
        lambda: {"runs": 0, "pages": 0, "usd": 0.0}
    )
    for started_at_ms, total in runs:
        day = days[day_in(started_at_ms, zone)]
        day["runs"] += 1
        day["pages"] += pages_of(total)
        day["usd"] += spent(total) or 0.0
    rows = sorted(days.items(), reverse=True)[:DAYS_SHOWN]
    return [{"day": day, **sums} for day, sums in rows]
