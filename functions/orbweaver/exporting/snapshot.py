"""Snapshots of a run's pages, by which the next run of its name finds what has changed.

- An entry is a URL as last known: a page, or what led to others (a redirect, a sitemap).
- Entries of a shard lie in the order of their URLs' hashes, in bundles: gzip (RFC 1952) without
  time or file name, so equal entries give equal bytes, a JSON array a line.
- Everything lies below `_snapshots/<name>/<run>/`; names follow from the run. `head.json` comes
  last, and before it there is no snapshot. `shard-….json` says that one shard is done.

    pages  entries of this run, and those that it left as they were
    due    entries that it did not ask for though it could have; each is then one of
    kept   those of them that stand all the same, and
    gone   rows of those that do not
    rows   the other rows of the change feed
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
# About 3 MB as they lie there, 6 MB as text: what is in memory at a time.
LINES_MAX = 20_000
GZIP_LEVEL = 3  # a fifth larger than at 6, in a third of the time
# zlib's window of 32 KiB, in gzip's framing: it writes mtime 0 and no name.
GZIP_WBITS = 31
# Made once: json.dumps makes an encoder for each line, json.loads guesses each line's encoding.
ENCODE = json.JSONEncoder(separators=(",", ":")).encode
DECODE = json.JSONDecoder().decode


class BundleKind(StrEnum):
    """What a bundle holds."""

    PAGES = "pages"
    DUE = "due"
    KEPT = "kept"
    ROWS = "rows"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class SnapshotEntry:
    """A URL as last known: by `crawl`, which asked and was answered; `asked_ms` may be later.

    `page` is False for what only leads to others.
    """

    url: str
    page: bool
    sha256: str | None
    crawl: str
    asked_ms: int
    referrer: str | None = None


def entry_line(entry: SnapshotEntry) -> bytes:
    """Render an entry as a line."""
    row = (entry.url, entry.page, entry.sha256, entry.crawl, entry.asked_ms, entry.referrer)
    return line_of(row)


def entry_of(line: bytes) -> SnapshotEntry:
    """Read an entry back."""
    return SnapshotEntry(*row_of(line))


def line_of(row: Sequence[Any]) -> bytes:
    """Render a row as a line; ASCII, so that whatever a URL or name holds can be written."""
    return ENCODE(row).encode() + b"\n"


def row_of(line: bytes) -> list[Any]:
    """Read a row back."""
    row: list[Any] = DECODE(line.decode())
    return row


def bundled(lines: Iterable[bytes]) -> bytes:
    """Pack lines into a bundle."""
    stream = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, GZIP_WBITS)
    return stream.compress(b"".join(lines)) + stream.flush()


def lines_of(body: bytes) -> Iterator[bytes]:
    """Read the lines of a bundle back; raises ValueError for what is none."""
    try:
        return iter(zlib.decompress(body, GZIP_WBITS).splitlines())
    except zlib.error as error:
        raise ValueError(f"a bundle cannot be unpacked: {error}") from error


# --- names --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotPlace:
    """Where the snapshot of a run is, below the exports' prefix."""

    name: str
    run: str

    @property
    def folder(self) -> str:
        """What all its files begin with."""
        return f"{folder_of(self.name)}{self.run}/"

    @property
    def head(self) -> str:
        """Path of the head."""
        return f"{self.folder}head.json"

    def shard(self, shard: int) -> str:
        """Path of what says that a shard is done."""
        return f"{self.folder}shard-{shard:04d}.json"

    def bundle(self, kind: BundleKind, shard: int, number: int) -> str:
        """Path of a bundle."""
        return f"{self.folder}{kind}-{shard:04d}-{number:05d}.jsonl.gz"


def folder_of(name: str) -> str:
    """Say where the snapshots of all runs of a name are."""
    return f"{SNAPSHOTS}{name}/"


# --- what stands in the head, and of a shard ----------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotShard:
    """What one shard of a run came to: how many bundles of each kind there are.

    It only counts for a run that still follows `previous`, and is cut into as many `shards`.
    """

    previous: str | None
    shards: int
    bundles: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What a snapshot consists of: the run it follows, and the bundles of its shards."""

    crawl: str
    previous: str | None
    shards: Sequence[Mapping[str, int]]


Said = TypeVar("Said", SnapshotShard, Head)


def encode(what: SnapshotShard | Head) -> bytes:
    """Render either as JSON."""
    return json.dumps({"v": VERSION, **asdict(what)}, sort_keys=True).encode() + b"\n"


def decode(kind: type[Said], body: bytes | None) -> Said | None:
    """Read either back; None for what is none of this version."""
    try:
        raw = json.loads(body or b"")
        return kind(**raw) if raw.pop("v") == VERSION else None
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
