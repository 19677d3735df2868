"""Define the tables of an export: names, columns and types. They are a public interface."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from enum import StrEnum
from typing import get_args, get_type_hints

from orbweaver.model.page_record import COLUMNS, PageRecord
from orbweaver.model.value import value_class

# Increased if a column changes its meaning or is removed, not for a new last column.
SCHEMA = 2


class Type(StrEnum):
    """Type of a column's values. Each value may be None.

    `INTEGER` is an int of 64 bits, `NUMBER` a finite float, `DATE` a str YYYY-MM-DD, `MOMENT` an
    int in ms since the epoch. `DECIMAL` is a str of digits ("12.30"), at most 14 before the point
    and 4 after it.
    """

    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    DECIMAL = "decimal"
    BOOLEAN = "boolean"
    DATE = "date"
    MOMENT = "moment"


@value_class
class Column:
    """A column. `many`: each value is a list. `text`: description."""

    name: str
    type: Type = Type.STRING
    many: bool = False
    text: str = field(default="", compare=False, repr=False)


@value_class
class Table:
    """A table. Its name is also its folder.

    Raises ValueError if two column names differ only by case, because most readers ignore case.
    """

    name: str
    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        if len({column.name.lower() for column in self.columns}) < len(self.columns):
            raise ValueError(f"columns of {self.name} share a name")


# Columns that every table of items begins with: the item's crawl, page and position.
ORIGIN = (
    Column(name="crawl"),
    Column(name="url"),
    Column(name="fetched_at", type=Type.MOMENT),
    Column(name="place", type=Type.INTEGER),
)


def _page_columns() -> Iterator[Column]:
    """Derive columns from the fields of a page record. A name that ends in `_at` is a time."""
    hints = get_type_hints(PageRecord, include_extras=True)
    for name in COLUMNS:
        hint, text = get_args(hints[name])
        kind = _TYPES.get((get_args(hint) or (hint,))[0], Type.STRING)
        yield Column(name=name, type=Type.MOMENT if name.endswith("_at") else kind, text=text)


_TYPES = {int: Type.INTEGER, float: Type.NUMBER, bool: Type.BOOLEAN}
PAGES = Table(name="pages", columns=tuple(_page_columns()))
# The main text of pages, if a crawl extracts it.
TEXTS = Table(
    name="texts",
    columns=(
        *ORIGIN[:3],
        *(Column(name=name) for name in ("title", "description", "language", "text", "markdown")),
    ),
)
# The links of pages, if a crawl stores them.
LINKS = Table(
    name="links",
    columns=(
        *ORIGIN[:3],
        *(Column(name=name) for name in ("target_url", "spelling", "kind", "rel", "lang", "text")),
        Column(name="position", type=Type.INTEGER),
        *(Column(name=name) for name in ("fragment", "decision")),
    ),
)
# Items that do not fit their rule. `item` is the extracted data as JSON.
INVALID_ITEMS = Table(
    name="invalid_items",
    columns=(
        *ORIGIN,
        Column(name="rule"),
        Column(name="problems", many=True),
        Column(name="item"),
    ),
)
# Differences between the pages of a crawl and its previous run. `change` is created, updated,
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
    return f"{ITEMS}{name}/"


def item_table(name: str, rule: str, columns: Iterable[Column]) -> Table:
    """Return the table of a rule's items. Raises ValueError for a column name in `ORIGIN`."""
    return Table(name=f"{items_folder(name)}{rule}", columns=(*ORIGIN, *columns))
