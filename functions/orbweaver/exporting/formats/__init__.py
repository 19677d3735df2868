"""The formats of export files: name, suffix, and the module that writes and erases.

jsonl           a line of JSON for each row, gzip
csv             for spreadsheets
parquet         typed columns, zstd
duckdb_parquet  the same, where pyarrow is not installed
warc            answers as they came, and their index
surt            keys of that index
hashed_file     a file, hashed as it is written
erasing         what erasers are given and give back

Rules
- A writer holds a bounded number of rows, whatever it is given; its file is in the folder that it
  was opened for, by a name that no other writer has there.
- A file is hashed while it is written, and never read back.
- Every row that is added is in the file: values that a column cannot hold are dealt with in
  exporting/cells.py, the same way for all formats.
- A writer ends by `close` or by `discard`; what is left of an interrupted run goes with its folder.
- A module is imported when a file of its format is at hand: pyarrow alone takes 0.2 s and 40 MB.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from orbweaver.model.columns import Table

if TYPE_CHECKING:
    from pathlib import Path

    from orbweaver.exporting.formats.erasing import Erased, ErasureFilter
    from orbweaver.exporting.formats.hashed_file import HashedFile, Made
    from orbweaver.exporting.formats.warc import WarcWriter


class Writer(Protocol):
    """A file in the making."""

    @property
    def size(self) -> int:
        """About how many bytes the file would have now; the same after the same rows."""

    def add(self, row: Mapping[str, Any]) -> None:
        """Append a row; columns that it lacks are empty."""

    def close(self) -> Made:
        """End the file."""

    def discard(self) -> None:
        """Give the file up; again, or after `close`, it does nothing."""


class Eraser(Protocol):
    """What is offered for every file."""

    def erased(self, body: bytes, scope: ErasureFilter) -> Erased:
        """Look through a file; raises WarcError, ValueError or OSError for an unreadable one."""


class TableFormat(Eraser, Protocol):
    """A module whose files hold the rows of a table."""

    def writer(self, table: Table, sink: HashedFile) -> Writer:
        """Begin a file."""

    def outcomes(self, body: bytes) -> Counter[str]:
        """Count the outcomes in a file of the pages table; raises as `erased` does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A kind of file."""

    name: str
    suffix: str
    module: Callable[[], Eraser]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFormat(Format):
    """One that any table may have."""

    module: Callable[[], TableFormat]


def _jsonl() -> TableFormat:
    from orbweaver.exporting.formats import jsonl

    return jsonl


def _csv() -> TableFormat:
    from orbweaver.exporting.formats import csv

    return csv


def _parquet() -> TableFormat:
    """Choose pyarrow, which functions have, or else DuckDB, which any installation has."""
    try:
        from orbweaver.exporting.formats import parquet
    except ModuleNotFoundError:
        from orbweaver.exporting.formats import duckdb_parquet

        return duckdb_parquet
    return parquet


def _warc() -> Eraser:
    from orbweaver.exporting.formats import warc

    return warc


def _index() -> Eraser:
    from orbweaver.exporting.formats.warc import Index

    return Index


WARC = "warc"  # of the pages table alone, where bodies are stored
ARCHIVE = Format(name=WARC, suffix=".warc.gz", module=_warc)
INDEX = Format(name=WARC, suffix=".cdxj", module=_index)
ROWS = (
    RowFormat(name="jsonl", suffix=".jsonl.gz", module=_jsonl),
    RowFormat(name="csv", suffix=".csv", module=_csv),
    RowFormat(name="parquet", suffix=".parquet", module=_parquet),
)
# Names of those that any table may have, and of all.
NAMES = tuple(one.name for one in ROWS)
FORMATS = (*NAMES, WARC)


def writer(name: str, table: Table, folder: Path) -> Writer:
    """Begin a file of a format, one of `NAMES`, in a folder; ValueError for another name."""
    from orbweaver.exporting.formats.hashed_file import HashedFile

    for one in ROWS:
        if one.name == name:
            return one.module().writer(table, HashedFile(folder, one.suffix))
    raise ValueError(f"{name} is none of {', '.join(NAMES)}")


def archive(folder: Path, name: str) -> WarcWriter:
    """Begin a WARC file and its index; `name` is what the file will be called in the end."""
    from orbweaver.exporting.formats.hashed_file import HashedFile
    from orbweaver.exporting.formats.warc import WarcWriter

    return WarcWriter(HashedFile(folder, ARCHIVE.suffix), HashedFile(folder, INDEX.suffix), name)


def erased(path: str, body: bytes, scope: ErasureFilter) -> Erased:
    """Look through a file of an export or a segment, by its suffix; see `Eraser.erased`."""
    from orbweaver.exporting.formats.erasing import Erased

    for one in (*ROWS, ARCHIVE, INDEX):
        if path.endswith(one.suffix):
            return one.module().erased(body, scope)
    return Erased(gone={})


def outcomes(path: str, body: bytes) -> Counter[str] | None:
    """Count the outcomes in a file of the pages table; None if it does not say."""
    for one in ROWS:
        if path.endswith(one.suffix):
            return one.module().outcomes(body)
    return None
