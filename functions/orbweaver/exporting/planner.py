"""Beginning a run: which crawls have records of the day, and into which units it is cut.

Order of effects: note that the run has begun, keep its plan, order its units. A request that comes
twice goes on where it stopped the first time.

The number of units of a crawl follows from its records in the day's first shard, so the same
records are cut the same way. Its counters would not do: they grow while it runs, and count other
days too.
"""

from __future__ import annotations

from dataclasses import dataclass

from orbweaver.exporting.file_store import Store
from orbweaver.exporting.ports import Feed
from orbweaver.exporting.requests import RUN_MS_MAX
from orbweaver.exporting.run_state import (
    FIRST,
    Cut,
    ExportScope,
    OrderKind,
    RunPlan,
    Unit,
    begun_ms,
    changes_of,
    groups_of,
)
from orbweaver.exporting.runs import ExportRuns
from orbweaver.frontier.ports import Pages
from orbweaver.model.ports import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Planner:
    """Begins runs; a unit has about `unit_rows_max` rows, None: it is never cut."""

    pages: Pages
    store: Store
    runs: ExportRuns
    feed: Feed | None
    clock: Clock
    cut: Cut
    unit_rows_max: int | None

    async def begin(self, scope: ExportScope, token: str, *, gives_way: bool = False) -> str | None:
        """Begin a run, and have it worked on; None where another one does what is asked for."""
        if gives_way and await self._going_on(scope, token):
            return None
        run = await self.runs.begin(scope, token, self.clock.now_ms())
        if run is None:
            return None
        plan = await self.runs.plan(scope, run)
        if plan is None:
            plan = RunPlan(cut=self.cut, units=await self._units(scope))
            await self.runs.keep_plan(scope, run, plan)
            left = [(unit, FIRST) for unit in plan.units]
        else:
            unfinished = await self.runs.unfinished(scope, run, plan)
            states = await self.runs.all_progress(scope, run, unfinished)
            left = [(unit, progress.ticket) for unit, progress in states]
        if left:
            await self.runs.order_units(scope, run, left)
        else:
            await self.runs.order(OrderKind.SEAL, scope, run)
        return run

    async def _going_on(self, scope: ExportScope, token: str) -> bool:
        """Whether a run that another request began is under way."""
        current = await self.runs.current(scope)
        if current is None or current.endswith(f"-{token}"):
            return False
        return self.clock.now_ms() - begun_ms(current) < RUN_MS_MAX

    async def _units(self, scope: ExportScope) -> tuple[Unit, ...]:
        if scope.crawl is None:
            crawls = await self.store.tried(lambda: self.pages.crawls_of(scope.day))
        else:
            crawls = (scope.crawl,)
        counts = await self._counts(scope, crawls)
        units = [
            Unit(crawl=crawl, group=group, groups=groups)
            for crawl, groups in zip(crawls, counts, strict=True)
            for group in range(groups)
        ]
        ended = () if self.feed is None else await self.feed.ended_on(scope.day)
        units += [changes_of(crawl.id) for crawl in ended if scope.crawl in (None, crawl.id)]
        return tuple(units)

    async def _counts(self, scope: ExportScope, crawls: tuple[str, ...]) -> list[int]:
        """Say into how many groups each crawl is cut."""
        most, shards = self.unit_rows_max, self.pages.shards
        if most is None or shards == 1:
            return [1] * len(crawls)
        day = scope.day
        rows = await self.store.each(
            (lambda crawl=crawl: self.pages.count(day, 0, crawl, most))  # type: ignore[misc]
            for crawl in crawls
        )
        return [groups_of(number, shards, most) for number in rows]
