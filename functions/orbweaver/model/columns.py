"""The tables of an export: their names, and their columns with types.

A row is a mapping of column names to values:

    STRING   str                          BOOLEAN  bool
    INTEGER  int, 64 bits                 DATE     str, YYYY-MM-DD
    NUMBER   float, finite                MOMENT   int, ms since the epoch
    DECIMAL  str, its digits ("12.30"), at most 14 before the point and 4 behind it

or None, or of a column of `many` a list of such values; what else stands in a row is passed over,
and what a cell makes of another value is said in exporting/cells.py. Names and types are public: a
column that changes its meaning or goes away raises `SCHEMA`, a new last one does not. No two names
of a table differ by case alone: most that read tables fold it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import get_args, get_type_hints

from orbweaver.model.page_record import COLUMNS, PageRecord

SCHEMA = 2


class Type(StrEnum):
    """What the values of a column are."""

    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    DECIMAL = "decimal"
    BOOLEAN = "boolean"
    DATE = "date"
    MOMENT = "moment"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column: its name, what its values are, whether each is a list of them, what it means."""

    name: str
    type: Type = Type.STRING
    many: bool = False
    text: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table: its name, which is also its folder, and its columns in order.

    Raises ValueError where two columns have one name.
    """

    name: str
    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        """Look for columns that readers could not tell apart."""
        if len({column.name.lower() for column in self.columns}) < len(self.columns):
            raise ValueError(f"columns of {self.name} share a name")


# Which item of which page: what the columns of every table of items begin with.
ORIGIN = (
    Column(name="crawl"),
    Column(name="url"),
    Column(name="fetched_at", type=Type.MOMENT),
    Column(name="place", type=Type.INTEGER),
)


def _page_columns() -> Iterator[Column]:
    """Read columns off the fields of a page record: `_at` ends the name of a moment."""
    hints = get_type_hints(PageRecord, include_extras=True)
    for name in COLUMNS:
        hint, text = get_args(hints[name])
        kind = _TYPES.get((get_args(hint) or (hint,))[0], Type.STRING)
        yield Column(name=name, type=Type.MOMENT if name.endswith("_at") else kind, text=text)


_TYPES = {int: Type.INTEGER, float: Type.NUMBER, bool: Type.BOOLEAN}
PAGES = Table(name="pages", columns=tuple(_page_columns()))
# The main text of pages, where a crawl asks for it.
TEXTS = Table(
    name="texts",
    columns=(
        *ORIGIN[:3],
        *(Column(name=name) for name in ("title", "description", "language", "text", "markdown")),
    ),
)
# What is not what a rule asks for: `item` is what was found, as JSON.
INVALID_ITEMS = Table(
    name="invalid_items",
    columns=(
        *ORIGIN,
        Column(name="rule"),
        Column(name="problems", many=True),
        Column(name="item"),
    ),
)
# How the pages of a crawl differ from those of its run before: `change` is created, updated,
# unchanged or deleted.
CHANGES = Table(
    name="changes",
    columns=(
        Column(name="crawl"),
        Column(name="url"),
        Column(name="change"),
        Column(name="found_at", type=Type.MOMENT),
        Column(name="sha256"),
        Column(name="previous_crawl"),
        Column(name="previous_sha256"),
    ),
)


ITEMS = "items/"


def items_folder(name: str) -> str:
    """Name the folder of the tables of items that the crawls of a name find."""
    return f"{ITEMS}{name}/"


def item_table(name: str, rule: str, columns: Iterable[Column]) -> Table:
    """Name the table of the items that a rule of the crawls of a name finds.

    Raises ValueError for a column by a name of `ORIGIN`, which each such table begins with.
    """
    return Table(name=f"{items_folder(name)}{rule}", columns=(*ORIGIN, *columns))
