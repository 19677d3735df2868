"""What a crawl's definition may say: every key, what it takes, and which part of a plan it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orbweaver.control import definition_values as values
from orbweaver.control.crawl_spec import SEEDS_FILE, SETTINGS
from orbweaver.control.definition_items import ITEMS
from orbweaver.control.definition_values import (
    Codec,
    Key,
    Unfit,
    UnfitWithin,
    no_such_key,
    plain,
    schema_of_keys,
    shown,
    word_of,
)
from orbweaver.model.crawl_settings import PRIORITIES, ValueKind
from orbweaver.model.url_rules import RULES_MAX, Rule

# --- rules --------------------------------------------------------------------------------------

RULE_KEYS = (
    Key("match", "match", values.TEXT),
    Key("depth", "depth_max", values.NUMBER),
    Key("priority", "express", word_of(PRIORITIES)),
    Key("delay", "delay_ms", values.MILLISECONDS),
    Key("window", "window_s", values.SECONDS),
    Key("follow", "follow", values.SWITCH),
    Key("record", "record", values.SWITCH),
)
_RULE = "a table like { match = '/archive/', depth = 2 }"


def _rules(value: object) -> tuple[Rule, ...]:
    """Read rules; what does not fit in one leaves its place in the list."""
    if not isinstance(value, list):
        raise Unfit(f"write [[rules]] above each of them, or give a list of {_RULE}")
    if len(value) > RULES_MAX:
        raise Unfit(f"{len(value):,} rules are too many: give at most {RULES_MAX}")
    problems: list[tuple[str, str]] = []
    rules = [_rule(one, f"[{place}]", problems) for place, one in enumerate(value)]
    if problems:
        raise UnfitWithin(tuple(rules), problems)
    return tuple(rules)


def _rule(value: object, path: str, problems: list[tuple[str, str]]) -> Rule:
    if not isinstance(value, Mapping):
        problems.append((path, f"{shown(value)} does not fit: give {_RULE}"))
        return Rule(match="")
    parts: dict[str, Any] = {"match": ""}
    if "match" not in value:
        fix = "give a pattern of URLs, like '/archive/'"
        problems.append((f"{path}.match", f"there is none: {fix}"))
    for name, one in value.items():
        key = next((key for key in RULE_KEYS if key.path == name), None)
        if key is None:
            problems.append((f"{path}.{plain(name)}", no_such_key(name, RULE_KEYS, "a rule")))
            continue
        try:
            parts[key.part] = key.codec.read(one)
        except Unfit as error:
            problems.append((f"{path}.{name}", f"{shown(one)} does not fit: {error}"))
    return Rule(**parts)


def _rules_written(rules: tuple[Rule, ...]) -> list[dict[str, Any]]:
    return [
        {
            key.path: key.codec.write(value)
            for key in RULE_KEYS
            if (value := getattr(rule, key.part)) is not None
        }
        for rule in rules
    ]


_ONE_RULE = schema_of_keys(RULE_KEYS, required=["match"], minProperties=2)
RULES = Codec(
    read=_rules,
    schema={"type": "array", "maxItems": RULES_MAX, "items": _ONE_RULE},
    write=_rules_written,
)


# --- keys ---------------------------------------------------------------------------------------

_CODECS: Mapping[ValueKind, Codec] = {
    ValueKind.TEXT: values.TEXT,
    ValueKind.TEXTS: values.TEXTS,
    ValueKind.NUMBER: values.NUMBER,
    ValueKind.SWITCH: values.SWITCH,
    ValueKind.MILLISECONDS: values.MILLISECONDS,
    ValueKind.SECONDS: values.SECONDS,
    ValueKind.BYTES: values.BYTES,
    ValueKind.NANODOLLARS: values.NANODOLLARS,
    ValueKind.HEADERS: values.HEADERS,
    ValueKind.HOST_HEADERS: values.HOST_HEADERS,
    ValueKind.PII_KINDS: values.PII_KINDS,
    ValueKind.URL_RULES: RULES,
    ValueKind.ITEM_RULES: ITEMS,
}
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
# What a part of a plan is called in a document.
PATHS = {key.part: key.path for key in KEYS}
# There is no file beside what comes over HTTP.
DEFINABLE = tuple(key for key in KEYS if key.path != SEEDS_FILE)


def schema_of_definition() -> dict[str, Any]:
    """Describe definitions as JSON; no key is needed."""
    return schema_of_keys(DEFINABLE)
