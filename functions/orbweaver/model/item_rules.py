"""Item rules: the pages they are about, where fields stand, and the columns these become."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from orbweaver.model.columns import Column, Type
from orbweaver.model.item import Scalar, Value

LIST_MAX = 100
ITEMS_MAX = 1_000
VALUE_CHARS_MAX = 20_000


class ValueSource(StrEnum):
    """Where something stands."""

    CSS = "css"
    JSONLD = "jsonld"
    MICRODATA = "microdata"
    OPENGRAPH = "og"
    META = "meta"
    CUSTOM = "extractor"


class ValueTake(StrEnum):
    """What is taken of a node that has no `attribute` to be taken."""

    TEXT = "text"
    RAW = "raw"
    HTML = "html"
    EXISTS = "exists"


class ValueKind(StrEnum):
    """What a field's values are."""

    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    PRICE = "price"
    DATE = "date"
    DATETIME = "datetime"
    URL = "url"
    BOOLEAN = "boolean"


COLUMN_TYPES = {
    ValueKind.STRING: Type.STRING,
    ValueKind.INTEGER: Type.INTEGER,
    ValueKind.NUMBER: Type.NUMBER,
    ValueKind.PRICE: Type.DECIMAL,
    ValueKind.DATE: Type.DATE,
    ValueKind.DATETIME: Type.MOMENT,
    ValueKind.URL: Type.STRING,
    ValueKind.BOOLEAN: Type.BOOLEAN,
}


# Sources of which a rule finds an item for each object of a type.
OBJECTS = frozenset({ValueSource.JSONLD, ValueSource.MICRODATA})


# Those of which it may find several.
MANY = OBJECTS | {ValueSource.CUSTOM}


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of an item; `where` is a selector, path or name, empty for the item's own node."""

    name: str
    source: ValueSource = ValueSource.CSS
    where: str = ""
    attribute: str | None = None
    take: ValueTake = ValueTake.TEXT
    many: bool = False
    type: ValueKind = ValueKind.STRING
    required: bool = False
    default: Value = None
    regex: str | None = None
    # What some texts mean, before they are read as the type.
    values: tuple[tuple[str, Scalar], ...] = ()
    format: str | None = None
    currency: str | None = None
    decimal: str | None = None
    cut: int | None = None

    @property
    def place(self) -> str:
        """Say where it is looked for."""
        return f"{self.source} {self.where!a}" if self.where else "the item itself"


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemRule:
    """What is taken from the pages in whose URL `match` is found.

    `source` with `of` is where items are found other than by selectors; `extractor` names a
    function. Fewer items than `least` are a problem of the page.
    """

    name: str
    match: str
    each: str | None = None
    source: ValueSource = ValueSource.CSS
    of: str = ""
    extractor: str | None = None
    least: int = 1
    fields: tuple[Field, ...] = ()


def columns_of(rule: ItemRule) -> tuple[Column, ...]:
    """List the columns of a rule's table, but for those that say where items are from."""
    found: list[Column] = []
    for one in rule.fields:
        found.append(Column(name=one.name, type=COLUMN_TYPES[one.type], many=one.many))
        if one.type is ValueKind.PRICE:
            found.append(Column(name=currency_name(one.name), many=one.many))
    return tuple(found)


def currency_name(name: str) -> str:
    """Name the field that holds the currency of a price."""
    return f"{name}_currency"
