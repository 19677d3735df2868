"""Rows of a crawl: one after another, or as a frame of Arrow or pandas."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Row: TypeAlias = dict[str, Any]
# What is called for each page that is stored.
PageHook: TypeAlias = Callable[[Row], object]


@dataclass(frozen=True, slots=True)
class AsyncCrawlRows:
    """Rows of a crawl, read anew by each loop over them."""

    _read: Callable[[], AsyncIterator[Row]]

    def __aiter__(self) -> AsyncIterator[Row]:
        """Read the rows."""
        return self._read()

    async def to_list(self) -> list[Row]:
        """Read all rows into memory."""
        return [row async for row in self]

    async def to_arrow(self) -> pa.Table:
        """Read all rows into an Arrow table; needs pyarrow."""
        return arrow_of(await self.to_list())

    async def to_pandas(self) -> pd.DataFrame:
        """Read all rows into a frame of pandas; needs pandas."""
        return pandas_of(await self.to_list())


@dataclass(frozen=True, slots=True)
class CrawlRows:
    """Rows of a crawl, read anew by each loop over them."""

    _read: Callable[[], Iterator[Row]]

    def __iter__(self) -> Iterator[Row]:
        """Read the rows."""
        return self._read()

    def to_list(self) -> list[Row]:
        """Read all rows into memory."""
        return [*self]

    def to_arrow(self) -> pa.Table:
        """Read all rows into an Arrow table; needs pyarrow."""
        return arrow_of(self.to_list())

    def to_pandas(self) -> pd.DataFrame:
        """Read all rows into a frame of pandas; needs pandas."""
        return pandas_of(self.to_list())


def arrow_of(rows: list[Row]) -> pa.Table:
    """Make an Arrow table of rows; columns are those of all rows."""
    import pyarrow as pa

    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({name: [row.get(name) for row in rows] for name in names})


def pandas_of(rows: list[Row]) -> pd.DataFrame:
    """Make a frame of rows."""
    import pandas as pd

    return pd.DataFrame(rows)
