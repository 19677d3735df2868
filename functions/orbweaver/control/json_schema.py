"""Describe types as JSON schemas for OpenAPI. `control/json_reader` parses by the same types.

A dataclass is an object with only these keys. `Annotated[…, Fits(…)]` describes a value and its
bounds. A field with a default is optional in requests, and always present in responses. Source: the
OpenAPI Specification 3.1.1 and JSON Schema 2020-12, of which this is a small part.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

JSON_NAMES = {str: "string", int: "integer", bool: "boolean", float: "number"}
# Schema keywords for the lower and upper bound of each type, and the unit of the bounds.
BOUNDS = {
    str: ("minLength", "maxLength", " characters"),
    int: ("minimum", "maximum", ""),
    tuple: ("minItems", "maxItems", " items"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fits:
    """Description and bounds of a value: `low` and `high` limit numbers, characters or items.

    If `schema` is given, it is the value's schema, and another module checks the value.
    """

    says: str = ""
    low: int | None = None
    high: int | None = None
    pattern: str | None = None
    form: str | None = None
    example: str | None = None
    # Left out of the hash: annotations are hashed, and a mapping has no hash.
    schema: Mapping[str, Any] | None = field(default=None, hash=False)


# --- schemas ------------------------------------------------------------------------------------


def schema_of(kind: Any, parts: dict[str, Any], *, answer: bool) -> dict[str, Any]:
    """Return the schema of a type.

    Schemas of dataclasses are added to `parts` and referenced. In a response (`answer`), fields
    with a default are required, too.
    """
    kind, fits = split_annotation(kind)
    if fits.schema is not None:
        schema = dict(fits.schema)
        return schema if without_none(kind) is kind else _nullable(schema)
    schema = _plain_schema(kind, parts, answer=answer)
    inner = without_none(kind)
    known = BOUNDS.get(get_origin(inner) or inner)
    if known is not None:
        low, high, _ = known
        schema |= {
            word: bound for word, bound in ((low, fits.low), (high, fits.high)) if bound is not None
        }
    # The pattern must match the whole text.
    pattern = None if fits.pattern is None else f"^(?:{fits.pattern})$"
    more = {"pattern": pattern, "format": fits.form, "description": fits.says or None}
    schema |= {word: value for word, value in more.items() if value is not None}
    return schema if fits.example is None else {**schema, "examples": [fits.example]}


def schema_of_fields(kind: Any, **instead: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a dataclass, inline. `instead` replaces schemas of fields by name."""
    schema = _fields(kind, {}, answer=True)
    return {**schema, "properties": schema["properties"] | instead}


def _plain_schema(kind: Any, parts: dict[str, Any], *, answer: bool) -> dict[str, Any]:
    inner = without_none(kind)
    if inner is not kind:
        return _nullable(_plain_schema(inner, parts, answer=answer))
    origin, inside = get_origin(kind), get_args(kind)
    if origin is tuple:
        return {"type": "array", "items": schema_of(inside[0], parts, answer=answer)}
    if origin is Mapping:
        values = schema_of(inside[1], parts, answer=answer)
        return {"type": "object", "additionalProperties": values}
    if is_dataclass(kind):
        return {"$ref": f"#/components/schemas/{_part(kind, parts, answer=answer)}"}
    if issubclass(kind, StrEnum):
        return {"type": "string", "enum": [str(word) for word in kind]}
    return {"type": JSON_NAMES[kind]}


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    if "type" not in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    words = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return {**schema, "type": [schema["type"], "null"], **words}


def _part(kind: Any, parts: dict[str, Any], *, answer: bool) -> str:
    name: str = kind.__name__
    if name not in parts:
        parts[name] = {}  # it may contain itself
        parts[name] = _fields(kind, parts, answer=answer)
    return name


def _fields(kind: Any, parts: dict[str, Any], *, answer: bool) -> dict[str, Any]:
    hints = hints_of(kind)
    schema: dict[str, Any] = {"type": "object"}
    if kind.__doc__:
        schema["description"] = " ".join(kind.__doc__.split())
    schema["properties"] = {
        key: schema_of(hint, parts, answer=answer) for key, hint in hints.items()
    }
    needed = [key for key in hints if answer or key in required_fields(kind)]
    if needed:
        schema["required"] = needed
    return schema if answer else {**schema, "additionalProperties": False}


# --- annotations --------------------------------------------------------------------------------


@cache
def hints_of(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    # Fields of a record that are not columns of tables are omitted.
    return {one.name: hints[one.name] for one in fields(kind) if one.metadata.get("column", True)}


@cache
def required_fields(kind: Any) -> frozenset[str]:
    return frozenset(
        one.name
        for one in fields(kind)
        if one.default is MISSING and one.default_factory is MISSING
    )


def description_of(hint: Any) -> str:
    return split_annotation(hint)[1].says


def split_annotation(kind: Any) -> tuple[Any, Fits]:
    if get_origin(kind) is Annotated:
        inner, *notes = get_args(kind)
        return inner, next((note for note in notes if isinstance(note, Fits)), Fits())
    inner = without_none(kind)
    if inner is not kind and get_origin(inner) is Annotated:
        inner, fits = split_annotation(inner)
        return inner | None, fits
    return kind, Fits()


def without_none(kind: Any) -> Any:
    """Return `X` for the type `X | None`, and any other type unchanged."""
    if get_origin(kind) not in (UnionType, Union):
        return kind
    (inner,) = (one for one in get_args(kind) if one is not NoneType)
    return inner
