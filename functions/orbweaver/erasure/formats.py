"""Files without what is to be forgotten: read, and written as their writers would have.

Rules
- What is left is byte for byte what it was, but for cells that mention what is forgotten.
- In a WARC file a tombstone of the same length takes the place of a record, so that everything
  behind it stays where indexes and page records say it is; its index loses the line.
- A file of which no row is left is none.
"""

from __future__ import annotations

import json
import re
import zlib
from collections import Counter
from dataclasses import dataclass
from io import BytesIO
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any

from orbweaver.erasure.rules import row_left
from orbweaver.exporting.formats import jsonl
from orbweaver.exporting.formats.csv import BYTE_ORDER_MARK, QUOTED
from orbweaver.frontier import warc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from orbweaver.erasure.scope import Meant

# A cell as it stands there, and what follows it.
CELL = re.compile(r'("(?:[^"]|"")*"|[^,\r\n]*)(,|\r\n)')


@dataclass(frozen=True, slots=True, kw_only=True)
class Blotted:
    """A file that was looked through: its new body if it is another one by now, its rows.

    `gone` counts what is not there any more by kind, `mentions` what stays though it mentions it.
    """

    body: bytes | None = None
    rows: int = 0
    gone: Mapping[str, int]
    mentions: int = 0


class _Number(str):
    """A number by its digits."""

    __slots__ = ()


def blotted(path: str, body: bytes, meant: Meant) -> Blotted:
    """Look through a file of an export or a segment, by what its name ends in.

    Raises WarcError, ValueError or OSError for one that cannot be read.
    """
    for suffix, look in _READERS.items():
        if path.endswith(suffix):
            return look(body, meant)
    return Blotted(gone={})


def outcomes(path: str, body: bytes) -> Counter[str] | None:
    """Count the outcomes in a file of the pages table; None if it does not say.

    Raises ValueError or OSError for one that cannot be read.
    """
    if path.endswith(jsonl.SUFFIX):
        return Counter(str(json.loads(line)["outcome"]) for line in _lines(body))
    if path.endswith(".csv"):
        head, *rows = _records(body)
        place = head.index("outcome")
        return Counter(_text(row[place]) or "" for row in rows)
    if path.endswith(".parquet"):
        from pyarrow import parquet as pq

        column = pq.read_table(BytesIO(body), columns=["outcome"]).column(0)
        return Counter(map(str, column.to_pylist()))
    return None


# --- JSON lines ---------------------------------------------------------------------------------


def _lines(body: bytes) -> list[bytes]:
    try:
        text = zlib.decompress(body, jsonl.GZIP_WBITS)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    return text.splitlines(keepends=True)


def _packed(lines: list[bytes]) -> bytes:
    stream = zlib.compressobj(jsonl.LEVEL, zlib.DEFLATED, jsonl.GZIP_WBITS)
    return b"".join([*map(stream.compress, lines), stream.flush()])


def _jsonl(body: bytes, meant: Meant) -> Blotted:
    """Rows as objects, a line each; a snapshot's are arrays, and go whole."""
    return _filtered(_lines(body), meant, _line_left, _packed)


def _line_left(line: bytes, meant: Meant) -> bytes | None:
    row = json.loads(line, parse_float=_Number)
    if isinstance(row, list):
        return _entry_left(line, row, meant)
    left = row_left(row, meant)
    if left is None or left is row:
        return None if left is None else line
    cells = (f"{encode_basestring(name)}:{_json(value)}" for name, value in left.items())
    text = "{" + ",".join(cells) + "}\n"
    return jsonl.UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode()


def _entry_left(line: bytes, row: list[Any], meant: Meant) -> bytes | None:
    """An entry of a snapshot: what is of it goes, and the mention of who led there."""
    if any(isinstance(cell, str) and (meant.url(cell) or meant.run(cell)) for cell in row[:-1]):
        return None
    if row and isinstance(row[-1], str) and meant.url(row[-1]):
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


def _filtered(
    lines: list[bytes],
    meant: Meant,
    left_of: Callable[[bytes, Meant], bytes | None],
    packed: Callable[[list[bytes]], bytes],
) -> Blotted:
    needed = [meant.line(line) or bool(meant.runs) for line in lines]
    if not any(needed):
        return Blotted(rows=len(lines), gone={})
    left = [
        left_of(line, meant) if look else line for line, look in zip(lines, needed, strict=True)
    ]
    kept = [line for line in left if line is not None]
    if kept == lines:
        return Blotted(rows=len(lines), gone={})
    changed = sum(new is not None and new != old for new, old in zip(left, lines, strict=True))
    gone = {"rows": len(lines) - len(kept), "cells": changed}
    return Blotted(body=packed(kept), rows=len(kept), gone=gone)


# --- CSV ----------------------------------------------------------------------------------------


def _csv(body: bytes, meant: Meant) -> Blotted:
    head, *rows = _records(body)
    names = [_text(cell) or "" for cell in head]
    kept = [head]
    changed = 0
    for row in rows:
        cells = dict(zip(names, map(_text, row), strict=True))
        left = row_left(cells, meant)
        if left is None:
            continue
        if left is not cells:
            changed += 1
        cut = [
            raw if left[name] == cells[name] else _cell(left[name])
            for name, raw in zip(names, row, strict=True)
        ]
        kept.append(cut)
    if len(kept) == len(rows) + 1 and not changed:
        return Blotted(rows=len(rows), gone={})
    text = "".join(",".join(row) + "\r\n" for row in kept)
    gone = {"rows": len(rows) + 1 - len(kept), "cells": changed}
    return Blotted(body=BYTE_ORDER_MARK + text.encode(), rows=len(kept) - 1, gone=gone)


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


def _cell(text: str | None) -> str:
    if text is None:
        return ""
    return '"' + text.replace('"', '""') + '"' if QUOTED.search(text) else text or '""'


# --- Parquet ------------------------------------------------------------------------------------


def _parquet(body: bytes, meant: Meant) -> Blotted:
    import pyarrow as pa
    from pyarrow import parquet as pq

    from orbweaver.exporting.formats.parquet import GROUP_ROWS_MAX, LEVEL

    table = pq.read_table(BytesIO(body))
    names = [field.name for field in table.schema if _holds_text(field.type)]
    columns = {name: table.column(name).to_pylist() for name in names}
    mask, changed = [], 0
    for place in range(table.num_rows):
        row = {name: column[place] for name, column in columns.items()}
        left = row_left(row, meant)
        mask.append(left is not None)
        if left is not None and left is not row:
            changed += 1
            for name, column in columns.items():
                column[place] = left[name]
    if all(mask) and not changed:
        return Blotted(rows=table.num_rows, gone={})
    for name in names if changed else ():
        place = table.schema.get_field_index(name)
        field = table.schema.field(place)
        table = table.set_column(place, field, pa.array(columns[name], field.type))
    table = table.filter(pa.array(mask))
    sink = BytesIO()
    with pq.ParquetWriter(
        sink,
        table.schema,
        compression="zstd",
        compression_level=LEVEL,
        store_schema=False,
        store_decimal_as_integer=True,
    ) as file:
        file.write_table(table, row_group_size=GROUP_ROWS_MAX)
    gone = {"rows": mask.count(False), "cells": changed}
    return Blotted(body=sink.getvalue(), rows=table.num_rows, gone=gone)


def _holds_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind.value_type if pa.types.is_list(kind) else kind))


# --- WARC ---------------------------------------------------------------------------------------


def _warc(body: bytes, meant: Meant) -> Blotted:
    kept = bytearray(body)
    gone: Counter[str] = Counter()
    rows = mentions = 0
    for member in warc.members(body):
        record = member.record
        if warc.is_tombstone(record):
            continue
        mentioned = not meant.url(record.url) and meant.bytes(record.payload)
        if meant.url(record.url) or (mentioned and meant.mentions):
            end = member.offset + member.length
            kept[member.offset : end] = warc.tombstone(member.length)
            if record.type != "request":  # which goes with its response
                gone["texts" if record.type == "conversion" else "bodies"] += 1
            continue
        mentions += mentioned
        rows += record.type == "response"
    return Blotted(body=bytes(kept) if gone else None, rows=rows, gone=gone, mentions=mentions)


def _cdxj(body: bytes, meant: Meant) -> Blotted:
    return _filtered(body.splitlines(keepends=True), meant, _index_left, b"".join)


def _index_left(line: bytes, meant: Meant) -> bytes | None:
    _, _, entry = line.decode().split(" ", 2)
    return None if meant.url(json.loads(entry)["url"]) else line


_READERS: dict[str, Callable[[bytes, Meant], Blotted]] = {
    jsonl.SUFFIX: _jsonl,
    ".csv": _csv,
    ".parquet": _parquet,
    ".warc.gz": _warc,
    ".cdxj": _cdxj,
}
