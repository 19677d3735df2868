"""CSV that a spreadsheet opens by a double click, and that runs nothing there.

Rules
- RFC 4180: commas, CR LF, quotes doubled, names of columns first; UTF-8 with a byte order mark,
  without which Excel takes it for the machine's own charset. Not compressed: Excel opens no
  `.csv.gz`, and small files are what Parquet is for. (Where the comma is the decimal sign,
  Excel splits at semicolons: Data > From Text/CSV reads the file there.)
- What is empty is empty, and a text without characters is `""`.
- A spreadsheet takes a cell that begins with = + - @, a tab or an end of line for a formula (OWASP,
  "CSV Injection"; signs of full width too). Such a text gets an apostrophe before it, and so does
  one that begins with apostrophes and then such a sign: a reader takes one off where apostrophes
  and such a sign begin a text, and has what was there. Numbers stay as they are.
- Control characters other than tab and ends of lines are left out: CSV has no way to write them
  that a terminal does not obey, and NUL ends the file for some readers.
- A moment is ISO 8601 in UTC, a decimal its digits, a list its JSON.
- A cell of more than 32,767 characters, which Excel cuts, is written whole: others read it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from orbweaver.exporting.cells import Cells, iso
from orbweaver.exporting.formats.erasing import Erased
from orbweaver.exporting.formats.jsonl import safe, text_of
from orbweaver.model.columns import Column, Table, Type

if TYPE_CHECKING:
    from orbweaver.exporting.formats.erasing import ErasureFilter
    from orbweaver.exporting.formats.hashed_file import HashedFile, Made

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
END = "\r\n"
CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
FORMULA = re.compile("'*[-=+@\t\r\n\uff1d\uff0b\uff0d\uff20]")
QUOTED = re.compile('[",\r\n]')
# A cell as it stands there, and what follows it.
CELL = re.compile(r'("(?:[^"]|"")*"|[^,\r\n]*)(,|\r\n)')


class CsvWriter:
    """Writes rows as lines of cells."""

    def __init__(self, table: Table, sink: HashedFile) -> None:
        self._cells = Cells.of(table)
        self._texts = tuple(_text_of(column) for column in table.columns)
        self._sink = sink
        self._sink.write(BYTE_ORDER_MARK)
        self._write([_cell(column.name) for column in table.columns])
        self.rows = 0

    @property
    def size(self) -> int:
        """How many bytes are written."""
        return self._sink.bytes

    def add(self, row: Mapping[str, Any]) -> None:
        """Append a row."""
        found = self._cells.of_row(row)
        self._write(
            [
                "" if value is None else text(value)
                for text, value in zip(self._texts, found, strict=True)
            ]
        )
        self.rows += 1

    def close(self) -> Made:
        """End the file."""
        return self._sink.made(self.rows)

    def discard(self) -> None:
        """Give the file up."""
        self._sink.discard()

    def _write(self, texts: list[str]) -> None:
        self._sink.write((",".join(texts) + END).encode())


def _text_of(column: Column) -> Callable[[Any], str]:
    if column.many:
        as_json = text_of(column)
        return lambda values: _cell(safe(as_json(values)))
    return _TEXTS[column.type]


def _cell(text: str) -> str:
    if not text:
        return '""'
    if not text.isprintable():  # rarely: what is left has none of these characters
        text = CONTROLS.sub("", text)
    if FORMULA.match(text):
        text = f"'{text}"
    return _quoted(text)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if QUOTED.search(text) else text or '""'


def _boolean(value: bool) -> str:
    return "true" if value else "false"


_TEXTS: dict[Type, Callable[[Any], str]] = {
    Type.STRING: _cell,
    Type.INTEGER: int.__repr__,
    Type.NUMBER: float.__repr__,
    Type.DECIMAL: str.__str__,
    Type.BOOLEAN: _boolean,
    Type.DATE: str.__str__,
    Type.MOMENT: iso,
}


writer = CsvWriter

# --- without what is erased ----------------------------------------------------------------------


def erased(body: bytes, scope: ErasureFilter) -> Erased:
    """Look through rows."""
    head, *rows = _records(body)
    names = [_text(cell) or "" for cell in head]
    kept = [head]
    changed = 0
    for row in rows:
        cells = dict(zip(names, map(_text, row), strict=True))
        left = scope.row_left(cells)
        if left is None:
            continue
        if left is not cells:
            changed += 1
        cut = [
            raw if left[name] == cells[name] else _raw(left[name])
            for name, raw in zip(names, row, strict=True)
        ]
        kept.append(cut)
    if len(kept) == len(rows) + 1 and not changed:
        return Erased(rows=len(rows), gone={})
    text = "".join(",".join(row) + END for row in kept)
    gone = {"rows": len(rows) + 1 - len(kept), "cells": changed}
    return Erased(body=BYTE_ORDER_MARK + text.encode(), rows=len(kept) - 1, gone=gone)


def outcomes(body: bytes) -> Counter[str]:
    """Count the outcomes in a file of the pages table."""
    head, *rows = _records(body)
    place = head.index("outcome")
    return Counter(_text(row[place]) or "" for row in rows)


def _records(body: bytes) -> Iterator[list[str]]:
    """Read a file's records, each cell as it stands there."""
    text = body.decode("utf-8-sig")
    record: list[str] = []
    for found in CELL.finditer(text):
        record.append(found[1])
        if found[2] != ",":
            yield record
            record = []


def _text(cell: str) -> str | None:
    if cell.startswith('"'):
        return cell[1:-1].replace('""', '"')
    return cell or None


def _raw(text: str | None) -> str:
    return "" if text is None else _quoted(text)
