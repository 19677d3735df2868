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
from collections.abc import Callable
from typing import Any

from orbweaver.exporting.cells import iso
from orbweaver.exporting.formats.erasing import Erased, ErasureFilter, lines_left
from orbweaver.exporting.formats.hashed_file import HashedFile, TextWriter
from orbweaver.exporting.formats.jsonl import TEXTS, safe, text_of
from orbweaver.model.columns import Column, Table, Type

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
END = "\r\n"
CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
FORMULA = re.compile("'*[-=+@\t\r\n\uff1d\uff0b\uff0d\uff20]")
QUOTED = re.compile('[",\r\n]')
# A cell as it stands there, and a record of them.
CELL = re.compile(r'("(?:[^"]|"")*"|[^,\r\n]*)(?:,|\r\n)')
_CELL = rb'(?:"(?:[^"]|"")*+"|[^",\r\n]*+)'
RECORD = re.compile(rb"%b(?:,%b)*+\r\n" % (_CELL, _CELL))


class CsvWriter(TextWriter):
    """Writes rows as lines of cells."""

    EMPTY = ""

    def __init__(self, table: Table, sink: HashedFile) -> None:
        super().__init__(table, sink, _text_of)
        self._sink.write(BYTE_ORDER_MARK)
        self._write([cell_of(column.name) for column in table.columns])

    def _write(self, texts: list[str]) -> None:
        self._sink.write((",".join(texts) + END).encode())


def _text_of(column: Column) -> Callable[[Any], str]:
    if column.many:
        as_json = text_of(column)
        return lambda values: cell_of(safe(as_json(values)))
    return _TEXTS[column.type]


def cell_of(text: str) -> str:
    """Write a text as a cell that no spreadsheet takes for a formula."""
    if not text:
        return '""'
    if not text.isprintable():  # rarely: what is left has none of these characters
        text = CONTROLS.sub("", text)
    if FORMULA.match(text):
        text = f"'{text}"
    return _quoted(text)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if QUOTED.search(text) else text or '""'


_TEXTS = TEXTS | {Type.STRING: cell_of, Type.DATE: str.__str__, Type.MOMENT: iso}


writer = CsvWriter

# --- without what is erased ----------------------------------------------------------------------


def erased(body: bytes, scope: ErasureFilter) -> Erased:
    """Look through rows."""
    head, *rows = _records(body)
    names = [_text(cell) or "" for cell in _cells(head)]

    def left_of(row: bytes, scope: ErasureFilter) -> bytes | None:
        cells = _cells(row)
        texts = dict(zip(names, map(_text, cells), strict=True))
        left = scope.row_left(texts)
        if left is None or left is texts:
            return None if left is None else row
        cut = [
            cell if left[name] == texts[name] else _raw(left[name])
            for name, cell in zip(names, cells, strict=True)
        ]
        return (",".join(cut) + END).encode()

    return lines_left(rows, scope, left_of, lambda kept: b"".join([BYTE_ORDER_MARK, head, *kept]))


def outcomes(body: bytes) -> Counter[str]:
    """Count the outcomes in a file of the pages table."""
    head, *rows = map(_cells, _records(body))
    place = head.index("outcome")
    return Counter(_text(row[place]) or "" for row in rows)


def _records(body: bytes) -> list[bytes]:
    """Take a file apart into its records, as they stand there."""
    found: list[bytes] = []
    at = len(BYTE_ORDER_MARK) if body.startswith(BYTE_ORDER_MARK) else 0
    while record := RECORD.match(body, at):
        found.append(record[0])
        at = record.end()
    if at != len(body):
        raise ValueError(f"no CSV from byte {at:,} on")
    return found


def _cells(record: bytes) -> list[str]:
    return [found[1] for found in CELL.finditer(record.decode())]


def _text(cell: str) -> str | None:
    if cell.startswith('"'):
        return cell[1:-1].replace('""', '"')
    return cell or None


def _raw(text: str | None) -> str:
    return "" if text is None else _quoted(text)
