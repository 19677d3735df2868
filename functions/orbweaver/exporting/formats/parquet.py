"""Write Parquet with typed columns by DuckDB, for Athena, DuckDB and readers of Arrow.

Files have zstd compression at level 3, dictionaries, and statistics of each column. Times have
microseconds, because DuckDB writes no milliseconds.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import BufferedWriter
from json.encoder import encode_basestring
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import duckdb

from orbweaver.exporting.cells import cells_of
from orbweaver.exporting.formats.hashed_file import Erased, HashedFile
from orbweaver.exporting.formats.jsonl import TEXTS, line_of, text_of
from orbweaver.exporting.glue_schema import sql_name, sql_text
from orbweaver.model.columns import Column, Table, Type

if TYPE_CHECKING:
    from orbweaver.exporting.formats import Block
    from orbweaver.exporting.formats.hashed_file import ErasureFilter, FinishedFile

LEVEL = 3
# A row group ends at this number of rows, or of bytes in memory. Engines divide a file by row
# groups, and skip groups that statistics exclude. Rows determine the ends of groups, and there is
# one thread, so equal rows give equal bytes.
GROUP_ROWS_MAX = 65_536
GROUP_BYTES_MAX = 16 * 2**20
# Assumed ratio of the size of lines to the size of the file. Used until a file of the first lines
# has been made and measured.
SHRINKS_BY = 3
# Lines are kept in temporary storage, so a file's size counts as at least an eighth of their bytes.
SHRINKS_BY_MAX = 8
SAMPLE_ROWS = 8_192
SAMPLE_BYTES = 4 * 2**20
COPIED_BYTES = 2**20
ROWS_AT_ONCE = 500
# DuckDB reads 16 MiB of a file at a time, or the longest line, if that is longer. So lines are
# divided into smaller files: 50,000 pages then take 26 MiB less memory, and 0.05 s more CPU.
READ_BYTES = 16 * 2**20
LINES_FILE_BYTES = 4 * 2**20
CONFIG = {
    "threads": "1",
    "async_threads": "1",  # instead of 8, each with a stack of 8 MB
    "memory_limit": "1GB",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}

TYPES: dict[Type, str] = {
    Type.STRING: "VARCHAR",
    Type.INTEGER: "BIGINT",
    Type.NUMBER: "DOUBLE",
    Type.DECIMAL: "DECIMAL(18,4)",
    Type.BOOLEAN: "BOOLEAN",
    Type.DATE: "DATE",
    Type.MOMENT: "TIMESTAMP WITH TIME ZONE",
}
# Types of cells (exporting/cells.py), if they differ from `TYPES`.
CELLS: dict[Type, str] = {Type.DECIMAL: "VARCHAR", Type.DATE: "VARCHAR"}


# Measured with 100,000 pages: 38,000 pages per second of CPU and at most 200 MB of memory. pyarrow:
# 51,000 pages and 130 MB.
class ParquetWriter:
    """Writes rows as columns. It holds no rows in memory.

    Rows are lines of JSON in files of a folder next to the file. DuckDB reads them when the file is
    closed.
    `JsonlWriter` writes the same lines, except decimals, because DuckDB rounds JSON's numbers.
    """

    def __init__(self, table: Table, sink: HashedFile) -> None:
        self._columns = table.columns
        self._line = line_of(table.columns)
        self._texts = [*map(_text_of, table.columns)]
        self._sink = sink
        self._folder = TemporaryDirectory(dir=sink.folder)
        self._paths: list[Path] = []
        self._lines = self._next_file()
        self._longest = READ_BYTES
        self._bytes = 0
        # Sizes in bytes of the first lines and of the file made of them.
        self._tried: tuple[int, int] | None = None
        self.rows = 0

    @property
    def size(self) -> int:
        """Approximate size of the file in bytes, by the compression ratio of the first lines."""
        lines, made = self._tried or (SHRINKS_BY, 1)
        return self._sink.bytes or max(self._bytes * made // lines, self._bytes // SHRINKS_BY_MAX)

    def add(self, cells: Sequence[Any]) -> None:
        texts = [
            "null" if value is None else text(value)
            for text, value in zip(self._texts, cells, strict=True)
        ]
        line = (self._line % tuple(texts)).encode()
        self._longest = max(self._longest, len(line))
        self._put(line, 1)

    def add_block(self, block: Block) -> None:
        lines = block.lines
        if len(lines) > self._longest:
            self._longest = max(self._longest, *map(len, lines.splitlines(keepends=True)))
        self._put(lines, block.number)

    def _next_file(self) -> BufferedWriter:
        self._paths.append(Path(self._folder.name) / f"{len(self._paths)}.json")
        return self._paths[-1].open("wb")

    def _put(self, lines: bytes, rows: int) -> None:
        if self._bytes >= len(self._paths) * LINES_FILE_BYTES:
            self._lines.close()
            self._lines = self._next_file()
        self._lines.write(lines)
        self._bytes += len(lines)
        self.rows += rows
        if self._tried is None and (self.rows >= SAMPLE_ROWS or self._bytes >= SAMPLE_BYTES):
            self._lines.flush()
            self._tried = self._bytes, self._made().stat().st_size

    def close(self) -> FinishedFile:
        self._lines.close()
        with self._made().open("rb") as file:
            shutil.copyfileobj(file, self._sink, COPIED_BYTES)
        self._folder.cleanup()
        return self._sink.made(self.rows)

    def discard(self) -> None:
        self._lines.close()
        self._folder.cleanup()
        self._sink.discard()

    def _made(self) -> Path:
        made = Path(self._folder.name) / "rows.parquet"
        with _opened(Path(self._folder.name)) as connection:
            # These statistics would mark a column without empty cells as `required`. All files of a
            # table must have the same schema.
            connection.execute("SET disabled_optimizers = 'statistics_propagation'")
            connection.execute(self._copy(made))
        return made

    def _copy(self, made: Path) -> str:
        kinds, chosen = [], []
        for column in self._columns:
            kind, name = _many(column, TYPES[column.type]), sql_name(column.name)
            cell = _many(column, CELLS.get(column.type, TYPES[column.type]))
            kinds.append(f"{sql_text(column.name)}: '{cell}'")
            chosen.append(f"CAST({name} AS {kind}) AS {name}")
        files = f"[{', '.join(map(sql_text, self._paths))}]"
        read = f"{files}, format = 'newline_delimited', columns = {{{', '.join(kinds)}}}"
        return (
            f"COPY (SELECT {', '.join(chosen)}"  # noqa: S608 - our own names, all quoted
            f" FROM read_json({read}, maximum_object_size = {self._longest})) TO {sql_text(made)}"
            f" (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL {LEVEL},"
            f" ROW_GROUP_SIZE {GROUP_ROWS_MAX}, ROW_GROUP_SIZE_BYTES {GROUP_BYTES_MAX})"
        )


@contextmanager
def _opened(folder: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={**CONFIG, "temp_directory": str(folder / "spill")}) as connection:
        yield connection


def _many(column: Column, kind: str) -> str:
    return f"{kind}[]" if column.many else kind


_TEXTS = TEXTS | {Type.DECIMAL: encode_basestring}


def _text_of(column: Column) -> Callable[[Any], str]:
    return text_of(column, _TEXTS)


writer = ParquetWriter

# --- erasing -------------------------------------------------------------------------------------


def erased(body: bytes, scope: ErasureFilter) -> Erased:
    with _read(body) as (connection, folder):
        table = Table(name="", columns=tuple(_columns(connection)))
        names = [column.name for column in table.columns]
        texts = [column.name for column in table.columns if column.type is Type.STRING]
        chosen = ", ".join(
            f"{_cell(column)} AS {sql_name(column.name)}" for column in table.columns
        )
        cells_of_row = cells_of(table)
        left_writer = ParquetWriter(table, HashedFile(folder, ".parquet"))
        gone = changed = 0
        for cells in _rows(connection, chosen):
            row = dict(zip(names, cells, strict=True))
            given = {name: row[name] for name in texts}
            left = scope.row_left(given)
            if left is None:
                gone += 1
                continue
            changed += left is not given
            left_writer.add(cells_of_row({**row, **left}))
        if not gone and not changed:
            left_writer.discard()
            return Erased(rows=left_writer.rows, gone={})
        made = left_writer.close()
        counts = {"rows": gone, "cells": changed}
        return Erased(body=made.path.read_bytes(), rows=made.rows, gone=counts)


def outcomes(body: bytes) -> Counter[str]:
    with _read(body) as (connection, _):
        return Counter(str(outcome) for (outcome,) in _rows(connection, "outcome"))


@contextmanager
def _read(body: bytes) -> Iterator[tuple[duckdb.DuckDBPyConnection, Path]]:
    """Open a file in DuckDB as the view `given`. Raises ValueError if it is unreadable."""
    with TemporaryDirectory() as name:
        folder, file = Path(name), Path(name) / "given.parquet"
        file.write_bytes(body)
        with _opened(folder) as connection:
            try:
                connection.execute(f"CREATE VIEW given AS FROM read_parquet({sql_text(file)})")
                yield connection, folder
            except duckdb.Error as error:
                raise ValueError(str(error)) from error


def _columns(connection: duckdb.DuckDBPyConnection) -> Iterator[Column]:
    kinds = {kind: type_ for type_, kind in TYPES.items()}
    for name, kind, *_ in connection.execute("DESCRIBE given").fetchall():
        many = kind.endswith("[]")
        yield Column(name=name, type=kinds[kind.removesuffix("[]")], many=many)


def _cell(column: Column) -> str:
    name = sql_name(column.name)
    if column.type is Type.MOMENT:
        return (
            f"list_transform({name}, lambda one: epoch_ms(one))"
            if column.many
            else f"epoch_ms({name})"
        )
    return f"CAST({name} AS {_many(column, CELLS.get(column.type, TYPES[column.type]))})"


def _rows(connection: duckdb.DuckDBPyConnection, chosen: str) -> Iterator[tuple[Any, ...]]:
    connection.execute(f"SELECT {chosen} FROM given")  # noqa: S608 - names, all quoted
    while rows := connection.fetchmany(ROWS_AT_ONCE):
        yield from rows
