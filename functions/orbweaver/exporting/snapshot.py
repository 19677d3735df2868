"""Define snapshots: the pages of a run, with which the next run of the same name is compared.

A snapshot has bundles: gzip files (RFC 1952) with a JSON array per line, sorted by URL hash. They
contain no time or file name, so equal entries give equal bytes. All files are below
`_snapshots/<name>/<run>/`. `head.json` is written last and publishes the snapshot.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

from orbweaver.exporting.manifest import SNAPSHOTS

VERSION = 1
# Maximum number of lines of a bundle: about 3 MB compressed, and 6 MB as text in memory.
LINES_MAX = 20_000
GZIP_LEVEL = 3  # a fifth larger than at level 6, in a third of the time
# zlib's window of 32 KiB in a gzip file. zlib writes no time and no file name.
GZIP_WBITS = 31
# Created once, because json.dumps creates an encoder per line and json.loads detects each encoding.
ENCODE = json.JSONEncoder(separators=(",", ":")).encode
DECODE = json.JSONDecoder().decode


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


@dataclass(frozen=True, slots=True)
class SnapshotEntry:
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
    row = (entry.url, entry.page, entry.sha256, entry.crawl, entry.asked_ms, entry.referrer)
    return line_of(row)


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


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotShard:
    """Bundles of a finished shard, by kind. Only used with the same `previous` and `shards`.

    `previous` is the previous run, and `shards` the number of shards of this run.
    """

    previous: str | None
    shards: int
    bundles: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
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
