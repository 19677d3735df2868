"""Item rules as plain fields, read back; how they are written, `asdict` knows."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from orbweaver.model.item_rules import Field, ItemRule, ValueKind, ValueSource, ValueTake

_RULE = frozenset(field.name for field in fields(ItemRule))
_FIELD = frozenset(field.name for field in fields(Field))


def rule_of(raw: dict[str, Any]) -> ItemRule:
    """Read a rule; parts of another version are passed over."""
    known = {name: value for name, value in raw.items() if name in _RULE}
    known["source"] = ValueSource(known.get("source", ValueSource.CSS))
    known["fields"] = tuple(_field(one) for one in known.get("fields", ()))
    return ItemRule(**known)


def _field(raw: dict[str, Any]) -> Field:
    known = {name: value for name, value in raw.items() if name in _FIELD}
    known["source"] = ValueSource(known.get("source", ValueSource.CSS))
    known["take"] = ValueTake(known.get("take", ValueTake.TEXT))
    known["type"] = ValueKind(known.get("type", ValueKind.STRING))
    known["values"] = tuple((text, value) for text, value in known.get("values", ()))
    default = known.get("default")
    known["default"] = tuple(default) if isinstance(default, list) else default
    return Field(**known)
