"""Define the paths of export files, and the manifest that names the files of an export.

Readers use the manifest, and never list folders. It has the SHA-256 of each file, and does not
depend on the run that wrote it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, field
from datetime import date
from hashlib import sha256
from typing import Any

from orbweaver.exporting.cells import cells_of, iso
from orbweaver.exporting.formats import FORMATS, WARC
from orbweaver.model.columns import PAGES, SCHEMA, Column, Type
from orbweaver.model.page_record import DAY_MS, PageRecord, day_of
from orbweaver.model.value import positional_value_class, value_class

# Paths below this prefix (bucket) or in a folder (local):
#     <table>/<format>/dt=<day>/<crawl>/part-<group>-<chunk><suffix>
#     pages/warc/dt=<day>/<crawl>/<crawl>-<day>-<group>-<chunk><suffix>
#     manifests/dt=<day>.json                 of a day
#     manifests/dt=<day>/crawl=<crawl>.json   of one crawl's records of a day
#     _work/…, _snapshots/…                   shared state of exporters
# A group is a part of a day's shards, a chunk is a sequence of its rows. All formats of all tables
# are divided at the same rows.
PREFIX = "exports/"
# Digits of the digest that distinguish exports of the same day.
ID_DIGITS = 16
# A crawl's id is its name and a suffix of this length.
RUN_CHARS = len("-20261121-235959")
# Folders that contain no table.
MANIFESTS, WORK, SNAPSHOTS = "manifests/", "_work/", "_snapshots/"
# Path of an export file. A group or a chunk number can have more digits than the padding, so names
# do not sort. The manifest defines the order of files.
PART = re.compile(
    r"(?P<table>.+)/(?P<format>[a-z]+)/dt=(?P<day>[^/]+)/(?P<crawl>[^/]+)"
    r"/(?P<stem>part|(?P=crawl)-(?P=day))-(?P<group>\d{2,})-(?P<chunk>\d{5,})(?P<suffix>\.[^/]*)"
)


class ExportEventError(ValueError):
    """An event requests nothing that can be exported. The message contains the valid forms."""


def formats_in(text: str) -> tuple[str, ...]:
    """Parse a comma-separated list of formats. Raises ValueError for an unknown format."""
    named = {name.strip() for name in text.split(",")}
    if unknown := sorted(named.difference(FORMATS)):
        raise ValueError(f"{unknown[0]!r} is no format: give some of {','.join(FORMATS)}")
    return tuple(name for name in FORMATS if name in named)


# --- layout -------------------------------------------------------------------------------------


@positional_value_class
class FilePlace:
    """Components of the path of an export file."""

    table: str
    format: str
    day: str
    crawl: str
    group: int
    chunk: int
    suffix: str
    # First part of the file's name.
    stem: str = "part"

    @property
    def path(self) -> str:
        """Path of the file below `PREFIX`."""
        folder = folder_of(self.table, self.format, self.day, self.crawl)
        return f"{folder}{self.stem}-{self.group:02d}-{self.chunk:05d}{self.suffix}"


def folder_of(table: str, file_format: str, day: str, crawl: str | None = None) -> str:
    """Return the folder of a table's files of a day, or only of one crawl, with a final slash."""
    folder = f"{table}/{file_format}/dt={day}/"
    return folder if crawl is None else f"{folder}{crawl}/"


def path_of(
    table: str, file_format: str, day: str, crawl: str, group: int, chunk: int, suffix: str
) -> str:
    # Only archives have unique file names, because they are collected in one place and their
    # indexes contain no folders.
    stem = f"{crawl}-{day}" if file_format == WARC else "part"
    return FilePlace(table, file_format, day, crawl, group, chunk, suffix, stem).path


def place_of(path: str) -> FilePlace | None:
    """Parse a path. Returns None if it is not a file of an export."""
    match = PART.fullmatch(path)
    if match is None:
        return None
    found: dict[str, Any] = match.groupdict()
    return FilePlace(**found | {"group": int(found["group"]), "chunk": int(found["chunk"])})


def manifest_path(day: str, crawl: str | None = None) -> str:
    return (
        f"{MANIFESTS}dt={day}.json" if crawl is None else f"{MANIFESTS}dt={day}/crawl={crawl}.json"
    )


# --- the manifest -------------------------------------------------------------------------------


@value_class
class File:
    """A file of an export. `path` is relative to the prefix."""

    path: str
    table: str
    format: str
    crawl: str
    rows: int
    bytes: int
    sha256: str


@value_class
class Sums:
    """Contents of an export for one crawl: number of rows by table, and of pages by outcome."""

    name: str
    rows: Mapping[str, int] = field(default_factory=dict)
    outcomes: Mapping[str, int] = field(default_factory=dict)


@value_class
class Manifest:
    """The files of a day. `crawl` is set if only that crawl's rows were exported.

    `crawls` are the crawls with rows, by id. `columns` are the columns of each table.
    """

    day: str
    crawl: str | None = None
    crawls: Mapping[str, Sums] = field(default_factory=dict)
    files: tuple[File, ...] = ()
    columns: Mapping[str, tuple[Column, ...]] = field(default_factory=dict)

    @property
    def path(self) -> str:
        return manifest_path(self.day, self.crawl)

    @property
    def rows(self) -> Mapping[str, int]:
        """Number of rows of each table. Rows are counted once, not once per format."""
        total: Counter[str] = Counter()
        for sums in self.crawls.values():
            total.update(sums.rows)
        return dict(sorted(total.items()))

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    def named(self) -> Mapping[str, File]:
        return {file.path: file for file in self.files}


def encode_manifest(manifest: Manifest) -> bytes:
    """Encode a manifest as ASCII JSON. The same files give the same bytes."""
    body = {
        "schema": SCHEMA,
        "day": manifest.day,
        "crawl": manifest.crawl,
        "rows": manifest.rows,
        "crawls": {crawl: _sums(sums) for crawl, sums in sorted(manifest.crawls.items())},
        "files": [*map(asdict, manifest.files)],
        "columns": {
            table: columns_as_json(columns) for table, columns in sorted(manifest.columns.items())
        },
    }
    return json.dumps(body, indent=1).encode() + b"\n"


def exported_detail(manifest: Manifest, key: str, bucket: str) -> dict[str, Any]:
    """Return the detail of the event that announces an export.

    Its `id` follows from the manifest.
    """
    digest = sha256(encode_manifest(manifest)).hexdigest()
    whose = (manifest.day, manifest.crawl, digest[:ID_DIGITS])
    return {
        "id": "-".join(part for part in whose if part is not None),
        "day": manifest.day,
        "crawl": manifest.crawl,
        "bucket": bucket,
        "manifest": key,
        "sha256": digest,
        "rows": dict(manifest.rows),
        "files": len(manifest.files),
        "bytes": manifest.bytes,
    }


def decode_manifest(body: bytes) -> Manifest | None:
    """Parse a manifest. Returns None if it is invalid or has another schema."""
    try:
        raw = json.loads(body)
        if raw["schema"] != SCHEMA:
            return None
        return Manifest(
            day=raw["day"],
            crawl=raw["crawl"],
            crawls={crawl: Sums(**sums) for crawl, sums in raw["crawls"].items()},
            files=tuple(File(**file) for file in raw["files"]),
            columns={table: columns_of_json(rows) for table, rows in raw["columns"].items()},
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def columns_as_json(columns: Iterable[Column]) -> list[list[Any]]:
    return [[column.name, str(column.type), column.many] for column in columns]


def columns_of_json(raw: Iterable[list[Any]]) -> tuple[Column, ...]:
    return tuple(Column(name=name, type=Type(kind), many=many) for name, kind, many in raw)


def _sums(sums: Sums) -> dict[str, Any]:
    return {
        "name": sums.name,
        "rows": dict(sorted(sums.rows.items())),
        "outcomes": dict(sorted(sums.outcomes.items())),
    }


# --- days ---------------------------------------------------------------------------------------


def check_day(day: object) -> str:
    """Return a valid day, `YYYY-MM-DD`. Raises ExportEventError for anything else."""
    try:
        # Python also parses 20261121 and 2026-W47-6. Only the form YYYY-MM-DD is accepted.
        if isinstance(day, str) and date.fromisoformat(day).isoformat() == day:
            return day
    except ValueError:
        pass
    raise ExportEventError(f"a day is written YYYY-MM-DD (2026-11-21), not {day!r}"[:200])


def days_between(first_ms: int, last_ms: int) -> tuple[str, ...]:
    """Return the UTC days that a time span overlaps."""
    return tuple(
        day_of(number * DAY_MS) for number in range(first_ms // DAY_MS, last_ms // DAY_MS + 1)
    )


# --- single pages --------------------------------------------------------------------------------


def page_as_json(record: PageRecord) -> dict[str, Any]:
    row = {column.name: getattr(record, column.name) for column in PAGES.columns}
    found = dict(zip(row, _PAGE(row), strict=True))
    return found | {"fetched_at": iso(record.fetched_at)}


_PAGE = cells_of(PAGES)
