"""Write JSON lines: a row is a line of UTF-8 with all columns in order, null if empty.

A decimal is a JSON number with exactly its digits, a time is ISO 8601 in UTC with milliseconds.
Files are gzip (RFC 1952) without modification time or file name.
"""

from __future__ import annotations

import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any, TypeAlias

from orbweaver.exporting.cells import iso
from orbweaver.exporting.formats.hashed_file import (
    Erased,
    ErasureFilter,
    FinishedFile,
    HashedFile,
    TextWriter,
    lines_left,
)
from orbweaver.model.columns import Column, Table, Type

if TYPE_CHECKING:
    from orbweaver.exporting.formats import Block

# This level takes half of the time of zlib's default, and files are a tenth larger. zlib is used,
# although ISA-L is three times as fast. ISA-L's output depends on the processor, and two runs over
# the same rows must give the same bytes.
LEVEL = 3
# zlib's window of 32 KiB in a gzip file. zlib writes no time and no file name.
GZIP_WBITS = 31
# Characters that are escaped in addition to JSON's. C1 controls and DEL control terminals, and some
# readers end a line at U+2028 and U+2029.
UNSAFE = re.compile("[\x7f-\x9f\u2028\u2029]")


_Text: TypeAlias = "Callable[[Any], str]"


class JsonlWriter(TextWriter):
    """Writes rows as lines of JSON."""

    EMPTY = "null"

    def __init__(self, table: Table, sink: HashedFile) -> None:
        super().__init__(table, sink, text_of)
        self._line = line_of(table.columns)
        self._stream = zlib.compressobj(LEVEL, zlib.DEFLATED, GZIP_WBITS)

    def add_block(self, block: Block) -> None:
        self._put(block.lines)
        self.rows += block.number

    def close(self) -> FinishedFile:
        self._sink.write(self._stream.flush())
        return super().close()

    def _write(self, texts: list[str]) -> None:
        self._put(safe(self._line % tuple(texts)).encode())

    def _put(self, lines: bytes) -> None:
        piece = self._stream.compress(lines)
        if piece:
            self._sink.write(piece)


def line_of(columns: Sequence[Column]) -> str:
    """Return a line with a place for the text of each column."""
    keys = [encode_basestring(column.name).replace("%", "%%") for column in columns]
    return "{" + ",".join(f"{key}:%s" for key in keys) + "}\n"


def text_of(column: Column, texts: Mapping[Type, _Text] | None = None) -> _Text:
    text = (texts or TEXTS)[column.type]
    if not column.many:
        return text

    def many(values: list[Any]) -> str:
        return f"[{','.join('null' if value is None else text(value) for value in values)}]"

    return many


def safe(text: str) -> str:
    return text if text.isascii() and "\x7f" not in text else UNSAFE.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def _moment(at_ms: int) -> str:
    return f'"{iso(at_ms)}"'


TEXTS: dict[Type, Callable[[Any], str]] = {
    Type.STRING: encode_basestring,
    Type.INTEGER: int.__repr__,
    Type.NUMBER: float.__repr__,
    Type.DECIMAL: str.__str__,
    Type.BOOLEAN: _boolean,
    Type.DATE: encode_basestring,
    Type.MOMENT: _moment,
}


writer = JsonlWriter

# --- erasing -------------------------------------------------------------------------------------


class _Number(str):
    """A number with its original digits."""

    __slots__ = ()


def _lines(body: bytes) -> list[bytes]:
    try:
        text = zlib.decompress(body, GZIP_WBITS)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    return text.splitlines(keepends=True)


def _packed(lines: list[bytes]) -> bytes:
    stream = zlib.compressobj(LEVEL, zlib.DEFLATED, GZIP_WBITS)
    return b"".join([*map(stream.compress, lines), stream.flush()])


def erased(body: bytes, scope: ErasureFilter) -> Erased:
    """Erase data from rows.

    A row of a snapshot (an array) is erased whole, except for its referrer.
    """
    return lines_left(_lines(body), scope, _line_left, _packed)


def outcomes(body: bytes) -> Counter[str]:
    return Counter(str(json.loads(line)["outcome"]) for line in _lines(body))


def _line_left(line: bytes, scope: ErasureFilter) -> bytes | None:
    row = json.loads(line, parse_float=_Number)
    if isinstance(row, list):
        return _entry_left(line, row, scope)
    left = scope.row_left(row)
    if left is None or left is row:
        return None if left is None else line
    cells = (f"{encode_basestring(name)}:{_json(value)}" for name, value in left.items())
    return safe("{" + ",".join(cells) + "}\n").encode()


def _entry_left(line: bytes, row: list[Any], scope: ErasureFilter) -> bytes | None:
    """Erase a snapshot's entry if its URL or run is selected.

    Else erase only a selected referrer.
    """
    if any(isinstance(cell, str) and (scope.url(cell) or scope.run(cell)) for cell in row[:-1]):
        return None
    if row and isinstance(row[-1], str) and scope.url(row[-1]):
        return json.dumps([*row[:-1], None], separators=(",", ":")).encode() + b"\n"
    return line


def _json(value: Any) -> str:
    match value:
        case _Number():
            return str(value)
        case str():
            return encode_basestring(value)
        case list():
            return f"[{','.join(map(_json, value))}]"
        case dict():
            cells = (f"{encode_basestring(name)}:{_json(cell)}" for name, cell in value.items())
            return "{" + ",".join(cells) + "}"
        case _:
            return json.dumps(value)
