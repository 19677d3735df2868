"""State of the whole store or stack: queues, workers, alarms, dollars by day, schedules.

A run's dollars count on the day of its start, because its counters have no times. Only the newest
runs are included.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from orbweaver.api.problems import Refused
from orbweaver.budget.prices import spent
from orbweaver.control.definition import parse
from orbweaver.control.scheduler import Coming, Timetable
from orbweaver.control.time_zone import day_in
from orbweaver.frontier.retrying import all_of
from orbweaver.frontier.yield_drop import pages_of
from orbweaver.model.errors import ControlError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orbweaver.app.ports import PortSet
    from orbweaver.console.runs import Where
    from orbweaver.control.crawl_control import Control
    from orbweaver.model.crawl import Crawl

RUNS_READ, READ_AT_ONCE, DAYS_SHOWN = 100, 16, 14
SLOW_MS, ZONES_MAX = 60_000, 10


@dataclass(slots=True, kw_only=True)
class Standing:
    """Reads state that belongs to no single crawl. Alarms and sums are cached for a minute."""

    ports: PortSet
    control: Control
    where: Where
    # Time and content of the reading, by time zone.
    _slow: dict[str | None, tuple[int, dict[str, Any]]] = field(default_factory=dict)

    async def read(self, zone: str | None = None) -> dict[str, Any]:
        """Return queues, workers, and dollars by the days of a time zone."""
        depths = await self.where.depths()
        return {
            "where": self.where.title,
            "billed": self.where.billed,
            "queues": depths,
            "workers": await self.where.workers(),
            "idle": await self.where.idle_workers(),
            **await self._read_seldom(zone),
        }

    async def switch(self, *, on: bool) -> dict[str, Any]:
        """Switch all workers of a stack on or off; return their previous states."""
        states = await self.where.switch(on=on)
        if states is None:
            raise ControlError("a store has no workers to switch: end the command that serves it")
        return {"workers": states}

    async def _read_seldom(self, zone: str | None) -> dict[str, Any]:
        now_ms = self.ports.clock.now_ms()
        known = self._slow.get(zone)
        if known is None or now_ms - known[0] >= SLOW_MS:
            read = {"spending": await self._sums(zone), "alarms": await self.where.alarms()}
            if len(self._slow) >= ZONES_MAX:
                self._slow.clear()
            known = self._slow[zone] = (now_ms, read)
        return known[1]

    async def _sums(self, zone: str | None) -> dict[str, Any]:
        try:
            day_in(0, zone)
        except ValueError as error:
            raise Refused(400, f"zone: {error}") from error
        crawls = await self.control.crawls()
        newest = crawls[:RUNS_READ]
        counters = await all_of(map(self.ports.crawls.counters, newest), READ_AT_ONCE)
        days: defaultdict[str, dict[str, float]] = defaultdict(
            lambda: {"runs": 0, "pages": 0, "usd": 0.0}
        )
        for crawl, read in zip(newest, counters, strict=True):
            day = days[day_in(crawl.started_at_ms, zone)]
            day["runs"] += 1
            day["pages"] += pages_of(read.total)
            day["usd"] += spent(read.total) or 0.0
        rows = [{"day": day, **sums} for day, sums in sorted(days.items(), reverse=True)]
        return {"days": rows[:DAYS_SHOWN], "runs_more": len(crawls) - len(newest)}

    # --- schedules --------------------------------------------------------------------------------

    @property
    def _timetable(self) -> Timetable:
        ports = self.ports
        return Timetable(schedules=ports.schedules, control=self.control, clock=ports.clock)

    async def schedules(self) -> dict[str, Any]:
        """List schedules with their next runs and their latest results."""
        known = await self._timetable.list()
        runs = {crawl.name: crawl for crawl in reversed(await self.control.crawls())}
        last = [runs.get(coming.scheduled.name) for coming in known]
        read = await all_of((self._last(run) for run in last), READ_AT_ONCE)
        return {
            "schedules": [
                {**told(coming), "last": one} for coming, one in zip(known, read, strict=True)
            ]
        }

    async def _last(self, run: Crawl | None) -> dict[str, Any] | None:
        """Return the newest run of a schedule's name."""
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
        """Add or replace the schedule of a definition; raises DefinitionError, ControlError."""
        return told(await self._timetable.put(await asyncio.to_thread(parse, document)))

    async def pause(self, name: str, *, paused: bool) -> dict[str, Any]:
        """Pause or resume a schedule."""
        return told(await self._timetable.pause(name, paused=paused))

    async def stop_recurring(self, name: str) -> dict[str, Any]:
        """Remove a schedule. Started runs continue."""
        await self._timetable.remove(name)
        return {"removed": name}


def told(coming: Coming) -> dict[str, Any]:
    """Return a schedule without its definition, which may contain secrets."""
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
