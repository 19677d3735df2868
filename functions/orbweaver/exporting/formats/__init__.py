"""Define the formats of export files: name, suffix, and the module that writes and erases.

    jsonl        a line of JSON for each row, gzip
    csv          for spreadsheets
    parquet      typed columns, zstd
    warc         stored responses, and their index
    hashed_file  a file that is hashed while it is written, input and result of erasers

Rules
- A writer holds a limited number of rows. Its file is in the given folder, with a unique name.
- A file is hashed while it is written, and never read back.
- Every added row is in the file. exporting/cells.py converts values that a column cannot hold, the
  same way for all formats.
- A writer ends by `close` or `discard`. Files of an interrupted run are removed with their folder.
- A module is imported on first use of its format, because DuckDB alone takes 0.2 s and 24 MB.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from orbweaver.model.columns import Table
from orbweaver.model.value import value_class

if TYPE_CHECKING:
    from pathlib import Path

    from orbweaver.exporting.formats.hashed_file import (
        Erased,
        ErasureFilter,
        FinishedFile,
        HashedFile,
    )
    from orbweaver.exporting.formats.warc import WarcWriter


class Block(Protocol):
    """Several rows of a table, as lines of JSON and as cells."""

    @property
    def number(self) -> int: ...

    @property
    def lines(self) -> bytes: ...

    def cells(self) -> Iterator[Sequence[Any]]: ...


class Writer(Protocol):
    """Writes one file with a limited number of rows in memory, and ends by `close` or `discard`.

    Every added row is in the file. Its cells (exporting/cells.py) are the same for all formats.
    """

    @property
    def size(self) -> int:
        """Approximate size of the file so far, in bytes. Equal rows always give the same size."""

    def add(self, cells: Sequence[Any]) -> None:
        """Append a row. Its cells have the order of the columns."""

    def add_block(self, block: Block) -> None:
        """Append several rows."""

    def close(self) -> FinishedFile:
        pass

    def discard(self) -> None:
        """Discard the file. Has no effect after `close` or when repeated."""


class Eraser(Protocol):
    """Erases data from files of one format."""

    def erased(self, body: bytes, scope: ErasureFilter) -> Erased:
        """Erase data from a file. Raises WarcError, ValueError or OSError if it is unreadable."""


class TableFormat(Eraser, Protocol):
    """A format whose files hold rows of a table."""

    def writer(self, table: Table, sink: HashedFile) -> Writer:
        pass

    def outcomes(self, body: bytes) -> Counter[str]: ...


@value_class
class Format:
    """A file format. `module` imports and returns its module."""

    name: str
    suffix: str
    module: Callable[[], Eraser]


@value_class
class RowFormat(Format):
    """A format that can contain the rows of any table."""

    module: Callable[[], TableFormat]


# A module is imported on first use of its format, because DuckDB alone takes 0.2 s and 24 MB.
def _jsonl() -> TableFormat:
    from orbweaver.exporting.formats import jsonl

    return jsonl


def _csv() -> TableFormat:
    from orbweaver.exporting.formats import csv

    return csv


def _parquet() -> TableFormat:
    from orbweaver.exporting.formats import parquet

    return parquet


def _warc() -> Eraser:
    from orbweaver.exporting.formats import warc

    return warc


def _index() -> Eraser:
    from orbweaver.exporting.formats.warc import Index

    return Index


WARC = "warc"  # only for the pages table, and only if bodies are stored
ARCHIVE = Format(name=WARC, suffix=".warc.gz", module=_warc)
INDEX = Format(name=WARC, suffix=".cdxj", module=_index)
ROWS = (
    RowFormat(name="jsonl", suffix=".jsonl.gz", module=_jsonl),
    RowFormat(name="csv", suffix=".csv", module=_csv),
    RowFormat(name="parquet", suffix=".parquet", module=_parquet),
)
# Names of the formats for all tables, and of all formats.
NAMES = tuple(one.name for one in ROWS)
FORMATS = (*NAMES, WARC)


def writer(name: str, table: Table, folder: Path) -> Writer:
    """Create a file of a table with a unique name in a folder. `name` is the format.

    Raises ValueError for an unknown format.
    """
    from orbweaver.exporting.formats.hashed_file import HashedFile

    for one in ROWS:
        if one.name == name:
            return one.module().writer(table, HashedFile(folder, one.suffix))
    raise ValueError(f"{name} is none of {', '.join(NAMES)}")


def archive(folder: Path, name: str) -> WarcWriter:
    """Create a WARC file and its index. `name` is the final name of the file."""
    from orbweaver.exporting.formats.hashed_file import HashedFile
    from orbweaver.exporting.formats.warc import WarcWriter

    return WarcWriter(HashedFile(folder, ARCHIVE.suffix), HashedFile(folder, INDEX.suffix), name)


def erased(path: str, body: bytes, scope: ErasureFilter) -> Erased:
    """Erase data from a file of an export or of stored pages.

    The suffix of `path` determines the format. See `Eraser.erased`.
    """
    from orbweaver.exporting.formats.hashed_file import Erased

    for one in (*ROWS, ARCHIVE, INDEX):
        if path.endswith(one.suffix):
            return one.module().erased(body, scope)
    return Erased(gone={})


def outcomes(path: str, body: bytes) -> Counter[str] | None:
    """Count the outcomes in a file of the pages table. Returns None for other formats."""
    for one in ROWS:
        if path.endswith(one.suffix):
            return one.module().outcomes(body)
    return None
