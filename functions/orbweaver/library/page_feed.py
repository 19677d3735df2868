"""Deliver each page of a crawl to a callback of the program, at least once.

Each run with an incomplete delivery has a file in the store. The file is deleted after the last
page. If a finished run still has a file, the delivery was interrupted. Then the next run of the
same name delivers the pages of that run again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from orbweaver.model.columns import PAGES, Type
from orbweaver.model.crawl import State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orbweaver.adapters.sqlite.pages import SqlitePages
    from orbweaver.cli.session import Session
    from orbweaver.library.rows import PageHook, Row
    from orbweaver.model.crawl import Crawl
    from orbweaver.model.page_record import PageRecord

FOLDER = "callbacks"


@dataclass(slots=True, kw_only=True)
class PageFeed:
    """Calls a hook for each page of one or several runs, in the order in which pages are stored."""

    pages: SqlitePages
    folder: Path
    runs: Sequence[str]
    hook: PageHook
    behind: dict[str, int] = field(default_factory=dict)

    @classmethod
    async def open(cls, session: Session, crawl: Crawl, hook: PageHook) -> PageFeed:
        """Open the feed of a run, and of finished runs of its name with an incomplete delivery."""
        from orbweaver.app.store_ports import StorePorts

        if not isinstance(session.ports, StorePorts):
            raise ValueError(  # noqa: TRY004 - the value fits another place only
                "on_page is called for pages of a store: those of a stack are in `pages`"
            )
        folder = session.ports.folder / FOLDER
        folder.mkdir(mode=0o700, exist_ok=True)
        interrupted = [
            run.id
            for run in reversed(await session.control.crawls())
            if run.name == crawl.name
            and run.id != crawl.id
            and run.state is State.FINISHED
            and (folder / run.id).exists()
        ]
        (folder / crawl.id).touch(mode=0o600)
        return cls(
            pages=session.ports.pages, folder=folder, runs=(*interrupted, crawl.id), hook=hook
        )

    def deliver(self) -> None:
        for run in self.runs:
            for number, record in self.pages.stored_after(self.behind.get(run, 0), run):
                try:
                    self.hook(page_of(record))
                except Exception as error:
                    error.add_note(f"on_page was called for {record.url}")
                    raise
                self.behind[run] = number

    def complete(self) -> None:
        for run in self.runs:
            (self.folder / run).unlink(missing_ok=True)


def page_of(record: PageRecord) -> Row:
    from orbweaver.exporting.chunk import page_row

    return timed(page_row(record))


def timed(row: Row) -> Row:
    for name, value in row.items():
        if name in _MOMENTS and value is not None:
            row[name] = datetime.fromtimestamp(value / 1000, UTC)
    return row


_MOMENTS = frozenset(column.name for column in PAGES.columns if column.type is Type.MOMENT)
