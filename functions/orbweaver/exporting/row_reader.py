"""Read the rows to export: a crawl's records of a day by shard and key, with their content.

Records are read in parallel, but always returned in this order.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from orbweaver.exporting.chunk import Row
from orbweaver.exporting.file_store import Store
from orbweaver.exporting.formats import WARC
from orbweaver.exporting.run_state import ExportLimits, ExportScope, Unit, UnitProgress
from orbweaver.frontier import warc
from orbweaver.frontier.ports import Pages
from orbweaver.model.page_record import PageRecord
from orbweaver.model.ports import Files

# Memory: this number of records in each of `SHARDS_AHEAD` shards, and `PARTS_AHEAD` bodies or
# texts.
READ_AHEAD_ROWS = 500
SHARDS_AHEAD = 4
# The default limit of a body is 5 MiB.
PARTS_AHEAD = 16


@dataclass(frozen=True, slots=True, kw_only=True)
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
            async with aclosing(self._records(scope, unit, progress, cut)) as records:
                async for shard, key, record in records:
                    if not asked and not _has_content(record, cut):
                        yield Row(shard=shard, key=key, record=record)
                        continue
                    asked.append(asyncio.create_task(self._row(shard, key, record, cut)))
                    while len(asked) >= PARTS_AHEAD or (asked and asked[0].done()):
                        yield await asked.popleft()
            while asked:
                yield await asked.popleft()
        finally:
            for part in asked:
                part.cancel()
            await asyncio.gather(*asked, return_exceptions=True)

    # --- stored content of a page -----------------------------------------------------------

    async def _row(self, shard: int, key: str, record: PageRecord, cut: ExportLimits) -> Row:
        text = answer = None
        if cut.formats != (WARC,):
            text = await self._part(record, record.text_offset, record.text_length)
        if WARC in cut.formats:
            answer = await self._part(record, record.body_offset, record.body_length)
        document = None if text is None else _document(text)
        return Row(shard=shard, key=key, record=record, text=document, answer=answer)

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


def _has_content(record: PageRecord, cut: ExportLimits) -> bool:
    return record.body_key is not None and (record.text_offset is not None or WARC in cut.formats)


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
