"""Writers of export files: rows in, one file out, the same bytes for the same rows.

    jsonl     a line of JSON for each row, gzip      parquet   typed columns, zstd
    csv       for spreadsheets                       warc      answers as they came, and their index

Rules
- A writer holds a bounded number of rows, whatever it is given; its file is in the folder that it
  was opened for, by a name that no other writer has there.
- A file is hashed while it is written, and never read back.
- Every row that is added is in the file: values that a column cannot hold are dealt with in
  exporting/cells.py, the same way for all formats.
- A writer ends by `close` or by `discard`; what is left of an interrupted run goes with its folder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from orbweaver.exporting.formats.csv import CsvWriter
from orbweaver.exporting.formats.jsonl import JsonlWriter
from orbweaver.exporting.formats.warc import WarcWriter

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from orbweaver.exporting.formats.hashed_file import Made
    from orbweaver.model.columns import Table

# Of any table; of the pages table there is "warc" as well.
NAMES = ("jsonl", "csv", "parquet")


class Writer(Protocol):
    """A file in the making."""

    @property
    def rows(self) -> int:
        """How many rows were added."""

    @property
    def size(self) -> int:
        """About how many bytes the file would have now; the same after the same rows."""

    def add(self, row: Mapping[str, Any]) -> None:
        """Append a row; columns that it lacks are empty."""

    def close(self) -> Made:
        """End the file."""

    def discard(self) -> None:
        """Give the file up; again, or after `close`, it does nothing."""


def writer(name: str, table: Table, folder: Path) -> Writer:
    """Begin a file of a format, one of `NAMES`, in a folder; ValueError for another name."""
    match name:
        case "jsonl":
            return JsonlWriter(table, folder)
        case "csv":
            return CsvWriter(table, folder)
        case "parquet":
            # 0.2 s and 40 MB, which only those pay who write it.
            from orbweaver.exporting.formats.parquet import ParquetWriter

            return ParquetWriter(table, folder)
        case _:
            raise ValueError(f"{name} is none of {', '.join(NAMES)}")


def warc(folder: Path, name: str) -> WarcWriter:
    """Begin a WARC file and its index; `name` is what the file will be called in the end."""
    return WarcWriter(folder, name)
