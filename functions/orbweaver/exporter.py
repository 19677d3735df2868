"""The exporter: one UTC day of page records becomes files that say the same however often it runs.

Order of effects, for each part: withdraw the manifest if it means another file by that name, then
put the part. After the last part: put the manifest, remove parts of an earlier, longer run, audit
what stands, forget the saved state.

- The manifest is all that readers see. It is withdrawn before a part that it names changes, and
  comes back after the last one: a crash leaves the old export, the new one, or none, and a run
  over unchanged records never takes it away.
- Rows come shard by shard, in key order, however the parallel reads are timed; no byte depends
  on the run. Doubled, overlapping, repeated and continued runs write the same files.
- Overlapping runs that saw different records (one was stored in between) could mix their parts.
  So a run ends by reading back what stands: unless every part is the one that the manifest
  means, it withdraws the manifest and fails, to be tried again. Whichever run changed anything
  last audits after it.
- When time is short after a part, the state is saved and the day continued by another invocation.
  Every invocation writes at least one part, so a day ends.
- Memory: `read_ahead_rows` rows a shard and a few compressed parts, whatever the day holds.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from orbweaver.core.export import (
    Manifest,
    Part,
    PartBuffer,
    Place,
    Progress,
    check_day,
    days_between,
    decode_manifest,
    encode_manifest,
    encode_progress,
    intact,
    job_of,
    part_name,
    resumed,
    row,
)
from orbweaver.core.retry import ATTEMPTS_MAX, backoff_s
from orbweaver.ports import Transient

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from random import Random

    from orbweaver.ports import Clock, Files, Pages

T = TypeVar("T")
# Parts read back at a time by the audit: S3's latency is hidden, memory stays small.
AUDIT_AT_ONCE = 4
STORAGE_BASE_S = 2.0  # a busy bucket is back sooner than a busy site


class Continuation(Protocol):
    """The way to another invocation of the exporter."""

    async def again(self, event: Mapping[str, Any]) -> None:
        """Invoke the exporter with this event, soon and without waiting for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """The day is exported: this manifest stands, and its parts were read back."""

    manifest: Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class Continue:
    """Time was short: the state is saved, and the same day goes on from it."""

    day: str

    @property
    def event(self) -> dict[str, Any]:
        """What to invoke the exporter with."""
        return {"day": self.day, "resume": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class Exporter:
    """Exports days; `prefix` is empty or ends in a slash.

    `reserve_ms` is what a part, the manifest and the audit may need together: with less left
    before the deadline no further part is begun.
    """

    pages: Pages
    files: Files
    clock: Clock
    random: Random
    part_rows_max: int = 10_000
    prefix: str = "exports/"
    read_ahead_rows: int = 500
    reserve_ms: int = 30_000

    async def run(
        self, event: Mapping[str, Any], *, deadline_ms: int, continuation: Continuation
    ) -> Exported | Continue:
        """Do what an event asks for, and see to it that a day too big for one run goes on."""
        job = job_of(event, self.clock.now_ms())
        result = await self.export(job.day, deadline_ms=deadline_ms, resume=job.resume)
        if isinstance(result, Continue):
            following = result.event
            await self._tried(lambda: continuation.again(following))
        return result

    async def export_between(
        self, first_ms: int, last_ms: int, *, crawl: str | None = None
    ) -> tuple[Manifest, ...]:
        """Export every day that a time span touches, as a crawl's does; nothing is put off."""
        made = []
        for day in days_between(first_ms, last_ms):
            result = await self.export(day, crawl=crawl)
            if isinstance(result, Exported):  # always: there is no deadline
                made.append(result.manifest)
        return tuple(made)

    async def export(
        self,
        day: str,
        *,
        crawl: str | None = None,
        deadline_ms: int | None = None,
        resume: bool = False,
    ) -> Exported | Continue:
        """Export a day, or one crawl's records of it; ExportEventError if it is no day."""
        place = Place(prefix=self.prefix, day=check_day(day))
        progress = Progress(crawl=crawl, shards=self.pages.shards, part_rows_max=self.part_rows_max)
        if resume:
            state = await self._get(place.state)
            standing = await self._whole(place) if state is None else None
            if standing is not None:  # another run finished the day, and then forgot the state
                return Exported(manifest=standing)
            progress = resumed(progress, state)
        async with aclosing(self._parts(place, progress)) as steps:
            async for progress in steps:
                if self._short(deadline_ms):
                    await self._put(place.state, encode_progress(progress))
                    return Continue(day=day)
        return await self._seal(place, progress)

    def _short(self, deadline_ms: int | None) -> bool:
        return deadline_ms is not None and self.clock.now_ms() + self.reserve_ms >= deadline_ms

    # --- parts ------------------------------------------------------------------------------

    async def _parts(self, place: Place, progress: Progress) -> AsyncGenerator[Progress, None]:
        """Write part after part; where the run stands after each."""
        buffer = PartBuffer()
        shard, key = progress.shard, progress.after or ""
        async with aclosing(self._rows(place.day, progress)) as rows:
            async for shard, key, line in rows:
                buffer.add(line)
                if buffer.rows == self.part_rows_max:
                    part = await self._write(place, buffer, len(progress.parts))
                    progress = progress.past(shard, key, part)
                    yield progress
                    buffer = PartBuffer()
        if buffer.rows:
            part = await self._write(place, buffer, len(progress.parts))
            yield progress.past(shard, key, part)

    async def _write(self, place: Place, buffer: PartBuffer, number: int) -> Part:
        part, body = buffer.close(part_name(number))
        standing = await self._get(place.manifest)
        if standing is not None:
            manifest = decode_manifest(standing)
            if manifest is None or manifest.contradicts(part):
                await self._delete(place.manifest)
        await self._put(place.folder + part.name, body)
        return part

    # --- the end ----------------------------------------------------------------------------

    async def _seal(self, place: Place, progress: Progress) -> Exported:
        manifest = Manifest(day=place.day, crawl=progress.crawl, parts=progress.parts)
        await self._put(place.manifest, encode_manifest(manifest))
        present = await self._tried(lambda: self.files.list(place.folder))
        await self._delete(*place.surplus(present, len(manifest.parts)))
        standing = await self._whole(place)
        if standing is None:
            # The state too: its parts are not there, so that the next run has to begin anew.
            await self._delete(place.manifest, place.state)
            raise Transient(f"another run changed the export of {place.day}")
        await self._delete(place.state)
        return Exported(manifest=standing)

    async def _whole(self, place: Place) -> Manifest | None:
        """Audit what stands: its manifest, if every part is the one that it means."""
        body = await self._get(place.manifest)
        standing = None if body is None else decode_manifest(body)
        if standing is None:
            return None
        for start in range(0, len(standing.parts), AUDIT_AT_ONCE):
            some = standing.parts[start : start + AUDIT_AT_ONCE]
            if not all(await asyncio.gather(*(self._intact(place, part) for part in some))):
                return None
        return standing

    async def _intact(self, place: Place, part: Part) -> bool:
        return intact(part, await self._get(place.folder + part.name))

    # --- rows -------------------------------------------------------------------------------

    async def _rows(
        self, day: str, progress: Progress
    ) -> AsyncGenerator[tuple[int, str, bytes], None]:
        """All rows behind `progress`, in order: shard, sort key, line; every shard reads ahead."""
        shards = range(progress.shard, self.pages.shards)
        inboxes = {shard: _Inbox(self.read_ahead_rows) for shard in shards}
        readers = {}
        for shard, inbox in inboxes.items():
            after = progress.after if shard == progress.shard else None
            reading = self._read(day, shard, after, progress.crawl, inbox)
            readers[shard] = asyncio.create_task(reading)
        try:
            for shard, inbox in inboxes.items():
                while (item := await inbox.take()) is not None:
                    yield shard, *item
                await readers[shard]  # raises what ended it, if not the shard's end
        finally:
            for reader in readers.values():
                reader.cancel()
            await asyncio.gather(*readers.values(), return_exceptions=True)

    async def _read(
        self, day: str, shard: int, after: str | None, crawl: str | None, inbox: _Inbox
    ) -> None:
        """Read one shard into its inbox; a transient fault is waited out where it stopped."""
        failures = 0
        try:
            while True:
                rows = self.pages.read_shard(day, shard, after=after, crawl=crawl)
                try:
                    async for key, record in rows:
                        await inbox.give(key, row(record))
                        after, failures = key, 0
                except Transient:
                    failures += 1
                    if failures == ATTEMPTS_MAX:
                        raise
                else:
                    return
                finally:
                    if isinstance(rows, AsyncGenerator):
                        await rows.aclose()
                await self.clock.sleep(backoff_s(failures, self.random, STORAGE_BASE_S))
        finally:
            inbox.end()

    # --- files ------------------------------------------------------------------------------

    async def _tried(self, call: Callable[[], Awaitable[T]]) -> T:
        """Call a port; a transient fault is waited out a few times."""
        for attempt in range(1, ATTEMPTS_MAX):
            try:
                return await call()
            except Transient:
                await self.clock.sleep(backoff_s(attempt, self.random, STORAGE_BASE_S))
        return await call()

    async def _get(self, key: str) -> bytes | None:
        return await self._tried(lambda: self.files.get(key))

    async def _put(self, key: str, body: bytes) -> None:
        await self._tried(lambda: self.files.put(key, body))

    async def _delete(self, *keys: str) -> None:
        if keys:
            await self._tried(lambda: self.files.delete(keys))


class _Inbox:
    """Rows of one shard, read but not yet written: at most `rows_max`."""

    def __init__(self, rows_max: int) -> None:
        # The queue itself has no bound, so that the end always fits: the room is what bounds it.
        self._queue: asyncio.Queue[tuple[str, bytes] | None] = asyncio.Queue()
        self._room = asyncio.Semaphore(rows_max)

    async def give(self, key: str, line: bytes) -> None:
        await self._room.acquire()
        self._queue.put_nowait((key, line))

    def end(self) -> None:
        self._queue.put_nowait(None)

    async def take(self) -> tuple[str, bytes] | None:
        item = await self._queue.get()
        if item is not None:
            self._room.release()
        return item
