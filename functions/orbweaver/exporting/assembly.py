"""An exporter, put together from its ports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from orbweaver.exporting.exporter import Exporter
from orbweaver.exporting.file_store import Store
from orbweaver.exporting.finalizer import Finalizer
from orbweaver.exporting.manifest import PREFIX
from orbweaver.exporting.planner import Planner
from orbweaver.exporting.repair import Repairer
from orbweaver.exporting.row_reader import READ_AHEAD_ROWS, RowReader
from orbweaver.exporting.run_state import Cut, UnitProgress
from orbweaver.exporting.runs import ExportRuns
from orbweaver.exporting.unit_worker import UnitWorker
from orbweaver.exporting.workspace import FolderWorkspace, Workspace
from orbweaver.model.ports import Clock, Files

if TYPE_CHECKING:
    from random import Random

    from orbweaver.exporting.feed import Feed
    from orbweaver.exporting.ports import Catalogue, ExportEvents, Orders
    from orbweaver.frontier.ports import Crawls, Pages

# A unit of a crawl that is cut has about so many chunks.
UNIT_PARTS = 5


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
    feed: Feed | None = None
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
                clock=self.clock,
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
                clock=self.clock,
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
            clock=self.clock,
            span=self.span,
        )
