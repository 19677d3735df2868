"""Provide rows of a crawl one by one, or as a frame of Arrow or pandas."""

from __future__ import annotations

import html
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

from orbweaver.exporting.cells import Fit, fit_of
from orbweaver.model.amounts import plural
from orbweaver.model.columns import Column, Type
from orbweaver.model.value import positional_value_class

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Row: TypeAlias = dict[str, Any]
Columns: TypeAlias = tuple[Column, ...]
# A callback that gets the row of each stored page.
PageHook: TypeAlias = Callable[[Row], object]

# Maximums of a preview: rows to count, rows and columns to show, characters of a cell.
COUNTED_MAX, ROWS_SHOWN, COLUMNS_SHOWN, CELL_CHARS_MAX = 10_000, 10, 6, 40


@positional_value_class
class AsyncCrawlRows:
    """Rows of a crawl's table. Each `for` loop over them reads them again."""

    _read: Callable[[], AsyncIterator[Row]]
    columns: Callable[[], Coroutine[Any, Any, Columns]]

    def __aiter__(self) -> AsyncIterator[Row]:
        return self._read()

    def __repr__(self) -> str:
        return "<rows of a crawl: use async for, to_list(), to_arrow() or to_pandas()>"

    async def to_list(self) -> list[Row]:
        return [row async for row in self]

    async def to_arrow(self) -> pa.Table:
        """Read all rows into an Arrow table. Needs pyarrow."""
        return arrow_of(await self.to_list(), await self.columns())

    async def to_pandas(self) -> pd.DataFrame:
        """Read all rows into a pandas frame. Needs pandas."""
        return pandas_of(await self.to_list(), await self.columns())


@positional_value_class
class CrawlRows:
    """Rows of a crawl's table. Each `for` loop over them reads them again."""

    _read: Callable[[], Iterator[Row]]
    columns: Callable[[], Columns]

    def __iter__(self) -> Iterator[Row]:
        return self._read()

    def __len__(self) -> int:
        return sum(1 for _ in self._read())

    def __bool__(self) -> bool:
        return next(self._read(), None) is not None

    def __repr__(self) -> str:
        from orbweaver.cli.text import table

        count, names, cells = self._preview()
        return "\n".join((count, *table([names, *cells]))) if cells else count

    def _repr_html_(self) -> str:
        count, names, cells = self._preview()
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        body = "".join(
            f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in cells
        )
        return f"<table><caption>{count}</caption><tr>{head}</tr>{body}</table>"

    def _preview(self) -> tuple[str, list[str], list[list[str]]]:
        from orbweaver.cli.text import cut

        rows = self._read()
        first = [*islice(rows, ROWS_SHOWN)]
        number = len(first) + sum(1 for _ in islice(rows, COUNTED_MAX - len(first)))
        more = "more than " if next(rows, None) is not None else ""
        filled = dict.fromkeys(
            name for row in first for name, value in row.items() if value not in (None, (), [])
        )
        names = [name for name in filled if name != "crawl"][:COLUMNS_SHOWN]
        cells = [[cut(str(row.get(name, "")), CELL_CHARS_MAX) for name in names] for row in first]
        return f"{more}{plural(number, 'row')}", names, cells

    def to_list(self) -> list[Row]:
        return [*self._read()]

    def to_arrow(self) -> pa.Table:
        """Read all rows into an Arrow table. Needs pyarrow."""
        return arrow_of(self.to_list(), self.columns())

    def to_pandas(self) -> pd.DataFrame:
        """Read all rows into a pandas frame. Needs pandas."""
        return pandas_of(self.to_list(), self.columns())


def arrow_of(rows: list[Row], columns: Columns) -> pa.Table:
    """Convert rows to an Arrow table with the types of Parquet exports."""
    import pyarrow as pa

    kinds: dict[Type, pa.DataType] = {
        Type.STRING: pa.string(),
        Type.INTEGER: pa.int64(),
        Type.NUMBER: pa.float64(),
        Type.DECIMAL: pa.decimal128(18, 4),
        Type.BOOLEAN: pa.bool_(),
        Type.DATE: pa.date32(),
        Type.MOMENT: pa.timestamp("us", tz="UTC"),
    }
    arrays = {name: pa.array(values) for name, values in _by_column(rows, columns).items()}
    for column in columns:
        kind = kinds[column.type]
        arrays[column.name] = arrays[column.name].cast(pa.list_(kind) if column.many else kind)
    return pa.table(arrays)


def pandas_of(rows: list[Row], columns: Columns) -> pd.DataFrame:
    """Convert rows to a pandas frame with numeric types for prices and numbers."""
    import pandas as pd

    found: dict[str, Any] = _by_column(rows, columns)
    for column in columns:
        values = found[column.name]
        if column.type is Type.DECIMAL:
            values = [_floats(value) for value in values]
        if column.type in _NUMERIC and not column.many:
            whole = column.type is Type.INTEGER and None not in values
            values = pd.Series(values, dtype="int64" if whole else "float64")
        found[column.name] = values
    return pd.DataFrame(found)


_NUMERIC = (Type.INTEGER, Type.NUMBER, Type.DECIMAL)


def _by_column(rows: list[Row], columns: Columns) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for row in rows for name in row)
    names |= dict.fromkeys(column.name for column in columns)
    found = {name: [row.get(name) for row in rows] for name in names}
    for column in columns:
        fit = fit_of(column)
        found[column.name] = [_cell(value, fit, column) for value in found[column.name]]
    return found


def _cell(value: Any, fit: Fit, column: Column) -> Any:
    if value is None or isinstance(value, datetime):
        return value
    fitted = fit(value)
    if column.type is Type.MOMENT and isinstance(fitted, int):
        return datetime.fromtimestamp(fitted / 1000, UTC)
    return fitted


def _floats(value: Any) -> Any:
    if isinstance(value, list):
        return [*map(_floats, value)]
    return None if value is None else float(value)
