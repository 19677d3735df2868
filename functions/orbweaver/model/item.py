"""Items: what the rules of a crawl find on its pages, or why it is not what they ask for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

# A value as JSON has it: of a decimal its digits ("12.30"), of a date ISO 8601, None for nothing.
Scalar: TypeAlias = str | int | float | bool | None
Value: TypeAlias = "Scalar | Sequence[Scalar]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One item of a page; `problems` say why it is invalid, each with its field's name.

    `table` is the name of the rule that found it, `place` which of the page's items of that rule
    it is, counted from 0.
    """

    table: str
    place: int
    fields: Mapping[str, Value] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    @property
    def valid(self) -> bool:
        """Whether it is what its rule asks for."""
        return not self.problems


def to_row(item: Item) -> list[Any]:
    """Render an item as JSON has it."""
    return [item.table, item.place, dict(item.fields), list(item.problems)]


def from_row(row: Sequence[Any]) -> Item:
    """Read an item back."""
    table, place, found, problems = row
    return Item(table=table, place=place, fields=found, problems=tuple(problems))
