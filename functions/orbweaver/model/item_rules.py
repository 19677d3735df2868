"""Define extraction rules: matching pages, fields, and the columns they produce."""

from __future__ import annotations

from enum import StrEnum

from orbweaver.model.columns import Column, Type
from orbweaver.model.item import Scalar, Value
from orbweaver.model.value import value_class

LIST_MAX = 100
ITEMS_MAX = 1_000
VALUE_CHARS_MAX = 20_000


class ValueSource(StrEnum):
    """Source of an item or value on a page."""

    CSS = "css"
    JSON = "json"
    JSONLD = "jsonld"
    MICRODATA = "microdata"
    OPENGRAPH = "og"
    META = "meta"
    CUSTOM = "extractor"


class ValueTake(StrEnum):
    """Part of a node that is taken, unless `attribute` is set."""

    TEXT = "text"
    RAW = "raw"
    HTML = "html"
    EXISTS = "exists"


class ValueKind(StrEnum):
    """Type of a field's values."""

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


# Sources with one item per object of a type.
OBJECTS = frozenset({ValueSource.JSONLD, ValueSource.MICRODATA})


# Sources that can yield several items per page.
MANY = OBJECTS | {ValueSource.CUSTOM}


@value_class
class Field:
    """One field of an item. `where` is a selector, path or name. Empty: the item's own node."""

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
    # Value for each text of the page, applied before the conversion to the type.
    values: tuple[tuple[str, Scalar], ...] = ()
    format: str | None = None
    currency: str | None = None
    decimal: str | None = None
    cut: int | None = None

    @property
    def place(self) -> str:
        return f"{self.source} {self.where!a}" if self.where else "the item itself"


@value_class
class ItemRule:
    """Extraction rule for pages whose URL contains `match`.

    `source` and `of` locate items without selectors. A rule whose source is JSON applies to JSON
    responses only, and its `each` is a JSONPath. `extractor` names a function of the user. A
    page with fewer items than `least` has a problem.
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
    """Return the columns of a rule's table, without those in `ORIGIN`."""
    found: list[Column] = []
    for one in rule.fields:
        found.append(Column(name=one.name, type=COLUMN_TYPES[one.type], many=one.many))
        if one.type is ValueKind.PRICE:
            found.append(Column(name=currency_name(one.name), many=one.many))
    return tuple(found)


def currency_name(name: str) -> str:
    return f"{name}_currency"
