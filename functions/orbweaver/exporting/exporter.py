"""Export a UTC day of page records as files, with the same result in every run.

Any number of workers process a run. Its messages can arrive twice, late, concurrently or after a
crash. Workers share state only through files (exporting/run_state.py).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from hashlib import blake2b
from random import Random
from typing import Any

from orbweaver.exporting.change_feed import ChangeFeed
from orbweaver.exporting.file_store import FolderWorkspace, Store, Workspace
from orbweaver.exporting.finalizer import Finalizer, Repairer
from orbweaver.exporting.manifest import PREFIX, Manifest, check_day, days_between, decode_manifest
from orbweaver.exporting.run_state import (
    FIRST,
    RUN_MS_MAX,
    Catalogue,
    ExportEvents,
    ExportLimits,
    ExportScope,
    OrderKind,
    Orders,
    RunPlan,
    Unit,
    UnitProgress,
    begun_ms,
    changes_of,
    decode_order,
    groups_of,
    identity_of,
    jobs_of,
)
from orbweaver.exporting.runs import ExportRuns
from orbweaver.exporting.unit_worker import READ_AHEAD_ROWS, RowReader, UnitWorker
from orbweaver.frontier.ports import Crawls, Pages
from orbweaver.model.ports import Clock, Files
from orbweaver.model.value import value_class

TOKEN_BYTES = 8
# Approximate number of chunks per unit of a divided crawl.
UNIT_PARTS = 5


@value_class
class Planner:
    """Starts export runs and divides them into units of work: a crawl's records, or a part of them.

    A part has about `unit_rows_max` rows. If that is None, a crawl's records are never divided. A
    repeated request (with the same token) continues its run. A new request starts a new run, which
    replaces the previous run.
    """

    pages: Pages
    store: Store
    runs: ExportRuns
    feed: ChangeFeed | None
    cut: ExportLimits
    unit_rows_max: int | None

    async def begin(self, scope: ExportScope, token: str, *, gives_way: bool = False) -> str | None:
        """Start or continue the run of the request `token`. Returns its name.

        Returns None if a later run replaces it. With `gives_way`, also if another run is in
        progress.
        """
        if gives_way and await self._is_in_progress(scope, token):
            return None
        run = await self.runs.begin(scope, token, self.store.clock.now_ms())
        if run is None:
            return None
        plan = await self.runs.plan(scope, run)
        if plan is None:
            plan = RunPlan(limits=self.cut, units=await self._units(scope))
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

    async def _is_in_progress(self, scope: ExportScope, token: str) -> bool:
        current = await self.runs.current(scope)
        if current is None or current.endswith(f"-{token}"):
            return False
        return self.store.clock.now_ms() - begun_ms(current) < RUN_MS_MAX

    async def _units(self, scope: ExportScope) -> tuple[Unit, ...]:
        if scope.crawl is None:
            crawls = await self.store.call(lambda: self.pages.crawls_of(scope.day))
        else:
            crawls = (scope.crawl,)
        counts = await self._group_counts(scope, crawls)
        units = [
            Unit(crawl=crawl, group=group, groups=groups)
            for crawl, groups in zip(crawls, counts, strict=True)
            for group in range(groups)
        ]
        ended = () if self.feed is None else await self.feed.ended_on(scope.day)
        units += [changes_of(crawl.id) for crawl in ended if scope.crawl in (None, crawl.id)]
        return tuple(units)

    # The number of a crawl's records in the day's first shard determines the crawl's number of
    # units. So the same records are always divided in the same way. Counters of a crawl would not
    # work: they grow while it runs, and include other days.
    async def _group_counts(self, scope: ExportScope, crawls: tuple[str, ...]) -> list[int]:
        most, shards = self.unit_rows_max, self.pages.shards
        if most is None or shards == 1:
            return [1] * len(crawls)
        day = scope.day
        rows = await self.store.each(
            (lambda crawl=crawl: self.pages.count(day, 0, crawl, most))  # type: ignore[misc]
            for crawl in crawls
        )
        return [groups_of(number, shards, most) for number in rows]


# Readers use only the manifest. It is written after all files that it names, is withdrawn before
# one of these files is replaced, and does not depend on its writer. A run over unchanged records
# writes nothing, because files are first compared by SHA-256.
# Records determine the contents of files: units follow from the records of the day, rows are
# ordered by shard and key, chunks follow from rows. So doubled, repeated and resumed work produces
# the same bytes.
# Time: a unit writes at least one chunk per message, so a day ends. Memory: rows of a chunk are in
# files, and read-ahead is limited (unit_worker.py). The state of a run is proportional to its
# files.
# Runs that saw different records could mix their files. A late worker checks that the published
# export is correct, and the last worker reads the files again (finalizer.py).
# Known gaps:
# - Readers that list folders instead of reading manifests see files before the export is complete.
# - A worker can replace a file after its last check and die. Then the file does not match the
#   manifest. Its SHA-256 reveals that, and the redelivered message repairs it.
# - A worker can stop between its last check and its manifest while a later run begins and ends, and
#   die before it checks again. If all files of the older run exist unchanged, its manifest remains
#   until the day's next run.
@value_class
class Exporter:
    """Starts export runs and handles the messages of the export queue."""

    store: Store
    planner: Planner
    worker: UnitWorker
    finalizer: Finalizer
    span: str = "day"

    async def begin(self, event: Mapping[str, Any], identity: str) -> tuple[str, ...]:
        """Start the runs that an event requests. Return their days.

        `identity` is the request's identity if the event has no time.
        """
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
        """Handle a message. Returns the manifest if this message completed the export."""
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
    return blake2b(identity.encode(), digest_size=TOKEN_BYTES).hexdigest()


# --- assembly -----------------------------------------------------------------------------------


@value_class
class ExporterParts:
    """Parts of an exporter. `cuts_crawls`: divide large crawls between workers.

    `reserve_ms` is the time that a chunk of rows, or the end of a day, needs before the deadline.
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
    # Storage of bodies and texts, if it is not the target of the export.
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
        store = Store(files=self.files, clock=self.clock, random=self.random, prefix=self.prefix)
        runs = ExportRuns(store=store, orders=self.orders)
        repairer = Repairer(store=store, runs=runs)
        cut = ExportLimits(
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


# --- one process: handles its own messages ------------------------------------------------------


class WaitingExport:
    """In-memory queue of an exporter that runs in one process."""

    def __init__(self) -> None:
        self.bodies: deque[str] = deque()

    async def send(self, bodies: Sequence[tuple[str, str]]) -> None:
        self.bodies.extend(body for body, _ in bodies)


@value_class
class InProcessExporter:
    """An exporter with an in-memory queue, for one process."""

    exporter: Exporter
    waiting: WaitingExport

    async def export(self, day: str, *, crawl: str | None = None) -> Manifest:
        """Export a day, or one crawl's records of that day. Returns when the export is complete."""
        exporter, scope = self.exporter, ExportScope(day=check_day(day), crawl=crawl)
        chance = exporter.store.random.getrandbits(8 * TOKEN_BYTES)
        self.waiting.bodies.clear()
        await exporter.planner.begin(scope, f"{chance:0{2 * TOKEN_BYTES}x}")
        while self.waiting.bodies:
            manifest = await exporter.handle(self.waiting.bodies.popleft())
            if manifest is not None:
                return manifest
        # Another process that started later exports the same records into the same folder.
        body = await exporter.store.get(scope.manifest)
        manifest = None if body is None else decode_manifest(body)
        return await self.export(day, crawl=crawl) if manifest is None else manifest

    async def export_between(
        self, first_ms: int, last_ms: int, *, crawl: str
    ) -> tuple[Manifest, ...]:
        days = days_between(first_ms, last_ms)
        return tuple([await self.export(day, crawl=crawl) for day in days])
