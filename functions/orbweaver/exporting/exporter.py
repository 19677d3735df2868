"""The exporter: a UTC day of page records becomes files that say the same however often it is run.

A run is worked on by any number of workers, by orders on a queue that may come twice, late, at once
and after a death. All that they know of each other lies in files (exporting/run_state.py).

- The manifest is all that readers see. It comes after everything that it names, is withdrawn before
  a file that it names is replaced, and says nothing of who wrote it. A run over unchanged records
  puts nothing at all: files are compared by their SHA-256 before.
- What is in a file follows from the records: units from the records of the day, rows by shard and
  key, chunks from rows. So doubled, repeated and continued work comes to the same bytes.
- A request that comes in later begins a run of its own, which takes the place of the one before:
  what was stored when it came in is in its export. The same request twice is one run.
- A unit has one worker in the end, by its tickets, however many orders there are. One that goes on
  in another turn is ordered under a higher ticket, and copies stop at their next chunk.
- Runs that saw different records could mix their files. A worker that is late sees to it that what
  stands is true (repair.py), and the last one to seal reads what stands after it (finalizer.py).
- Time: a unit does at least a chunk a turn, so that a day ends. Memory: the rows of a chunk are in
  files, and what is read ahead is bounded (row_reader.py); the state of a run goes with its files.

What cannot be had: readers that list folders instead of reading manifests see a run's files as they
come. A worker may stop after it has looked, and die. Then a file may stand that its manifest does
not mean. Its SHA-256 gives it away, and the order comes back and mends it. A worker may stand still
between its last look and its manifest while a later run begins and ends, and die before it looks
again. Where the older one's files are all there, unchanged, its manifest stays until the day's next
run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from random import Random
from typing import Any

from orbweaver.exporting.change_feed import ChangeFeed
from orbweaver.exporting.file_store import Store
from orbweaver.exporting.finalizer import Finalizer
from orbweaver.exporting.manifest import PREFIX, Manifest, check_day, days_between, decode_manifest
from orbweaver.exporting.ports import Catalogue, ExportEvents, Orders
from orbweaver.exporting.repair import Repairer
from orbweaver.exporting.requests import RUN_MS_MAX, identity_of, jobs_of
from orbweaver.exporting.row_reader import READ_AHEAD_ROWS, RowReader
from orbweaver.exporting.run_state import (
    FIRST,
    Cut,
    ExportScope,
    OrderKind,
    RunPlan,
    Unit,
    UnitProgress,
    begun_ms,
    changes_of,
    decode_order,
    groups_of,
)
from orbweaver.exporting.runs import ExportRuns
from orbweaver.exporting.unit_worker import UnitWorker
from orbweaver.exporting.workspace import FolderWorkspace, Workspace
from orbweaver.frontier.ports import Crawls, Pages
from orbweaver.model.ports import Clock, Files

TOKEN_BYTES = 8
# A unit of a crawl that is cut has about so many chunks.
UNIT_PARTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Planner:
    """Begins runs; a unit has about `unit_rows_max` rows, None: it is never cut.

    Order of effects: note that the run has begun, keep its plan, order its units. A request that
    comes twice goes on where it stopped the first time.

    The number of units of a crawl follows from its records in the day's first shard, so the same
    records are cut the same way. Its counters would not do: they grow while it runs, and count
    other days too.
    """

    pages: Pages
    store: Store
    runs: ExportRuns
    feed: ChangeFeed | None
    cut: Cut
    unit_rows_max: int | None

    async def begin(self, scope: ExportScope, token: str, *, gives_way: bool = False) -> str | None:
        """Begin a run, and have it worked on; None where another one does what is asked for."""
        if gives_way and await self._going_on(scope, token):
            return None
        run = await self.runs.begin(scope, token, self.store.clock.now_ms())
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
        return self.store.clock.now_ms() - begun_ms(current) < RUN_MS_MAX

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Exporter:
    """Begins runs, and works on them."""

    store: Store
    planner: Planner
    worker: UnitWorker
    finalizer: Finalizer
    span: str = "day"

    async def begin(self, event: Mapping[str, Any], identity: str) -> tuple[str, ...]:
        """Begin what an event asks for: the days; `identity` tells it from others without time."""
        event = dict(event)
        jobs = jobs_of(event, self.store.clock.now_ms(), self.span)
        begun = []
        for job in jobs:
            token = token_of(f"{identity_of(event, identity)}/{job.day}")
            scope = ExportScope(day=job.day)
            if await self.planner.begin(scope, token, gives_way=job.gives_way) is not None:
                begun.append(job.day)
        return tuple(begun)

    async def handle(self, body: str, deadline_ms: int | None = None) -> Manifest | None:
        """Do what an order asks for; the manifest if that has sealed a run."""
        order = decode_order(body)
        match order.kind:
            case OrderKind.PLAN:
                await self.planner.begin(order.scope, token_of(order.run))
            case OrderKind.SEAL:
                return await self.finalizer.seal(order)
            case OrderKind.UNIT if order.unit is not None:
                await self.worker.work(order, order.unit, deadline_ms)
        return None


def token_of(identity: str) -> str:
    """Make of what tells requests apart what names of runs may hold."""
    return blake2b(identity.encode(), digest_size=TOKEN_BYTES).hexdigest()


# --- put together -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """What an exporter is made of; `cuts_crawls`: large ones are several workers' business.

    `reserve_ms` is what a chunk, or the end of a day, may need.
    """

    pages: Pages
    crawls: Crawls
    files: Files
    orders: Orders
    clock: Clock
    random: Random
    formats: tuple[str, ...]
    part_rows_max: int
    part_bytes_max: int
    # Where bodies and texts of pages are, if it is not where the export goes.
    bodies: Files | None = None
    events: ExportEvents | None = None
    feed: ChangeFeed | None = None
    catalogue: Catalogue | None = None
    workspace: Workspace = field(default_factory=FolderWorkspace)
    prefix: str = PREFIX
    span: str = "day"
    tell: Callable[[UnitProgress], None] | None = None
    cuts_crawls: bool = True
    reserve_ms: int = 60_000
    read_ahead_rows: int = READ_AHEAD_ROWS

    def exporter(self) -> Exporter:
        """Put it together."""
        store = Store(files=self.files, clock=self.clock, random=self.random, prefix=self.prefix)
        runs = ExportRuns(store=store, orders=self.orders)
        repairer = Repairer(store=store, runs=runs)
        cut = Cut(
            shards=self.pages.shards,
            formats=self.formats,
            part_rows_max=self.part_rows_max,
            part_bytes_max=self.part_bytes_max,
        )
        return Exporter(
            store=store,
            planner=Planner(
                pages=self.pages,
                store=store,
                runs=runs,
                feed=self.feed,
                cut=cut,
                unit_rows_max=UNIT_PARTS * self.part_rows_max if self.cuts_crawls else None,
            ),
            worker=UnitWorker(
                store=store,
                runs=runs,
                repairer=repairer,
                reader=RowReader(
                    pages=self.pages,
                    store=store,
                    bodies=self.bodies or self.files,
                    read_ahead_rows=self.read_ahead_rows,
                ),
                crawls=self.crawls,
                feed=self.feed,
                workspace=self.workspace,
                reserve_ms=self.reserve_ms,
                tell=self.tell,
            ),
            finalizer=Finalizer(
                store=store,
                runs=runs,
                repairer=repairer,
                events=self.events,
                catalogue=self.catalogue,
            ),
            span=self.span,
        )


# --- alone: what it orders, it does -------------------------------------------------------------


class WaitingExport:
    """The queue of an exporter that is alone."""

    def __init__(self) -> None:
        self.bodies: deque[str] = deque()

    async def send(self, bodies: Sequence[tuple[str, str]]) -> None:
        """See the port `Orders`."""
        self.bodies.extend(body for body, _ in bodies)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alone:
    """An exporter, and what it has ordered of itself."""

    exporter: Exporter
    waiting: WaitingExport

    async def export(self, day: str, *, crawl: str | None = None) -> Manifest:
        """Export a day, or one crawl's records of it, here and now."""
        exporter, scope = self.exporter, ExportScope(day=check_day(day), crawl=crawl)
        chance = exporter.store.random.getrandbits(8 * TOKEN_BYTES)
        self.waiting.bodies.clear()
        await exporter.planner.begin(scope, f"{chance:0{2 * TOKEN_BYTES}x}")
        while self.waiting.bodies:
            manifest = await exporter.handle(self.waiting.bodies.popleft())
            if manifest is not None:
                return manifest
        # Another process exports the same into the same folder, and was later.
        body = await exporter.store.get(scope.manifest)
        manifest = None if body is None else decode_manifest(body)
        return await self.export(day, crawl=crawl) if manifest is None else manifest

    async def export_between(
        self, first_ms: int, last_ms: int, *, crawl: str
    ) -> tuple[Manifest, ...]:
        """Export every day that a time span touches, as a crawl's does."""
        days = days_between(first_ms, last_ms)
        return tuple([await self.export(day, crawl=crawl) for day in days])
