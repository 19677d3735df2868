"""Parse and write the values of a definition's keys, by type, and describe them by JSON schemas."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

from orbweaver.control.crawl_spec import SETTINGS
from orbweaver.model.amounts import (
    duration_ms,
    duration_s,
    in_dollars,
    nanodollars,
    size_bytes,
    size_text,
)
from orbweaver.model.url import redacted
from orbweaver.model.url_patterns import RULES_MAX
from orbweaver.model.user_agent import HOSTS_MAX
from orbweaver.model.value import positional_value_class, value_class
from orbweaver.parsing.pii_redaction import KINDS

T = TypeVar("T")
# TOML has no larger numbers.
NUMBER_MAX = 2**63
SHOWN_CHARS_MAX = 60
Problems: TypeAlias = list[tuple[str, str]]
BOUNDS = {one.name: one.bounds for one in SETTINGS if one.bounds is not None}
HOSTS_EXAMPLE = '[identity.hosts."example.org"] with headers = { "X-Key" = "…" } below'


class UnfitSetting(Exception):
    """A value is invalid. The message contains the fix."""


class UnfitWithin(Exception):
    """Parts of a value are invalid. `problems` has paths and messages, `rest` the valid parts."""

    def __init__(self, rest: Any, problems: Problems) -> None:
        super().__init__(problems)
        self.rest = rest
        self.problems = problems


def shown(value: object) -> str:
    """Format a value for messages, truncated if it is long."""
    if isinstance(value, str):
        return ascii(redacted(value, SHOWN_CHARS_MAX))
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float) or (isinstance(value, int) and abs(value) <= NUMBER_MAX):
        return str(value)
    if isinstance(value, int):
        return "a very large number"
    return "a table" if isinstance(value, Mapping) else f"a {type(value).__name__}"


def plain(name: str) -> str:
    known = re.fullmatch(r"[\w-]{1,60}", name, re.ASCII)
    return name if known else ascii(name[:SHOWN_CHARS_MAX])


def _of_type(kind: type, fix: str) -> Callable[[object], Any]:
    def read(value: object) -> Any:
        if not isinstance(value, kind):
            raise UnfitSetting(fix)
        return value

    return read


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise UnfitSetting('give a list of texts, like ["…", "…"]')
    return tuple(value)


def _number(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > NUMBER_MAX:
        raise UnfitSetting("give a whole number without quotes, like 1000")
    return value


def _amount(read: Callable[[str], int], fix: str) -> Callable[[object], int]:
    def amount(value: object) -> int:
        if isinstance(value, int | float) and not isinstance(value, bool):
            # Only finite numbers that are not negative are valid.
            value = f"{value:.9f}".rstrip("0").rstrip(".") if 0 <= value < NUMBER_MAX else ""
        if isinstance(value, str):
            try:
                return read(value)
            except ValueError:  # no amount, no duration
                pass
        raise UnfitSetting(fix)

    return amount


def _headers(value: object) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, Mapping) or not all(isinstance(one, str) for one in value.values()):
        raise UnfitSetting('give a table of names and texts, like { "Accept-Language" = "de" }')
    return tuple(value.items())


def _hosts(value: object) -> tuple[tuple[str, tuple[tuple[str, str], ...]], ...]:
    return read_tables(value, HOSTS_EXAMPLE, _host_of)


def _host_of(
    host: str, table: Mapping[str, Any], path: str, problems: Problems
) -> tuple[str, tuple[tuple[str, str], ...]]:
    unknown = "there is no such key: a host has headers"
    problems += [(f"{path}.{plain(name)}", unknown) for name in table if name != "headers"]
    try:
        return host, _headers(table.get("headers", {}))
    except UnfitSetting as error:
        problems.append((f"{path}.headers", str(error)))
        return host, ()


def _hosts_written(hosts: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]) -> dict[str, Any]:
    return {host: {"headers": dict(own)} for host, own in hosts}


def _pii_kinds(value: object) -> tuple[str, ...]:
    kinds = _texts(value)
    if not set(kinds) <= set(KINDS):
        raise UnfitSetting(f"give a list of {' and '.join(KINDS)}")
    return tuple(kind for kind in KINDS if kind in kinds)


def _one_of(words: Mapping[str, Any]) -> Callable[[object], Any]:
    def read(value: object) -> Any:
        if isinstance(value, str) and value in words:
            return words[value]
        near = difflib.get_close_matches(str(value)[:SHOWN_CHARS_MAX].lower(), words, n=1)
        hint = f"did you mean {near[0]}? It takes " if near else "give "
        raise UnfitSetting(f"{hint}{' or '.join(words)}")

    return read


def _same(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


@value_class
class Codec:
    """Parser, writer and JSON schema for one type of value in a definition."""

    read: Callable[[object], Any]
    schema: Mapping[str, Any]
    write: Callable[[Any], Any] = _same


STRING = {"type": "string"}
_TIME_FIX = 'give a time like "250ms", "1.5s", "2h" or "7d", or a number of seconds'
_TIME = {"type": ["string", "number"], "description": "like 250ms, 1.5s, 2h or 7d; or seconds"}
_NAMED = {"type": "object", "additionalProperties": STRING}
# Codecs for the types of settings. The modules that parse rules define the codecs of rules.
# Constraints that a schema cannot express (a seed is a URL, a pattern runs in linear time) are
# checked separately.
CODECS: Mapping[str, Codec] = {
    "text": Codec(read=_of_type(str, "give a text in quotes"), schema=STRING),
    "texts": Codec(read=_texts, schema={"type": "array", "items": STRING}),
    "number": Codec(read=_number, schema={"type": "integer"}),
    "switch": Codec(
        read=_of_type(bool, "give true or false, without quotes"), schema={"type": "boolean"}
    ),
    "milliseconds": Codec(read=_amount(duration_ms, _TIME_FIX), schema=_TIME, write="{}ms".format),
    "seconds": Codec(read=_amount(duration_s, _TIME_FIX), schema=_TIME, write="{}s".format),
    "bytes": Codec(
        read=_amount(size_bytes, 'give a size like "500MB" or "10GB", or a number of bytes'),
        schema={"type": ["string", "integer"], "description": "like 500MB or 10GB; or bytes"},
        write=size_text,
    ),
    "nanodollars": Codec(
        read=_amount(nanodollars, "give an amount of dollars, like 5 or 0.25"),
        schema={"type": ["string", "number"], "description": "like 5 or 0.25"},
        write=in_dollars,
    ),
    "headers": Codec(read=_headers, schema=_NAMED, write=dict),
    "host_headers": Codec(
        read=_hosts,
        schema={
            "type": "object",
            "maxProperties": HOSTS_MAX,
            "additionalProperties": {
                "type": "object",
                "properties": {"headers": _NAMED},
                "additionalProperties": False,
            },
        },
        write=_hosts_written,
    ),
    "pii_kinds": Codec(
        read=_pii_kinds, schema={"type": "array", "items": {**STRING, "enum": list(KINDS)}}
    ),
}


def word_of(words: Mapping[str, Any]) -> Codec:
    names = {value: word for word, value in words.items()}
    schema = {**STRING, "enum": list(words)}
    return Codec(read=_one_of(words), schema=schema, write=names.__getitem__)


@positional_value_class
class Key:
    """A key of a definition, and the part of a plan that it sets.

    A required key has `needed`: the fix that is shown if the key is missing. It is "" if another
    check reports the missing key.
    """

    path: str
    part: str
    codec: Codec
    secret: bool = False
    needed: str | None = None


def schema_of_keys(keys: Iterable[Key], **more: Any) -> dict[str, Any]:
    """Return the JSON schema of a document that allows only these keys. `more` adds keywords."""
    schema = _table()
    if required := [key.path for key in keys if key.needed is not None]:
        schema["required"] = required
    for key in keys:
        table, _, name = key.path.rpartition(".")
        holder = schema["properties"].setdefault(table, _table()) if table else schema
        holder["properties"][name] = _schema_of(key)
    return {**schema, **more}


def _table() -> dict[str, Any]:
    return {"type": "object", "properties": {}, "additionalProperties": False}


def _schema_of(key: Key) -> Mapping[str, Any]:
    bounds = BOUNDS.get(key.part)
    if bounds is None or key.codec is not CODECS["number"]:
        return key.codec.schema
    return {**key.codec.schema, "minimum": bounds[0], "maximum": bounds[1]}


def no_such_key(name: str, keys: tuple[Key, ...], what: str) -> str:
    """Return the error for an unknown key in `what` (a noun), with the nearest known key."""
    if name == "xpath":
        return "XPath is not supported: give css"
    names = [key.path for key in keys]
    near = difflib.get_close_matches(name[:SHOWN_CHARS_MAX].lower(), names, n=1)
    hint = f"did you mean {near[0]}?" if near else f"{what} has {', '.join(names)}"
    return f"there is no such key: {hint}"


def parts_of(
    value: Mapping[str, Any], keys: tuple[Key, ...], path: str, problems: Problems, what: str
) -> dict[str, Any]:
    """Parse a table at `path` that allows only these keys. Problems are added to `problems`."""
    by_path = {key.path: key for key in keys}
    parts: dict[str, Any] = {}
    for name, one in value.items():
        key = by_path.get(name)
        if key is None:
            problems.append((f"{path}.{plain(name)}", no_such_key(name, keys, what)))
            continue
        try:
            parts[key.part] = key.codec.read(one)
        except UnfitSetting as error:
            problems.append((f"{path}.{name}", f"{shown(one)} does not fit: {error}"))
        except UnfitWithin as error:
            parts[key.part] = error.rest
            problems += [(f"{path}.{name}{at}", said) for at, said in error.problems]
    return parts


def read_tables(
    value: object, example: str, read_table: Callable[[str, Mapping[str, Any], str, Problems], T]
) -> tuple[T, ...]:
    """Parse tables by origin or host. `read_table` gets its name, table, path and all problems."""
    if not isinstance(value, Mapping):
        raise UnfitSetting(f"write {example}")
    problems: Problems = []
    found = []
    for name, table in value.items():
        path = f".{redacted(name, SHOWN_CHARS_MAX)!a}"
        if isinstance(table, Mapping):
            found.append(read_table(name, table, path, problems))
        else:
            problems.append((path, f"give a table: write {example}"))
    if problems:
        raise UnfitWithin(tuple(found), problems)
    return tuple(found)


def missing_in(value: Mapping[str, Any], keys: Iterable[Key], path: str) -> Problems:
    return [
        (f"{path}.{key.path}", f"there is none: {key.needed}")
        for key in keys
        if key.needed and key.path not in value
    ]


def rules_of(
    name: str, example: str, keys: tuple[Key, ...], blank: Any, noun: str, **more: Any
) -> Codec:
    """Return the codec of a list of rules with these keys.

    `example` and `noun` describe a rule in messages. `blank` is a rule without values. `more` adds
    keywords to the schema of a rule.
    """

    def read(value: Mapping[str, Any], path: str, problems: Problems) -> Any:
        problems += missing_in(value, keys, path)
        return replace(blank, **parts_of(value, keys, path, problems, noun))

    def write(rule: Any) -> dict[str, Any]:
        return {
            key.path: key.codec.write(value)
            for key in keys
            if (value := getattr(rule, key.part)) is not None
        }

    schema = schema_of_keys(keys, **more)
    return list_of(name, example, RULES_MAX, schema, blank, read, write)


def list_of(
    name: str,
    example: str,
    most: int,
    schema: Mapping[str, Any],
    blank: Any,
    read: Callable[[Mapping[str, Any], str, Problems], Any],
    write: Callable[[Any], dict[str, Any]],
) -> Codec:
    """Return the codec of a list of at most `most` rules.

    `schema`, `read` and `write` are for one rule. `blank` replaces a rule that is not a table.
    """

    def read_one(value: object, path: str, problems: Problems) -> Any:
        if isinstance(value, Mapping):
            return read(value, path, problems)
        problems.append((path, f"{shown(value)} does not fit: give {example}"))
        return blank

    def read_all(value: object) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise UnfitSetting(f"write [[{name}]] above each of them, or give a list of {example}")
        if len(value) > most:
            raise UnfitSetting(f"{len(value):,} rules are too many: give at most {most}")
        problems: Problems = []
        rules = tuple(read_one(one, f"[{place}]", problems) for place, one in enumerate(value))
        if problems:
            raise UnfitWithin(rules, problems)
        return rules

    return Codec(
        read=read_all,
        schema={"type": "array", "maxItems": most, "items": schema},
        write=lambda rules: [write(rule) for rule in rules],
    )
