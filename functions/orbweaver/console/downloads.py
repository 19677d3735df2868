"""Write a table of a run as one file: all pages, or the valid items of a rule.

The file is complete before its first byte is sent, so a browser never saves a partial file.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from orbweaver.api.problems import Refused
from orbweaver.exporting import formats
from orbweaver.exporting.chunk import ChunkTables, item_row, page_row
from orbweaver.frontier.retrying import closing
from orbweaver.model.columns import PAGES

if TYPE_CHECKING:
    from orbweaver.control.crawl_control import Control
    from orbweaver.model.columns import Table
    from orbweaver.model.crawl import Crawl
    from orbweaver.model.page_record import PageRecord

PIECE_BYTES = 256 * 1024
TYPES = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/gzip",
    "parquet": "application/vnd.apache.parquet",
}
SUFFIXES = {one.name: one.suffix for one in formats.ROWS}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFile:
    """A table to download: a rule's items, or all pages. `form` is the format, a key of `TYPES`."""

    crawl: Crawl
    rule: str | None
    form: str

    @property
    def name(self) -> str:
        return f"{self.crawl.id}-{self.rule or PAGES.name}{SUFFIXES[self.form]}"

    @property
    def table(self) -> Table:
        """The table with its columns. Raises Refused if the run has no such rule."""
        if self.rule is None:
            return PAGES
        found = ChunkTables(self.crawl.id, self.crawl).items(self.rule)
        if found is None:
            raise Refused(400, f"{self.crawl.id} has no item rule {self.rule[:60]!a}")
        return found

    def rows(self, record: PageRecord) -> list[Mapping[str, Any]]:
        if self.rule is None:
            return [page_row(record)]
        return [
            item_row(record, item)
            for item in record.extracted
            if item.valid and item.table == self.rule
        ]


async def pieces_of(control: Control, wanted: TableFile) -> AsyncIterator[bytes]:
    """Write the file to a temporary folder and yield its content."""
    with TemporaryDirectory(prefix="orbweaver-") as folder:
        writer = formats.writer(wanted.form, wanted.table, Path(folder))
        async with closing(control.pages(wanted.crawl)) as records:
            async for record in records:
                for row in wanted.rows(record):
                    writer.add(row)
        made = await asyncio.to_thread(writer.close)
        with made.path.open("rb") as file:
            while piece := file.read(PIECE_BYTES):
                yield piece
