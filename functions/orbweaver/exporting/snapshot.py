"""Define snapshots: the pages of a run, with which the next run of the same name is compared.

A snapshot has bundles: gzip files (RFC 1952) with a JSON array per line, sorted by URL hash. They
contain no time or file name, so equal entries give equal bytes. All files are below
`_snapshots/<name>/<run>/`. `head.json` is written last and publishes the snapshot.
"""

from __future__ import annotations

import heapq
import json
import zlib
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

from orbweaver.exporting.file_store import Store
from orbweaver.exporting.manifest import SNAPSHOTS
from orbweaver.model.errors import Permanent
from orbweaver.model.page_record import shard_of
from orbweaver.model.url import url_hash
from orbweaver.model.value import value_class

VERSION = 1
# Maximum number of lines of a bundle: about 3 MB compressed, and 6 MB as text in memory.
LINES_MAX = 20_000
GZIP_LEVEL = 3  # a fifth larger than at level 6, in a third of the time
# zlib's window of 32 KiB in a gzip file. zlib writes no time and no file name.
GZIP_WBITS = 31
# Created once, because json.dumps creates an encoder per line and json.loads detects each encoding.
ENCODE = json.JSONEncoder(separators=(",", ":")).encode
DECODE = json.JSONDecoder().decode
T = TypeVar("T")
S = TypeVar("S")


class BundleKind(StrEnum):
    """Contents of a bundle.

    - `PAGES`: entries of this run, and earlier entries that it left unchanged
    - `DUE`: entries that it could have requested and did not (`is_due`)
    - `KEPT`: due entries that remain in the snapshot
    - `GONE`: change feed rows of the due entries that are deleted
    - `ROWS`: all other rows of the change feed
    """

    PAGES = "pages"
    DUE = "due"
    KEPT = "kept"
    ROWS = "rows"
    GONE = "gone"


class SnapshotEntry(NamedTuple):
    """A URL as last known: a page, or a pointer to other URLs (a redirect, a sitemap).

    `page` is False for a pointer. `crawl` is the last run that got a response. `asked_ms` is the
    time of the last request, which can be later than that response.
    """

    url: str
    page: bool
    sha256: str | None
    crawl: str
    asked_ms: int
    referrer: str | None = None


def entry_line(entry: SnapshotEntry) -> bytes:
    return line_of(entry)


def entry_of(line: bytes) -> SnapshotEntry:
    return SnapshotEntry(*row_of(line))


def line_of(row: Sequence[Any]) -> bytes:
    return ENCODE(row).encode() + b"\n"


def row_of(line: bytes) -> list[Any]:
    row: list[Any] = DECODE(line.decode())
    return row


def bundled(lines: Iterable[bytes]) -> bytes:
    stream = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, GZIP_WBITS)
    return stream.compress(b"".join(lines)) + stream.flush()


def lines_of(body: bytes) -> Iterator[bytes]:
    """Return the lines of a bundle. Raises ValueError if it is invalid."""
    try:
        return iter(zlib.decompress(body, GZIP_WBITS).splitlines())
    except zlib.error as error:
        raise ValueError(f"a bundle cannot be unpacked: {error}") from error


# --- names --------------------------------------------------------------------------------------


@value_class
class SnapshotPlace:
    """Paths of a run's snapshot, relative to the exports' prefix."""

    name: str
    run: str

    @property
    def folder(self) -> str:
        return f"{folder_of(self.name)}{self.run}/"

    @property
    def head(self) -> str:
        return f"{self.folder}head.json"

    def shard(self, shard: int) -> str:
        return f"{self.folder}shard-{shard:04d}.json"

    def bundle(self, kind: BundleKind, shard: int, number: int) -> str:
        return f"{self.folder}{kind}-{shard:04d}-{number:05d}.jsonl.gz"


def folder_of(name: str) -> str:
    return f"{SNAPSHOTS}{name}/"


# --- head and shards ----------------------------------------------------------------------------


@value_class
class SnapshotShard:
    """Bundles of a finished shard, by kind. Only used with the same `previous` and `shards`.

    `previous` is the previous run, and `shards` the number of shards of this run.
    """

    previous: str | None
    shards: int
    bundles: Mapping[str, int] = field(default_factory=dict)


@value_class
class Head:
    """Contents of a snapshot: its run `crawl`, the previous run, and the bundles of each shard."""

    crawl: str
    previous: str | None
    shards: Sequence[Mapping[str, int]]


Said = TypeVar("Said", SnapshotShard, Head)


def encode(what: SnapshotShard | Head) -> bytes:
    return json.dumps({"v": VERSION, **asdict(what)}, sort_keys=True).encode() + b"\n"


def decode(kind: type[Said], body: bytes | None) -> Said | None:
    """Parse a head or a shard's result. Returns None if it is missing or of another version."""
    try:
        raw = json.loads(body or b"")
        return kind(**raw) if raw.pop("v") == VERSION else None
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


@value_class
class Snapshots:
    """Reads and writes the snapshots in a store."""

    store: Store
    lines_max: int = LINES_MAX

    # --- head and shards --------------------------------------------------------------------

    async def head(self, name: str, run: str | None) -> Head | None:
        if run is None:
            return None
        return decode(Head, await self.store.get(SnapshotPlace(name=name, run=run).head))

    async def shard(self, place: SnapshotPlace, number: int) -> SnapshotShard | None:
        return decode(SnapshotShard, await self.store.get(place.shard(number)))

    async def put(self, path: str, what: SnapshotShard | Head) -> None:
        await self.store.put(path, encode(what))

    async def prune(self, name: str, wanted: Iterable[str | None]) -> None:
        folder = folder_of(name)
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
            for line in lines_of(body):
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
        await self.snapshots.store.put(path, bundled(self._lines))
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
