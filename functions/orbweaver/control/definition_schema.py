"""What a crawl's definition looks like as JSON, for whoever writes one by the API's document.

Made of the very keys that definitions are read by. What a schema cannot say (that a seed is a URL,
that a pattern runs in linear time) is said by the problems that come back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from orbweaver.control.definition_items import FIELD_KEYS, ITEM_KEYS, _fields, _meanings, _value
from orbweaver.control.definition_keys import KEYS, SEEDS_FILE, _kinds
from orbweaver.control.definition_values import (
    _bytes,
    _dollars,
    _headers,
    _hosts,
    _milliseconds,
    _number,
    _seconds,
    _switch,
    _text,
    _texts,
)
from orbweaver.control.spec_checks import BOUNDS
from orbweaver.extraction.rules import FIELD_NAME, FIELDS_MAX
from orbweaver.extraction.rules import RULES_MAX as ITEM_RULES_MAX
from orbweaver.model.url_rules import RULES_MAX
from orbweaver.model.user_agent import HOSTS_MAX
from orbweaver.parsing.pii_redaction import KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from orbweaver.control.definition_values import Key

TEXT = {"type": "string"}
TEXTS = {"type": "array", "items": TEXT}
TIME = {"type": ["string", "number"], "description": "like 250ms, 1.5s, 2h or 7d; or seconds"}
SCALAR = {"type": ["string", "number", "boolean"]}
HEADERS = {"type": "object", "additionalProperties": TEXT}
# By what reads a value.
SHAPES: Mapping[Callable[[object], Any], dict[str, Any]] = {
    _text: TEXT,
    _texts: TEXTS,
    _kinds: {"type": "array", "items": {**TEXT, "enum": list(KINDS)}},
    _number: {"type": "integer"},
    _switch: {"type": "boolean"},
    _milliseconds: TIME,
    _seconds: TIME,
    _bytes: {"type": ["string", "integer"], "description": "like 500MB or 10GB; or bytes"},
    _dollars: {"type": ["string", "number"], "description": "like 5 or 0.25"},
    _headers: HEADERS,
    _hosts: {
        "type": "object",
        "maxProperties": HOSTS_MAX,
        "additionalProperties": {
            "type": "object",
            "properties": {"headers": HEADERS},
            "additionalProperties": False,
        },
    },
    _value: {"anyOf": [SCALAR, {"type": "array", "items": SCALAR}]},
    _meanings: {"type": "object", "additionalProperties": SCALAR},
}
LIMITS = {part: (low, high) for part, low, high, _ in BOUNDS}
# There is no file beside what comes over HTTP.
DEFINABLE = tuple(key for key in KEYS if key.path != SEEDS_FILE)


def schema_of_definition(keys: Iterable[Key] = DEFINABLE) -> dict[str, Any]:
    """Describe the documents that hold just these keys; none of them is needed."""
    schema = _table()
    for key in keys:
        table, _, name = key.path.rpartition(".")
        holder = schema["properties"].setdefault(table, _table()) if table else schema
        holder["properties"][name] = _schema_of(key)
    return schema


def _schema_of(key: Key) -> dict[str, Any]:
    if key.words:
        return {**TEXT, "enum": list(key.words)}
    if key.path == "items":
        return {"type": "array", "maxItems": ITEM_RULES_MAX, "items": _item_rule()}
    if key.inner:
        return {
            "type": "array",
            "maxItems": RULES_MAX,
            "items": {**schema_of_definition(key.inner), "required": ["match"], "minProperties": 2},
        }
    shape = SHAPES[key.read]
    if shape.get("type") != "integer" or key.part not in LIMITS:
        return shape
    low, high = LIMITS[key.part]
    return {**shape, "minimum": low, "maximum": high}


def _item_rule() -> dict[str, Any]:
    """Describe an item rule, whose fields have names of the user's own."""
    schema = schema_of_definition(key for key in ITEM_KEYS if key.read is not _fields)
    field = {"anyOf": [TEXT, schema_of_definition(FIELD_KEYS)]}
    schema["properties"]["fields"] = {
        "type": "object",
        "minProperties": 1,
        "maxProperties": FIELDS_MAX,
        "propertyNames": {"pattern": f"^{FIELD_NAME.pattern}$"},
        "additionalProperties": field,
    }
    return {**schema, "required": ["name", "match", "fields"]}


def _table() -> dict[str, Any]:
    return {"type": "object", "properties": {}, "additionalProperties": False}
