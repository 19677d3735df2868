"""Reads export files back with tools that share no code with the writers.

Every reader returns rows as lists in column order with comparable values: decimals as Decimal,
moments as ms, dates as text, in every format.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
from pyarrow import parquet as pq

from orbweaver.exporting import formats
from orbweaver.exporting.cells import cells_of
from orbweaver.exporting.formats.hashed_file import FinishedFile
from orbweaver.model.columns import Column, Table, Type

Rows = list[list[Any]]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
GUARDED = re.compile("'+[-=+@\t\r\n\uff1d\uff0b\uff0d\uff20]")
# Characters that CSV omits.
CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
csv.field_size_limit(sys.maxsize)


def written(
    name: str, table: Table, rows: Iterable[Mapping[str, Any]], folder: Path
) -> FinishedFile:
    """Write rows in a format, and check the properties that the writer returns."""
    writer = formats.writer(name, table, folder)
    given = [*map(cells_of(table), rows)]
    for row in given:
        writer.add(row)
    made = writer.close()
    body = made.path.read_bytes()
    assert (len(body), hashlib.sha256(body).hexdigest()) == (made.bytes, made.sha256)
    assert made.path.parent == folder
    assert made.path.name.endswith(made.suffix)
    assert made.rows == len(given)
    return made


def read_back(table: Table, rows: list[dict[str, Any]]) -> dict[str, Rows]:
    with TemporaryDirectory() as folder:
        made = {name: written(name, table, rows, Path(folder)) for name in formats.NAMES}
        return {
            f"{reader} of {name}": read(table, made[name].path)
            for name in formats.NAMES
            for reader, read in READERS[name].items()
        }


def values(table: Table, rows: Iterable[Mapping[str, Any]]) -> Rows:
    cells = cells_of(table)
    return [
        [
            _each(column, value, _comparable)
            for column, value in zip(table.columns, cells(row), strict=True)
        ]
        for row in rows
    ]


def for_csv(table: Table, rows: Rows) -> Rows:
    """Return values as CSV stores them: control characters only in lists; an empty text is null."""
    texts = [column.type is Type.STRING and not column.many for column in table.columns]
    return [
        [
            (CONTROLS.sub("", value) or None) if text and value is not None else value
            for text, value in zip(texts, row, strict=True)
        ]
        for row in rows
    ]


def lines_of(made: FinishedFile) -> list[str]:
    return gzip.decompress(made.path.read_bytes()).decode().splitlines(keepends=True)


def _read_jsonl(table: Table, path: Path) -> Rows:
    text = gzip.decompress(path.read_bytes()).decode()
    assert text == "" or text.endswith("\n")
    rows = [
        json.loads(line, parse_float=Decimal, parse_constant=_refuse, object_pairs_hook=_once)
        for line in text.split("\n")[:-1]
    ]
    names = [column.name for column in table.columns]
    assert all(list(row) == names for row in rows)
    return [
        [_each(column, row[column.name], _from_json) for column in table.columns] for row in rows
    ]


def _read_csv(table: Table, path: Path) -> Rows:
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = list(csv.reader(file, strict=True))
    assert header[0].startswith("\ufeff")
    assert [name.lstrip("\ufeff") for name in header] == [column.name for column in table.columns]
    return [
        [_from_csv(column, cell) for column, cell in zip(table.columns, row, strict=True)]
        for row in rows
    ]


def _read_pyarrow(table: Table, path: Path) -> Rows:
    with pq.ParquetFile(path) as file:
        found = file.read().to_pylist()
    return [
        [_each(column, row[column.name], _from_python) for column in table.columns] for row in found
    ]


def _read_duckdb(table: Table, path: Path) -> Rows:
    chosen = ", ".join(_selected(column) for column in table.columns)
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        found = connection.execute(f"SELECT {chosen} FROM read_parquet(?)", [str(path)]).fetchall()  # noqa: S608 - our own names
    return [
        [
            value if column.type is Type.MOMENT else _each(column, value, _from_python)
            for column, value in zip(table.columns, row, strict=True)
        ]
        for row in found
    ]


READERS: dict[str, dict[str, Callable[[Table, Path], Rows]]] = {
    "jsonl": {"a strict JSON parser": _read_jsonl},
    "csv": {"Python's csv": _read_csv},
    "parquet": {"pyarrow": _read_pyarrow, "DuckDB": _read_duckdb},
}


def _selected(column: Column) -> str:
    # Moments as numbers: DuckDB needs a time zone library to return them as values.
    if column.type is not Type.MOMENT:
        return f'"{column.name}"'
    if column.many:
        return f'list_transform("{column.name}", lambda one: epoch_ms(one))'
    return f'epoch_ms("{column.name}")'


def _each(column: Column, value: Any, change: Callable[[Column, Any], Any]) -> Any:
    if column.many and value is not None:
        return [None if part is None else change(column, part) for part in value]
    return None if value is None else change(column, value)


def _comparable(column: Column, value: Any) -> Any:
    return Decimal(value) if column.type is Type.DECIMAL else value


def _from_json(column: Column, value: Any) -> Any:
    match column.type:
        case Type.DECIMAL:
            assert isinstance(value, int | Decimal)
            return Decimal(value)
        case Type.NUMBER:
            assert isinstance(value, Decimal)
            return float(value)
        case Type.MOMENT:
            assert value.endswith("Z")
            return (datetime.fromisoformat(value) - EPOCH) // MILLISECOND
        case Type.INTEGER:
            assert type(value) is int
        case Type.BOOLEAN:
            assert type(value) is bool
        case _:
            assert type(value) is str
    return value


def _from_csv(column: Column, cell: str) -> Any:
    if cell == "":
        return None
    if column.many:
        parts = json.loads(cell, parse_float=Decimal, parse_constant=_refuse)
        return _each(column, parts, _from_json)
    if column.type is Type.STRING:
        return cell[1:] if GUARDED.match(cell) else cell
    if column.type in (Type.DATE, Type.MOMENT):
        return _from_json(column, cell)
    return _from_json(column, json.loads(cell, parse_float=Decimal, parse_constant=_refuse))


def _from_python(column: Column, value: Any) -> Any:
    match column.type:
        case Type.MOMENT:
            assert value.utcoffset() == timedelta()
            return (value - EPOCH) // MILLISECOND
        case Type.DATE:
            assert type(value) is date
            return value.isoformat()
        case Type.DECIMAL:
            assert type(value) is Decimal
    return value


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    assert len(row) == len(pairs), "a name comes twice"
    return row
