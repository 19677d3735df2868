"""JSON lines: a row is a line of UTF-8, with every column in order, null where empty.

Rules
- Characters that a reader may take for a line's end or a terminal for a command are escaped, so
  that a line is a line for everybody; half a surrogate pair is U+FFFD.
- A decimal is a JSON number of exactly its digits, a moment is ISO 8601 in UTC to the millisecond.
- gzip (RFC 1952) without time or file name. By zlib, though ISA-L is three times as fast: what
  ISA-L makes of the same text depends on the processor, and two runs over the same rows must not
  differ.
"""

from __future__ import annotations

import re
import zlib
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any

from orbweaver.exporting.cells import Cells, iso
from orbweaver.exporting.formats.hashed_file import Sink
from orbweaver.model.columns import Type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from orbweaver.exporting.formats.hashed_file import Made
    from orbweaver.model.columns import Column, Table

SUFFIX = ".jsonl.gz"
LEVEL = 6
# zlib's window of 32 KiB, in gzip's framing: it writes mtime 0 and no name.
GZIP_WBITS = 31
# C1 controls and DEL steer terminals, U+2028 and U+2029 end lines for some readers: JSON leaves
# all of them raw.
UNSAFE = re.compile("[\x7f-\x9f\u2028\u2029]")


class JsonlWriter:
    """Writes rows as lines of JSON."""

    def __init__(self, table: Table, folder: Path) -> None:
        self._cells = Cells.of(table)
        self._texts = tuple(text_of(column) for column in table.columns)
        keys = [encode_basestring(column.name).replace("%", "%%") for column in table.columns]
        self._line = "{" + ",".join(f"{key}:%s" for key in keys) + "}\n"
        self._stream = zlib.compressobj(LEVEL, zlib.DEFLATED, GZIP_WBITS)
        self._sink = Sink(folder, SUFFIX)
        self.rows = 0

    @property
    def size(self) -> int:
        """How many bytes are written."""
        return self._sink.bytes

    def add(self, row: Mapping[str, Any]) -> None:
        """Append a row."""
        found = self._cells.of_row(row)
        line = self._line % tuple(
            [
                "null" if value is None else text(value)
                for text, value in zip(self._texts, found, strict=True)
            ]
        )
        piece = self._stream.compress(safe(line).encode())
        if piece:
            self._sink.write(piece)
        self.rows += 1

    def close(self) -> Made:
        """End the file."""
        self._sink.write(self._stream.flush())
        return self._sink.made(self.rows)

    def discard(self) -> None:
        """Give the file up."""
        self._sink.discard()


def text_of(column: Column) -> Callable[[Any], str]:
    """Return what writes the values of a column as JSON."""
    text = _TEXTS[column.type]
    if not column.many:
        return text

    def many(values: list[Any]) -> str:
        return f"[{','.join('null' if value is None else text(value) for value in values)}]"

    return many


def safe(text: str) -> str:
    """Escape in JSON what a reader may take for more than a character."""
    return text if text.isascii() and "\x7f" not in text else UNSAFE.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def _moment(at_ms: int) -> str:
    return f'"{iso(at_ms)}"'


_TEXTS: dict[Type, Callable[[Any], str]] = {
    Type.STRING: encode_basestring,
    Type.INTEGER: int.__repr__,
    Type.NUMBER: float.__repr__,
    Type.DECIMAL: str.__str__,
    Type.BOOLEAN: _boolean,
    Type.DATE: encode_basestring,
    Type.MOMENT: _moment,
}
