"""Write CSV that opens in spreadsheets and runs no formulas there.

RFC 4180: commas, CR LF, doubled quotes, a header line. Not compressed, because Excel does not open
`.csv.gz`. If the comma is the decimal sign, Excel splits at semicolons: there, Data > From Text/CSV
reads the file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from orbweaver.exporting.cells import iso
from orbweaver.exporting.formats.hashed_file import (
    Erased,
    ErasureFilter,
    HashedFile,
    TextWriter,
    lines_left,
)
from orbweaver.exporting.formats.jsonl import TEXTS, safe, text_of
from orbweaver.model.columns import Column, Table, Type

# Without it Excel uses the machine's charset.
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
END = "\r\n"
# Removed: CSV cannot write them in a form that terminals ignore, and NUL ends the file for some
# readers.
CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
# A spreadsheet treats a text that begins with such a sign as a formula, so the text gets an
# apostrophe prefix (OWASP, "CSV Injection"; full-width signs as well). A text with apostrophes
# before the sign gets one more. So a reader restores a text that begins like this by removing one
# apostrophe. Numbers stay unchanged.
FORMULA = re.compile("'*[-=+@\t\r\n\uff1d\uff0b\uff0d\uff20]")
QUOTED = re.compile('[",\r\n]')
# Patterns of one encoded cell, and of one encoded record.
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
    """Encode a text as a cell that no spreadsheet treats as a formula.

    An empty text becomes a pair of quotes, an empty value an empty cell. Cells above 32,767
    characters are written whole, although Excel truncates them.
    """
    if not text:
        return '""'
    if not text.isprintable():  # rare, and true for every text with such a character
        text = CONTROLS.sub("", text)
    if FORMULA.match(text):
        text = f"'{text}"
    return _quoted(text)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if QUOTED.search(text) else text or '""'


# A time is written as ISO 8601 in UTC, a decimal as its digits, a list as JSON.
_TEXTS = TEXTS | {Type.STRING: cell_of, Type.DATE: str.__str__, Type.MOMENT: iso}


writer = CsvWriter

# --- joining -------------------------------------------------------------------------------------


def columns_of(body: bytes) -> list[str]:
    """Return the column names of a file as encoded cells. `body` may be only the first line."""
    head = body.removeprefix(BYTE_ORDER_MARK).partition(END.encode())[0]
    return _cells(head + END.encode())


def rows_below(columns: Sequence[str], body: bytes) -> bytes:
    """Return the rows of a file, converted to these columns.

    A column that the file does not have is empty.
    """
    names = columns_of(body)
    if names == list(columns):
        return body.partition(END.encode())[2]
    found = []
    for row in _records(body)[1:]:
        cells = dict(zip(names, _cells(row), strict=True))
        found.append(",".join(cells.get(name, "") for name in columns) + END)
    return "".join(found).encode()


# --- erasing -------------------------------------------------------------------------------------


def erased(body: bytes, scope: ErasureFilter) -> Erased:
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
    head, *rows = map(_cells, _records(body))
    place = head.index("outcome")
    return Counter(_text(row[place]) or "" for row in rows)


def _records(body: bytes) -> list[bytes]:
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
