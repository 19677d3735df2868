"""Write a chunk of rows, a part of a crawl's records of a day, in all tables and formats."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from orbweaver.exporting.cells import cells_of
from orbweaver.exporting.file_store import ChunkWorkspace
from orbweaver.exporting.formats import ARCHIVE, WARC, Writer
from orbweaver.exporting.formats.hashed_file import FinishedFile
from orbweaver.exporting.formats.warc import WarcWriter
from orbweaver.exporting.link_block import LinkBlock, origin_of
from orbweaver.exporting.manifest import RUN_CHARS, File, path_of
from orbweaver.exporting.run_state import ExportLimits, Unit, UnitProgress
from orbweaver.frontier.link_table import read_links, redirect_row
from orbweaver.model.columns import (
    CHANGES,
    INVALID_ITEMS,
    LINKS,
    ORIGIN,
    PAGES,
    TEXTS,
    Column,
    Table,
    item_table,
)
from orbweaver.model.crawl import Crawl
from orbweaver.model.item import Item
from orbweaver.model.page_record import COLUMNS, PageRecord
from orbweaver.model.value import value_class

if TYPE_CHECKING:
    from pathlib import Path

# Maximum size of all files of a chunk together, as a multiple of `part_bytes_max`, which limits
# each file. The files share a temporary folder.
TOGETHER = 4
UNTYPED = (Column(name="item"),)
COLUMNS_OF_ORIGIN = tuple(column.name for column in ORIGIN)
DOCUMENT = tuple(column.name for column in TEXTS.columns if column not in ORIGIN)


class ChunkTables:
    """The tables of one crawl. `crawl` is None if the crawl's definition is no longer stored.

    Items have the columns of their rule. If the crawl or the rule no longer exists, the single
    column `item` contains them as JSON.
    """

    def __init__(self, crawl_id: str, crawl: Crawl | None) -> None:
        self.crawl = crawl
        self.name = crawl_id[:-RUN_CHARS] if crawl is None else crawl.name
        self._items: dict[str, Table] = {}
        if crawl is not None and crawl.items:
            from orbweaver.extraction.extract import columns_of

            self._items = {
                rule.name: item_table(self.name, rule.name, columns_of(rule))
                for rule in crawl.items
            }
        self._untyped: dict[str, Table] = {}

    def items(self, rule: str) -> Table | None:
        """Return the table of a rule's items, or None if the crawl no longer has the rule."""
        return self._items.get(rule)

    def table_without_type(self, rule: str) -> Table:
        if rule not in self._untyped:
            self._untyped[rule] = item_table(self.name, rule, UNTYPED)
        return self._untyped[rule]


@value_class
class Row:
    """A page's record, text, stored links and stored response.

    `shard` and `key` are the position of the record.
    """

    shard: int
    key: str
    record: PageRecord
    text: Mapping[str, Any] | None = None
    links: bytes | None = None
    answer: bytes | None = None


class Chunk:
    """Rows that are being written to files. A table without rows has no file."""

    def __init__(
        self, workspace: ChunkWorkspace, tables: ChunkTables, *, day: str, unit: Unit, number: int
    ) -> None:
        self._workspace = workspace
        self._tables = tables
        self._day, self._unit, self._number = day, unit, number
        self._writers: dict[tuple[str, str], Writer] = {}
        self._archive: WarcWriter | None = None
        self._columns: dict[str, tuple[Column, ...]] = {}
        # Converts rows of a table to cells, once for all formats.
        self._cells: dict[str, Callable[[Mapping[str, Any]], list[Any]]] = {}
        self._rows: Counter[str] = Counter()
        self._outcomes: Counter[str] = Counter()
        self._last: Row | None = None

    def add(self, row: Row, cut: ExportLimits) -> None:
        record = row.record
        self._put(PAGES, page_row(record), cut)
        for item in sorted(record.extracted, key=lambda item: not item.valid):
            table = self._tables.items(item.table)
            if not item.valid:
                self._put(INVALID_ITEMS, invalid_row(record, item), cut)
            elif table is None:
                untyped = _untyped(item_row(record, item))
                self._put(self._tables.table_without_type(item.table), untyped, cut)
            else:
                self._put(table, item_row(record, item), cut)
        if row.text is not None:
            self._put(TEXTS, text_row(record, row.text), cut)
        self._add_links(row, cut)
        if row.answer is not None:
            if self._archive is None:
                self._archive = self._workspace.archive(
                    self._path(PAGES.name, WARC, ARCHIVE.suffix)
                )
            self._archive.add(record, row.answer)
        self._outcomes[str(record.outcome)] += 1
        self._last = row

    def _add_links(self, row: Row, cut: ExportLimits) -> None:
        block = link_block(row.record, row.links)
        if block is None:
            for link in redirect_rows(row.record, self._tables.crawl):
                self._put(LINKS, link, cut)
        elif block.number:
            for writer in self._writers_of(LINKS, cut):
                writer.add_block(block)
            self._rows[LINKS.name] += block.number

    def add_change(self, cells: Mapping[str, Any], cut: ExportLimits) -> None:
        self._put(CHANGES, cells, cut)

    def full(self, cut: ExportLimits) -> bool:
        """Whether the chunk is full, so that the next row begins a new chunk.

        Only the rows of this chunk decide, so equal rows are always divided in the same way.
        """
        if max(self._rows[PAGES.name], self._rows[CHANGES.name]) >= cut.part_rows_max:
            return True
        sizes = [writer.size for writer in self._writers.values()]
        if self._archive is not None:
            sizes.append(self._archive.size)
        most = cut.part_bytes_max
        return max(sizes, default=0) >= most or sum(sizes) >= TOGETHER * most

    @property
    def empty(self) -> bool:
        return not self._rows

    def close(self) -> tuple[UnitProgress, dict[str, Path]]:
        """Finish all files.

        Returns the progress that the chunk adds, and each file's temporary path.
        """
        files: list[File] = []
        paths: dict[str, Path] = {}
        made = [(table, name, writer.close()) for (table, name), writer in self._writers.items()]
        if self._archive is not None:
            # An archive that contains only erased pages is omitted.
            made += [(PAGES.name, WARC, part) for part in self._archive.close() if part.rows]
        for table, name, part in made:
            files.append(self._file(table, name, part))
            paths[files[-1].path] = part.path
        last = self._last
        progress = UnitProgress(
            name=self._tables.name,
            shard=0 if last is None else last.shard,
            after=None if last is None else last.key,
            rows=dict(self._rows),
            outcomes=dict(self._outcomes),
            files=tuple(sorted(files, key=lambda file: file.path)),
            columns=self._columns,
        )
        return progress, paths

    def discard(self) -> None:
        """Discard all files. Files that are already complete are deleted with the folder."""
        for writer in self._writers.values():
            writer.discard()
        if self._archive is not None:
            self._archive.discard()

    def _put(self, table: Table, row: Mapping[str, Any], cut: ExportLimits) -> None:
        cells_of_row = self._cells.get(table.name)
        if cells_of_row is None:
            cells_of_row = self._cells[table.name] = cells_of(table)
        cells = cells_of_row(row)
        for writer in self._writers_of(table, cut):
            writer.add(cells)
        self._rows[table.name] += 1

    def _writers_of(self, table: Table, cut: ExportLimits) -> Iterator[Writer]:
        for name in cut.formats:
            if name == WARC:
                continue
            writer = self._writers.get((table.name, name))
            if writer is None:
                writer = self._workspace.writer(name, table)
                self._writers[table.name, name] = writer
                self._columns[table.name] = table.columns
            yield writer

    def _path(self, table: str, name: str, suffix: str) -> str:
        unit = self._unit
        return path_of(table, name, self._day, unit.crawl, unit.group, self._number, suffix)

    def _file(self, table: str, name: str, part: FinishedFile) -> File:
        return File(
            path=self._path(table, name, part.suffix),
            table=table,
            format=name,
            crawl=self._unit.crawl,
            rows=part.rows,
            bytes=part.bytes,
            sha256=part.sha256,
        )


def _untyped(cells: Mapping[str, Any]) -> dict[str, Any]:
    found = {name: value for name, value in cells.items() if name not in COLUMNS_OF_ORIGIN}
    item = json.dumps(found, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return {name: cells[name] for name in COLUMNS_OF_ORIGIN} | {"item": item}


# --- rows of a record ---------------------------------------------------------------------------


def page_row(record: PageRecord) -> dict[str, Any]:
    return {name: getattr(record, name) for name in COLUMNS}


def text_row(record: PageRecord, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of a page's text. `document` is the JSON of its stored text."""
    return origin_of(record) | {name: document.get(name) for name in DOCUMENT}


def link_block(record: PageRecord, member: bytes | None) -> LinkBlock | None:
    """Return the links of a page. `member` is the record of its stored links."""
    links = None if member is None else read_links(member, record.url)
    return None if links is None else LinkBlock(record, links)


def redirect_rows(record: PageRecord, crawl: Crawl | None) -> Iterator[dict[str, Any]]:
    """Yield the row of a redirect, if the crawl stores links."""
    redirect = None if crawl is None or not crawl.links else redirect_row(record, crawl)
    if redirect is not None:
        yield redirect | origin_of(record)


def item_row(record: PageRecord, item: Item) -> dict[str, Any]:
    return {**item.fields, **origin_of(record), "place": item.place}


def invalid_row(record: PageRecord, item: Item) -> dict[str, Any]:
    return {
        **origin_of(record),
        "place": item.place,
        "rule": item.table,
        "problems": list(item.problems),
        "item": json.dumps(dict(item.fields), ensure_ascii=False, separators=(",", ":")),
    }
