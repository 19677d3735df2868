"""Define the items that a crawl's rules extract from pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, TypeAlias

from orbweaver.model.value import value_class

# A JSON value. A decimal is its digits ("12.30"), a date is ISO 8601, a missing value is None.
Scalar: TypeAlias = str | int | float | bool | None
Value: TypeAlias = "Scalar | Sequence[Scalar]"


@value_class
class Item:
    """An item that a rule extracted from a page.

    `table` is the rule's name, `place` the item's index among the page's items of that rule.
    `problems` explain why the item is invalid, each with the name of its field.
    """

    table: str
    place: int
    fields: Mapping[str, Value] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    @property
    def valid(self) -> bool:
        return not self.problems


def to_row(item: Item) -> list[Any]:
    return [item.table, item.place, dict(item.fields), list(item.problems)]


def from_row(row: Sequence[Any]) -> Item:
    table, place, found, problems = row
    return Item(table=table, place=place, fields=found, problems=tuple(problems))
