"""Define the keys of a definition: the type of each value, and the part of a plan that it sets.

Item rules are `[[items]]`, with `[items.fields]`. A field is a table, or a text as its short form.
The text is a CSS selector or, if the rule has a `source`, a path in the data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from orbweaver.control.crawl_spec import SEEDS_FILE, SETTINGS
from orbweaver.control.definition_access import ACCESS
from orbweaver.control.definition_api import API
from orbweaver.control.definition_auth import AUTH
from orbweaver.control.definition_values import (
    CODECS,
    NUMBER_MAX,
    STRING,
    Codec,
    Key,
    Problems,
    UnfitSetting,
    list_of,
    missing_in,
    parts_of,
    plain,
    rules_of,
    schema_of_keys,
    shown,
    word_of,
)
from orbweaver.extraction.rules import FIELD_NAME, FIELDS_MAX, RULES_MAX
from orbweaver.model.crawl_settings import PRIORITIES, RenderMode, RenderRule
from orbweaver.model.item_rules import Field, ItemRule, ValueKind, ValueSource, ValueTake
from orbweaver.model.url_rules import UrlRule

PATH = "path"
_PLACES = (
    ValueSource.CSS,
    ValueSource.JSON,
    ValueSource.JSONLD,
    ValueSource.MICRODATA,
    ValueSource.OPENGRAPH,
    ValueSource.META,
)
_SOURCES = {str(source): source for source in _PLACES[1:]} | {"opengraph": ValueSource.OPENGRAPH}
_FIELD = 'a table like { css = "h1" }, or in short "h1"'


def _is_scalar(value: object) -> bool:
    # Only finite numbers within the range of stored numbers are valid.
    return isinstance(value, str) or (isinstance(value, int | float) and abs(value) <= NUMBER_MAX)


def _value(value: object) -> Any:
    if isinstance(value, list) and all(map(_is_scalar, value)):
        return tuple(value)
    if _is_scalar(value):
        return value
    raise UnfitSetting("give a text, a number, true or false, or a list of such")


def _meanings(value: object) -> tuple[tuple[str, Any], ...]:
    if not isinstance(value, Mapping) or not all(map(_is_scalar, value.values())):
        raise UnfitSetting("give a table of texts and what they mean, like { One = 1, Two = 2 }")
    return tuple((str(text), one) for text, one in value.items())


def _fields(value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise UnfitSetting('write [items.fields] above them, like title = "h1"')
    return value


_SCALAR = {"type": ["string", "number", "boolean"]}
VALUE = Codec(read=_value, schema={"anyOf": [_SCALAR, {"type": "array", "items": _SCALAR}]})
MEANINGS = Codec(
    read=_meanings, schema={"type": "object", "additionalProperties": _SCALAR}, write=dict
)
FIELD_KEYS = (
    *(Key(str(source), "where", CODECS["text"]) for source in _PLACES),
    Key(PATH, "where", CODECS["text"]),
    Key("attribute", "attribute", CODECS["text"]),
    Key("take", "take", word_of({str(take): take for take in ValueTake})),
    Key("regex", "regex", CODECS["text"]),
    Key("list", "many", CODECS["switch"]),
    Key("type", "type", word_of({str(kind): kind for kind in ValueKind})),
    Key("required", "required", CODECS["switch"]),
    Key("default", "default", VALUE),
    Key("values", "values", MEANINGS),
    Key("format", "format", CODECS["text"]),
    Key("currency", "currency", CODECS["text"]),
    Key("decimal", "decimal", CODECS["text"]),
    Key("cut", "cut", CODECS["number"]),
)
# The schema allows any key, because users choose the names of fields.
FIELDS = Codec(
    read=_fields,
    schema={
        "type": "object",
        "minProperties": 1,
        "maxProperties": FIELDS_MAX,
        "propertyNames": {"pattern": f"^{FIELD_NAME.pattern}$"},
        "additionalProperties": {"anyOf": [STRING, schema_of_keys(FIELD_KEYS)]},
    },
)
ITEM_KEYS = (
    Key("name", "name", CODECS["text"], needed="give the name of its table, like 'books'"),
    Key("match", "match", CODECS["text"], needed="give a pattern of URLs, like '/books/'"),
    Key("each", "each", CODECS["text"]),
    Key("source", "source", CODECS["text"]),
    Key("extractor", "extractor", CODECS["text"]),
    Key("least", "least", CODECS["number"]),
    Key("fields", "fields", FIELDS, needed=""),
)
_DEFAULTS = {field.name: field.default for field in fields(Field)}


# --- reading ------------------------------------------------------------------------------------


def _rule(value: Mapping[str, Any], path: str, problems: Problems) -> ItemRule:
    parts = {"name": "", "match": ""} | parts_of(value, ITEM_KEYS, path, problems, "a rule")
    problems += missing_in(value, ITEM_KEYS, path)
    source, of = ValueSource.CSS, ""
    if "source" in parts:
        word, _, of = parts.pop("source").partition(":")
        if word not in _SOURCES:
            fix = 'give "json", "jsonld:Product", "microdata:Product", "og" or "meta"'
            problems.append((f"{path}.source", f"{shown(value['source'])} does not fit: {fix}"))
        source = _SOURCES.get(word, ValueSource.CSS)
    if "extractor" in parts:
        if "source" in value:
            text = "extractor says what the items are: leave one of the two out"
            problems.append((f"{path}.source", text))
        source = ValueSource.CUSTOM
    given = parts.pop("fields", {})
    found = tuple(
        _field(name, one, f"{path}.fields.{plain(name)}", source, problems)
        for name, one in given.items()
    )
    return ItemRule(**parts, source=source, of=of, fields=found)


def _field(name: str, value: object, path: str, source: ValueSource, problems: Problems) -> Field:
    if isinstance(value, str):
        return Field(name=name, source=source, where=value)
    if not isinstance(value, Mapping):
        problems.append((path, f"{shown(value)} does not fit: give {_FIELD}"))
        return Field(name=name, where="*")
    given = [str(place) for place in (*_PLACES, PATH) if str(place) in value]
    parts = parts_of(value, FIELD_KEYS, path, problems, "a field")
    if len(given) > 1:
        problems.append((path, f"{' and '.join(given)} each say where it is: give one of them"))
    elif given == [PATH] and source is ValueSource.CSS:
        problems.append((f"{path}.path", "the rule has no source that it leads through: give css"))
    elif given and given != [PATH]:
        source = ValueSource(given[0])
    elif source is not ValueSource.CSS:
        # In a rule for data, the default path of a field is the field's name.
        parts.setdefault("where", f"$.{name}" if source is ValueSource.JSON else name)
    return Field(name=name, source=source, **parts)


# --- writing ------------------------------------------------------------------------------------


def _rule_written(rule: ItemRule) -> dict[str, Any]:
    written: dict[str, Any] = {"name": rule.name, "match": rule.match}
    if rule.each is not None:
        written["each"] = rule.each
    if rule.extractor is not None:
        written["extractor"] = rule.extractor
    elif rule.source is not ValueSource.CSS:
        written["source"] = f"{rule.source}:{rule.of}" if rule.of else str(rule.source)
    if rule.least != 1:
        written["least"] = rule.least
    written["fields"] = {one.name: _field_written(one, rule.source) for one in rule.fields}
    return written


def _field_written(field: Field, source: ValueSource) -> str | dict[str, Any]:
    name = PATH if field.source is ValueSource.CUSTOM else str(field.source)
    written: dict[str, Any] = {name: field.where} if field.where else {}
    for key in FIELD_KEYS:
        value = getattr(field, key.part)
        if key.part != "where" and value != _DEFAULTS[key.part]:
            written[key.path] = key.codec.write(value)
    in_short = field.source is source and written.keys() == {name}
    return field.where if in_short else written


ITEMS = list_of(
    "items",
    "a table like { name = 'books', match = '/books/', fields = { title = 'h1' } }",
    RULES_MAX,
    schema_of_keys(ITEM_KEYS),
    ItemRule(name="", match=""),
    _rule,
    _rule_written,
)


# --- rules --------------------------------------------------------------------------------------

RULE_KEYS = (
    Key("match", "match", CODECS["text"], needed="give a pattern of URLs, like '/archive/'"),
    Key("depth", "depth_max", CODECS["number"]),
    Key("priority", "express", word_of(PRIORITIES)),
    Key("delay", "delay_ms", CODECS["milliseconds"]),
    Key("window", "window_s", CODECS["seconds"]),
    Key("follow", "follow", CODECS["switch"]),
    Key("record", "record", CODECS["switch"]),
)
RULES = rules_of(
    "rules",
    "a table like { match = '/archive/', depth = 2 }",
    RULE_KEYS,
    UrlRule(match=""),
    "a rule",
    minProperties=2,
)
_MODES = word_of({str(mode): mode for mode in RenderMode})
RENDER_RULE_KEYS = (
    Key("match", "match", CODECS["text"], needed="give a pattern of URLs, like '/shop/'"),
    Key("mode", "mode", _MODES, needed='give "never", "auto" or "always"'),
)
RENDER_RULES = rules_of(
    "render.rules",
    """a table like { match = '/shop/', mode = "always" }""",
    RENDER_RULE_KEYS,
    RenderRule(match=""),
    "a rule of rendering",
)


# --- keys ---------------------------------------------------------------------------------------

_CODECS = {**CODECS, "url_rules": RULES, "item_rules": ITEMS, "render_rules": RENDER_RULES}
_CODECS |= {"auth": AUTH, "apis": API, "host_access": ACCESS}
KEYS = tuple(
    Key(
        path=one.key,
        part=one.name,
        codec=word_of(one.words) if one.words else _CODECS[one.kind],
        secret=one.secret,
    )
    for one in SETTINGS
)
BY_PATH = {key.path: key for key in KEYS}
TABLES = tuple(dict.fromkeys(path.partition(".")[0] for path in BY_PATH if "." in path))
# The key (path in a document) that sets each part of a plan.
PATHS = {key.part: key.path for key in KEYS}
# Keys of a request over HTTP, which cannot name a file.
DEFINABLE = tuple(key for key in KEYS if key.path != SEEDS_FILE)


def schema_of_definition() -> dict[str, Any]:
    """Return the JSON schema of definitions. No key is required."""
    return schema_of_keys(DEFINABLE)
