"""Parse values of a type from JSON or query parameters, and describe types as JSON schemas.

Parsing is strict: no text for a number, no unknown key, limited nesting. Duplicate keys are
refused, because RFC 8259, section 4, leaves their meaning open. Every problem names its key, the
value and the fix.

A dataclass is an object with only these keys. `Annotated[…, Fits(…)]` describes a value and its
bounds. A field with a default is optional in requests, and always present in responses. Source: the
OpenAPI Specification 3.1.1 and JSON Schema 2020-12, of which this is a small part.
"""

from __future__ import annotations

import difflib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, field, fields, is_dataclass
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from orbweaver.control.definition import DefinitionError, DefinitionProblem
from orbweaver.control.definition_values import Problems
from orbweaver.model.url import redacted
from orbweaver.model.value import value_class

T = TypeVar("T")
SHOWN_CHARS_MAX = 60
# Maximum depth of nested objects and arrays in a document.
DEPTH_MAX = 20
NAMES = {str: "a text", int: "a whole number", bool: "true or false", float: "a number"}
JSON_NAMES = {str: "string", int: "integer", bool: "boolean", float: "number"}
# Schema keywords for the lower and upper bound of each type, and the unit of the bounds.
BOUNDS = {
    str: ("minLength", "maxLength", " characters"),
    int: ("minimum", "maximum", ""),
    tuple: ("minItems", "maxItems", " items"),
}


def document_of(text: str) -> object:
    """Parse JSON. Raises DefinitionError for invalid JSON, duplicate keys, or deep nesting."""

    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(pairs)
        if len(found) < len(pairs):
            times = Counter(key for key, _ in pairs)
            twice = next(key for key, count in times.items() if count > 1)
            raise _refusal((_plain(twice), "this key occurs twice"))
        return found

    def unknown(word: str) -> object:
        raise _refusal(("", f"{word} is no number of JSON"))

    try:
        document: object = json.loads(text, object_pairs_hook=unique, parse_constant=unknown)
    except DefinitionError:
        raise
    except (ValueError, RecursionError) as error:
        raise _refusal(("", "the body is no valid JSON")) from error
    if (misfit := _misfit(document)) is not None:
        raise _refusal(("", misfit))
    return document


def read(kind: type[T], document: object) -> T:
    """Parse a document as the dataclass `kind`. Raises DefinitionError with all problems."""
    problems: Problems = []
    value = _read(kind, document, "", problems)
    if problems:
        raise _refusal(*problems)
    return cast("T", value)


def read_texts(kind: type[T], texts: Mapping[str, Sequence[str]]) -> T:
    """Parse query parameters or headers, which are texts, as the dataclass `kind`.

    A repeated parameter is a problem. Raises DefinitionError with all problems.
    """
    problems = [
        (_plain(name), "it is given twice: give it once")
        for name, values in texts.items()
        if len(values) > 1
    ]
    hints = hints_of(cast("Any", kind))
    spelled = {
        name: _spelled(hints[name], values[0]) if name in hints else values[0]
        for name, values in texts.items()
        if values
    }
    value = _read(kind, spelled, "", problems)
    if problems:
        raise _refusal(*problems)
    return cast("T", value)


def _refusal(*problems: tuple[str, str]) -> DefinitionError:
    return DefinitionError(tuple(DefinitionProblem(path, text) for path, text in problems))


def _read(kind: Any, value: object, path: str, problems: Problems) -> Any:
    kind, fits = split_annotation(kind)
    if fits.schema is not None or (value is None and without_none(kind) is not kind):
        return value
    kind = without_none(kind)
    if is_dataclass(kind):
        return _read_fields(kind, value, path, problems)
    if get_origin(kind) is tuple:
        return _read_items(kind, fits, value, path, problems)
    if issubclass(kind, StrEnum):
        return _read_word(kind, value, path, problems)
    if isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
        _bound(kind, fits, value, path, problems)
        return value
    problems.append((path, f"{_shown(value)} does not fit: give {NAMES[kind]}"))
    return None


def _read_items(kind: Any, fits: Fits, value: object, path: str, problems: Problems) -> Any:
    if not isinstance(value, list):
        problems.append((path, f"{_shown(value)} does not fit: give a list"))
        return ()
    _bound(tuple, fits, value, path, problems)
    inside = get_args(kind)[0]
    return tuple(
        _read(inside, one, f"{path}[{place}]", problems) for place, one in enumerate(value)
    )


def _read_fields(kind: Any, value: object, path: str, problems: Problems) -> Any:
    before = len(problems)
    if not isinstance(value, Mapping):
        text = "give an object" if path else "give a JSON object"
        problems.append((path, text))
        return None
    hints = hints_of(kind)
    found = {}
    for key, inner in value.items():
        inside = f"{path}.{_plain(key)}" if path else _plain(key)
        if key in hints:
            found[key] = _read(hints[key], inner, inside, problems)
        else:
            near = difflib.get_close_matches(key[:SHOWN_CHARS_MAX], hints, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(hints) or 'none'}"
            problems.append((inside, f"there is no such field: {hint}"))
    for key in sorted(required_fields(kind) - value.keys()):
        inside = f"{path}.{key}" if path else key
        problems.append((inside, "it is missing"))
    return kind(**found) if len(problems) == before else None


def _read_word(kind: type[StrEnum], value: object, path: str, problems: Problems) -> Any:
    words = [str(word) for word in kind]
    if isinstance(value, str) and value in words:
        return kind(value)
    text = f"{_shown(value)} does not fit: give {' or '.join(words)}"
    problems.append((path, text))
    return None


def _bound(kind: type, fits: Fits, value: Any, path: str, problems: Problems) -> None:
    measure = len(value) if kind in (str, tuple) else value
    if fits.low is not None and measure < fits.low:
        problems.append((path, f"give at least {fits.low:,}{BOUNDS[kind][2]}"))
    elif fits.high is not None and measure > fits.high:
        problems.append((path, f"give at most {fits.high:,}{BOUNDS[kind][2]}"))
    elif fits.pattern is not None and not re.fullmatch(fits.pattern, value, re.ASCII):
        problems.append((path, f"{_shown(value)} does not fit: {fits.says}"))


def _spelled(hint: Any, text: str) -> object:
    kind = without_none(split_annotation(hint)[0])
    if kind is int and re.fullmatch(r"-?[0-9]{1,15}", text):
        return int(text)
    if kind is bool and text in ("true", "false"):
        return text == "true"
    return text


def _misfit(document: object) -> str | None:
    """Return why a document is refused: nested too deeply, or with an invalid text, else None."""
    # No recursion, because the sender decides how deeply a document is nested.
    level: list[object] = [document]
    for _ in range(DEPTH_MAX):
        texts = [one for one in level if isinstance(one, str)]
        if any(re.search("[\ud800-\udfff]", one) for one in texts):
            return "it holds half a character (a lone surrogate)"
        below: list[object] = []
        for one in level:
            if isinstance(one, dict):
                below += [*one, *one.values()]
            elif isinstance(one, list):
                below += one
        if not below:
            return None
        level = below
    return f"it is nested deeper than {DEPTH_MAX} levels"


def _plain(key: str) -> str:
    return key if re.fullmatch(r"[\w.-]{1,60}", key, re.ASCII) else ascii(key[:SHOWN_CHARS_MAX])


def _shown(value: object) -> str:
    if isinstance(value, str):
        return ascii(redacted(value, SHOWN_CHARS_MAX))
    if value is None or isinstance(value, bool | int | float):
        return json.dumps(value)[:SHOWN_CHARS_MAX]
    return "an object" if isinstance(value, Mapping) else "a list"


@value_class
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
