"""Export a unit (a crawl's records of a day, or a part of them) chunk by chunk.

Rows are read by shard and key, with their content. Records are read in parallel, but always
returned in this order.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from enum import Enum, auto
from pathlib import Path
from typing import Any

from orbweaver.exporting.change_feed import ChangeFeed
from orbweaver.exporting.chunk import Chunk, ChunkTables, Row
from orbweaver.exporting.file_store import Store, Workspace
from orbweaver.exporting.finalizer import Repairer
from orbweaver.exporting.formats import WARC
from orbweaver.exporting.manifest import File
from orbweaver.exporting.run_state import (
    ExportLimits,
    ExportOrder,
    ExportScope,
    OrderKind,
    RunPlan,
    Unit,
    UnitProgress,
)
from orbweaver.exporting.runs import ExportRuns
from orbweaver.frontier import warc
from orbweaver.frontier.ports import Crawls, Pages
from orbweaver.frontier.retrying import all_of
from orbweaver.model.crawl import Crawl
from orbweaver.model.page_record import PageRecord
from orbweaver.model.ports import Files
from orbweaver.model.value import value_class

# Memory: this number of records in each of `SHARDS_AHEAD` shards, and `PARTS_AHEAD` bodies or
# texts.
READ_AHEAD_ROWS = 500
SHARDS_AHEAD = 4
# The default limit of a body is 5 MiB.
PARTS_AHEAD = 16
# Links are read for this number of records at a time, or this size of links. A file has links of
# many of them, and one request reads these together. Each request also reads the links between.
LINKED_ROWS, LINKED_BYTES = 20_000, 32 * 2**20


class Hold(Enum):
    """Result of the check whether a worker may write a unit.

    `MINE`: yes. `OTHERS`: no, another worker has the unit. `STALE`: no, a later run is current.
    """

    MINE = auto()
    OTHERS = auto()
    STALE = auto()


@value_class
class UnitWorker:
    """Exports units of work. Starts no further chunk with less than `reserve_ms` left."""

    store: Store
    runs: ExportRuns
    repairer: Repairer
    reader: RowReader
    crawls: Crawls
    feed: ChangeFeed | None
    workspace: Workspace
    reserve_ms: int
    # Progress callback, called after each chunk of a unit.
    tell: Callable[[UnitProgress], None] | None = None

    async def work(self, order: ExportOrder, unit: Unit, deadline_ms: int | None) -> None:
        """Export rows of a unit until the deadline, unless another worker has the unit."""
        scope, run = order.scope, order.run
        plan = await self.runs.plan(scope, run) if await self.runs.current(scope) == run else None
        if plan is None:  # another run is current, or this run is already sealed
            await self._clean_up(order, unit)
            return
        if unit not in plan.units:  # two workers wrote a plan, and another plan counts
            return
        progress = await self.runs.progress(scope, run, unit)
        if progress.done:
            await self._finish(order, unit, plan)
            return
        if progress.ticket > order.ticket:
            return
        if progress.ticket != order.ticket:
            progress = replace(progress, ticket=order.ticket)
            await self.runs.keep(scope, run, unit, progress)
        whole = await self._run_turn(order, unit, plan.limits, progress, deadline_ms)
        if whole is not None:
            await self.runs.keep(scope, run, unit, replace(whole, done=True))
            await self._finish(order, unit, plan)

    async def _finish(self, order: ExportOrder, unit: Unit, plan: RunPlan) -> None:
        await self.runs.finish(order.scope, order.run, unit)
        if not await self.runs.unfinished(order.scope, order.run, plan):
            await self.runs.order(OrderKind.SEAL, order.scope, order.run)
        elif not await self.runs.is_current(order.scope, order.run):
            await self._clean_up(order, unit)

    async def _clean_up(self, order: ExportOrder, unit: Unit) -> None:
        await self.runs.clean_up(order.scope, order.run)
        await self.repairer.repair(order.scope, unit.crawl)

    # --- one turn ---------------------------------------------------------------------------

    async def _run_turn(
        self,
        order: ExportOrder,
        unit: Unit,
        cut: ExportLimits,
        progress: UnitProgress,
        deadline_ms: int | None,
    ) -> UnitProgress | None:
        """Export rows until time is short. Returns the progress if the unit is done, else None."""
        crawl = await self.store.call(lambda: self.crawls.get(unit.crawl))
        if not unit.groups and not await self._make_changes(crawl, deadline_ms):
            await self._go_on(order, unit, progress)
            return None
        tables = ChunkTables(unit.crawl, crawl)
        async with aclosing(self._rows(order, unit, cut, progress, crawl)) as rows:
            while True:
                before = progress.chunk
                ended, made = await self._chunk(order, unit, cut, progress, rows, tables)
                if made is None:
                    return None
                progress = made
                if self.tell is not None:
                    self.tell(progress)
                if ended:
                    return progress
                if progress.chunk != before and self._is_time_short(deadline_ms):
                    await self._go_on(order, unit, progress)
                    return None
                await self.runs.keep(order.scope, order.run, unit, progress)

    async def _go_on(self, order: ExportOrder, unit: Unit, progress: UnitProgress) -> None:
        await self.runs.keep(order.scope, order.run, unit, progress)
        await self.runs.order_units(order.scope, order.run, [(unit, order.ticket)])

    def _is_time_short(self, deadline_ms: int | None) -> bool:
        return (
            deadline_ms is not None and self.store.clock.now_ms() + self.reserve_ms >= deadline_ms
        )

    # --- one chunk --------------------------------------------------------------------------

    async def _chunk(
        self,
        order: ExportOrder,
        unit: Unit,
        cut: ExportLimits,
        progress: UnitProgress,
        rows: AsyncGenerator[Row | Mapping[str, Any], None],
        tables: ChunkTables,
    ) -> tuple[bool, UnitProgress | None]:
        """Write a chunk of rows and its files.

        Returns whether it was the last chunk, and the new progress. The progress is None if this
        worker must stop.
        """
        with self.workspace.opened() as workspace:
            chunk = Chunk(workspace, tables, day=order.scope.day, unit=unit, number=progress.chunk)
            try:
                ended = await _fill(chunk, rows, cut)
                if chunk.empty:
                    return ended, progress
                made, paths = chunk.close()
            except BaseException:
                chunk.discard()
                raise
            # Order of effects: check that this worker has the unit, withdraw a manifest with other
            # contents, write the files, withdraw again, check again. The caller then stores the
            # progress.
            hold = await self._check_hold(order, unit)
            if hold is Hold.MINE and await self._put_files(order, made.files, paths):
                hold = await self._check_hold(order, unit)
        if hold is Hold.STALE:
            await self._clean_up(order, unit)
        return ended, progress.after_key(made) if hold is Hold.MINE else None

    async def _put_files(
        self, order: ExportOrder, files: Sequence[File], paths: Mapping[str, Path]
    ) -> bool:
        """Write the files that are missing or differ. Returns whether any was written."""
        changed = await self.store.damaged(files)
        if not changed:
            return False
        await self.repairer.withdraw(order.scope, changed)
        for file in changed:
            await self.store.put_file(file.path, paths[file.path], file.sha256)
        await self.repairer.withdraw(order.scope, changed)
        return True

    async def _check_hold(self, order: ExportOrder, unit: Unit) -> Hold:
        if await self.runs.current(order.scope) != order.run:
            return Hold.STALE
        progress = await self.runs.progress(order.scope, order.run, unit)
        others = progress.done or progress.ticket > order.ticket
        return Hold.OTHERS if others else Hold.MINE

    # --- rows -------------------------------------------------------------------------------

    async def _make_changes(self, crawl: Crawl | None, deadline_ms: int | None) -> bool:
        if self.feed is None or crawl is None:
            return True
        until_ms = None if deadline_ms is None else deadline_ms - self.reserve_ms
        return await self.feed.make(crawl, until_ms)

    async def _rows(
        self,
        order: ExportOrder,
        unit: Unit,
        cut: ExportLimits,
        progress: UnitProgress,
        crawl: Crawl | None,
    ) -> AsyncGenerator[Row | Mapping[str, Any], None]:
        if unit.groups:
            async with aclosing(self.reader.rows(order.scope, unit, progress, cut)) as pages:
                async for page in pages:
                    yield page
        elif self.feed is not None and crawl is not None:
            passed = sum(progress.rows.values())
            async for change in self.feed.rows(crawl):
                if passed:
                    passed -= 1
                else:
                    yield change


async def _fill(
    chunk: Chunk, rows: AsyncGenerator[Row | Mapping[str, Any], None], cut: ExportLimits
) -> bool:
    """Add rows to a chunk until it is full. Returns True if no rows remain."""
    async for row in rows:
        if isinstance(row, Row):
            chunk.add(row, cut)
        else:
            chunk.add_change(row, cut)
        if chunk.full(cut):
            return False
    return True


@value_class
class RowReader:
    """Reads the rows of units of work in a fixed order."""

    pages: Pages
    store: Store
    bodies: Files
    read_ahead_rows: int = READ_AHEAD_ROWS

    async def rows(
        self, scope: ExportScope, unit: Unit, progress: UnitProgress, cut: ExportLimits
    ) -> AsyncGenerator[Row, None]:
        """Yield the rows of a unit in order, starting behind the position in `progress`."""
        asked: deque[asyncio.Task[Row]] = deque()
        try:
            async with (
                aclosing(self._records(scope, unit, progress, cut)) as records,
                aclosing(self._with_links(records, cut)) as rows,
            ):
                async for row in rows:
                    if not asked and not _has_content(row.record, cut):
                        yield row
                        continue
                    asked.append(asyncio.create_task(self._whole_row(row, cut)))
                    while len(asked) >= PARTS_AHEAD or (asked and asked[0].done()):
                        yield await asked.popleft()
            while asked:
                yield await asked.popleft()
        finally:
            for part in asked:
                part.cancel()
            await asyncio.gather(*asked, return_exceptions=True)

    # --- stored content of a page -----------------------------------------------------------

    async def _whole_row(self, row: Row, cut: ExportLimits) -> Row:
        record, text, answer = row.record, None, None
        if cut.formats != (WARC,):
            text = await self._part(record, record.text_offset, record.text_length)
        if WARC in cut.formats:
            answer = await self._part(record, record.body_offset, record.body_length)
        document = None if text is None else _document(text)
        return replace(row, text=document, answer=answer)

    async def _with_links(
        self, records: AsyncGenerator[tuple[int, str, PageRecord], None], cut: ExportLimits
    ) -> AsyncGenerator[Row, None]:
        """Yield rows in order, with the stored links of their pages."""
        wanted = cut.formats != (WARC,)
        rows: list[Row] = []
        size = 0
        async for shard, key, record in records:
            row = Row(shard=shard, key=key, record=record)
            if not rows and not (wanted and record.links_length):
                yield row
                continue
            rows.append(row)
            size += record.links_length or 0
            if len(rows) >= LINKED_ROWS or size >= LINKED_BYTES:
                for one in await self._linked(rows):
                    yield one
                rows, size = [], 0
        for one in await self._linked(rows):
            yield one

    async def _linked(self, rows: Sequence[Row]) -> list[Row]:
        """Return the rows with their links. All links that a file has for them take one request."""
        spans: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        for row in rows:
            if (place := _links_place(row.record)) is not None:
                spans[place[0]].append(place[1:])
        found: dict[tuple[str, int, int], bytes] = {}

        async def read(key: str, places: list[tuple[int, int]]) -> None:
            first = min(offset for offset, _ in places)
            length = max(offset + length for offset, length in places) - first
            part = await self.store.call(lambda: self.bodies.cut(key, first, length))
            # Links that have expired are omitted, as if they had never been stored.
            for offset, size in places if part is not None else ():
                found[key, offset, size] = (part or b"")[offset - first :][:size]

        await all_of((read(key, places) for key, places in spans.items()), PARTS_AHEAD)
        return [
            row
            if (place := _links_place(row.record)) is None
            else replace(row, links=found.get(place))
            for row in rows
        ]

    async def _part(
        self, record: PageRecord, offset: int | None, length: int | None
    ) -> bytes | None:
        if record.body_key is None or offset is None or length is None:
            return None
        # A body or text that has expired or was erased is omitted, as if it had never been stored.
        key = record.body_key
        return await self.store.call(lambda: self.bodies.cut(key, offset, length))

    # --- records ----------------------------------------------------------------------------

    async def _records(
        self, scope: ExportScope, unit: Unit, progress: UnitProgress, cut: ExportLimits
    ) -> AsyncGenerator[tuple[int, str, PageRecord], None]:
        shards = [shard for shard in unit.shards(cut.shards) if shard >= progress.shard]
        inboxes: dict[int, _Inbox] = {}
        readers: dict[int, asyncio.Task[None]] = {}
        try:
            for place, shard in enumerate(shards):
                for ahead in shards[place : place + SHARDS_AHEAD]:
                    if ahead not in readers:
                        after = progress.after if ahead == progress.shard else None
                        inboxes[ahead] = _Inbox(self.read_ahead_rows)
                        reading = self._read(scope.day, ahead, after, unit.crawl, inboxes[ahead])
                        readers[ahead] = asyncio.create_task(reading)
                inbox = inboxes.pop(shard)
                while (item := await inbox.take()) is not None:
                    yield shard, *item
                await readers[shard]  # raises the reader's error, if any
        finally:
            for reader in readers.values():
                reader.cancel()
            await asyncio.gather(*readers.values(), return_exceptions=True)

    async def _read(
        self, day: str, shard: int, after: str | None, crawl: str, inbox: _Inbox
    ) -> None:
        patience = self.store.patience
        reading = patience.read_shard(self.pages, day, shard, crawl=crawl, after=after)
        try:
            async with aclosing(reading) as rows:
                async for key, record in rows:
                    await inbox.give(key, record)
        finally:
            inbox.end()


def _links_place(record: PageRecord) -> tuple[str, int, int] | None:
    key, offset, length = record.body_key, record.links_offset, record.links_length
    return None if key is None or offset is None or length is None else (key, offset, length)


def _has_content(record: PageRecord, cut: ExportLimits) -> bool:
    return record.body_key is not None and (record.text_offset is not None or WARC in cut.formats)


async def links_of(record: PageRecord, files: Files) -> bytes | None:
    """Return the record of a page's stored links."""
    place = _links_place(record)
    return None if place is None else await files.cut(*place)


async def text_of(record: PageRecord, files: Files) -> Mapping[str, Any] | None:
    offset, length = record.text_offset, record.text_length
    if record.body_key is None or offset is None or length is None:
        return None
    member = await files.cut(record.body_key, offset, length)
    return None if member is None else _document(member)


def _document(member: bytes) -> Mapping[str, Any] | None:
    try:
        record = warc.read(member)
        found = json.loads(record.payload) if record.type == "conversion" else None
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


class _Inbox:
    """Records of one shard that are read but not processed: at most `rows_max`."""

    def __init__(self, rows_max: int) -> None:
        # The semaphore limits the queue instead of `maxsize`, so that the end marker always fits.
        self._queue: asyncio.Queue[tuple[str, PageRecord] | None] = asyncio.Queue()
        self._room = asyncio.Semaphore(rows_max)

    async def give(self, key: str, record: PageRecord) -> None:
        await self._room.acquire()
        self._queue.put_nowait((key, record))

    def end(self) -> None:
        self._queue.put_nowait(None)

    async def take(self) -> tuple[str, PageRecord] | None:
        item = await self._queue.get()
        if item is not None:
            self._room.release()
        return item
