"""Read and write snapshots of runs, bundle by bundle (gzip files of JSON lines)."""

from __future__ import annotations

import heapq
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from orbweaver.exporting import snapshot
from orbweaver.exporting.file_store import Store
from orbweaver.exporting.snapshot import (
    BundleKind,
    Head,
    SnapshotEntry,
    SnapshotPlace,
    SnapshotShard,
    entry_of,
)
from orbweaver.model.errors import Permanent
from orbweaver.model.page_record import shard_of
from orbweaver.model.url import url_hash

T = TypeVar("T")
S = TypeVar("S")


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshots:
    """Reads and writes the snapshots in a store."""

    store: Store
    lines_max: int = snapshot.LINES_MAX

    # --- head and shards --------------------------------------------------------------------

    async def head(self, name: str, run: str | None) -> Head | None:
        if run is None:
            return None
        return snapshot.decode(Head, await self.store.get(SnapshotPlace(name=name, run=run).head))

    async def shard(self, place: SnapshotPlace, number: int) -> SnapshotShard | None:
        return snapshot.decode(SnapshotShard, await self.store.get(place.shard(number)))

    async def put(self, path: str, what: SnapshotShard | Head) -> None:
        await self.store.put(path, snapshot.encode(what))

    async def prune(self, name: str, wanted: Iterable[str | None]) -> None:
        folder = snapshot.folder_of(name)
        paths = await self.store.list(folder)
        runs = {path.removeprefix(folder).partition("/")[0] for path in paths}
        for run in sorted(runs.difference(wanted)):
            place = SnapshotPlace(name=name, run=run)
            # Delete the head first, because a snapshot without a head is invalid.
            await self.store.delete([place.head])
            rest = [path for path in paths if path.startswith(place.folder) and path != place.head]
            await self.store.delete(rest)

    # --- bundles ----------------------------------------------------------------------------

    def sink(self, place: SnapshotPlace, kind: BundleKind, number: int) -> SnapshotSink:
        return SnapshotSink(snapshots=self, place=place, kind=kind, number=number)

    async def lines(
        self, place: SnapshotPlace, kind: BundleKind, number: int, bundles: Mapping[str, int]
    ) -> AsyncIterator[bytes]:
        for chunk in range(bundles[kind]):
            path = place.bundle(kind, number, chunk)
            body = await self.store.get(path)
            if body is None:
                raise Permanent(f"{self.store.key(path)} is not there, though a snapshot names it")
            for line in snapshot.lines_of(body):
                yield line

    async def all_of(
        self, place: SnapshotPlace, kind: BundleKind, shards: Sequence[SnapshotShard]
    ) -> AsyncIterator[SnapshotEntry]:
        for number, shard in enumerate(shards):
            async for line in self.lines(place, kind, number, shard.bundles):
                yield entry_of(line)

    async def entries(
        self, name: str, head: Head | None, number: int, count: int
    ) -> AsyncIterator[tuple[str, SnapshotEntry]]:
        """Yield the entries of a snapshot in the order of URL hashes: shard `number` of `count`."""
        if head is None:
            return
        # If the snapshot has another number of shards, each of its shards can contain some of these
        # URLs.
        sources = range(len(head.shards)) if len(head.shards) != count else [number]
        place = SnapshotPlace(name=name, run=head.crawl)
        streams = [
            self._hashed(place, kind, source, head.shards[source])
            for source in sources
            for kind in (BundleKind.PAGES, BundleKind.KEPT)
        ]
        async for digest, entry in merged(streams):
            if shard_of(digest, count) == number:
                yield digest, entry

    async def _hashed(
        self, place: SnapshotPlace, kind: BundleKind, number: int, bundles: Mapping[str, int]
    ) -> AsyncIterator[tuple[str, SnapshotEntry]]:
        async for line in self.lines(place, kind, number, bundles):
            entry = entry_of(line)
            yield url_hash(entry.url), entry


@dataclass(slots=True, kw_only=True)
class SnapshotSink:
    """Writes lines to the bundles of one kind and shard."""

    snapshots: Snapshots
    place: SnapshotPlace
    kind: BundleKind
    number: int
    _lines: list[bytes] = field(default_factory=list)
    _written: int = 0

    async def add(self, line: bytes) -> None:
        self._lines.append(line)
        if len(self._lines) == self.snapshots.lines_max:
            await self._write()

    async def end(self) -> int:
        """Write the remaining lines. Returns the number of bundles written."""
        if self._lines:
            await self._write()
        return self._written

    async def _write(self) -> None:
        # The name follows from the run, so a repeated write replaces the bundle by the same
        # content.
        path = self.place.bundle(self.kind, self.number, self._written)
        await self.snapshots.store.put(path, snapshot.bundled(self._lines))
        self._written += 1
        self._lines.clear()


# --- sorted streams -----------------------------------------------------------------------------


async def merged(streams: Sequence[AsyncIterator[tuple[str, T]]]) -> AsyncIterator[tuple[str, T]]:
    """Merge streams that are sorted by key. Equal keys are yielded in the order of `streams`."""
    heap: list[tuple[str, int, T]] = []
    for place, stream in enumerate(streams):
        async for key, value in stream:
            heap.append((key, place, value))
            break
    heapq.heapify(heap)
    while heap:
        key, place, value = heap[0]
        yield key, value
        async for key, value in streams[place]:
            heapq.heapreplace(heap, (key, place, value))
            break
        else:
            heapq.heappop(heap)


async def joined(
    first: AsyncIterator[tuple[str, S]], second: AsyncIterator[tuple[str, T]]
) -> AsyncIterator[tuple[S | None, T | None]]:
    """Join two streams that are sorted by key.

    For each key, yields the two values. A missing value is None. A key occurs at most once per
    stream.
    """
    one, two = await anext(first, None), await anext(second, None)
    while one is not None or two is not None:
        mine = one if one is not None and (two is None or one[0] <= two[0]) else None
        yours = two if two is not None and (one is None or two[0] <= one[0]) else None
        yield (None if mine is None else mine[1]), (None if yours is None else yours[1])
        if mine is not None:
            one = await anext(first, None)
        if yours is not None:
            two = await anext(second, None)
