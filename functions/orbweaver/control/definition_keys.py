"""Define the keys of a definition: their values, and the parts of a plan that they set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orbweaver.control.crawl_spec import SEEDS_FILE, SETTINGS
from orbweaver.control.definition_items import ITEMS
from orbweaver.control.definition_values import (
    CODECS,
    Codec,
    Key,
    Problems,
    parts_of,
    rules_of,
    schema_of_keys,
    shown,
    word_of,
)
from orbweaver.model.crawl_settings import PRIORITIES, RenderMode, RenderRule
from orbweaver.model.url_patterns import RULES_MAX
from orbweaver.model.url_rules import UrlRule

# --- rules --------------------------------------------------------------------------------------

RULE_KEYS = (
    Key("match", "match", CODECS["text"]),
    Key("depth", "depth_max", CODECS["number"]),
    Key("priority", "express", word_of(PRIORITIES)),
    Key("delay", "delay_ms", CODECS["milliseconds"]),
    Key("window", "window_s", CODECS["seconds"]),
    Key("follow", "follow", CODECS["switch"]),
    Key("record", "record", CODECS["switch"]),
)
_RULE = "a table like { match = '/archive/', depth = 2 }"


def _rule(value: object, path: str, problems: Problems) -> UrlRule:
    if not isinstance(value, Mapping):
        problems.append((path, f"{shown(value)} does not fit: give {_RULE}"))
        return UrlRule(match="")
    if "match" not in value:
        fix = "give a pattern of URLs, like '/archive/'"
        problems.append((f"{path}.match", f"there is none: {fix}"))
    return UrlRule(**{"match": "", **parts_of(value, RULE_KEYS, path, problems, "a rule")})


def _rules_written(rules: tuple[UrlRule, ...]) -> list[dict[str, Any]]:
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
    read=rules_of("rules", _RULE, RULES_MAX, _rule),
    schema={"type": "array", "maxItems": RULES_MAX, "items": _ONE_RULE},
    write=_rules_written,
)


RENDER_RULE_KEYS = (
    Key("match", "match", CODECS["text"]),
    Key("mode", "mode", word_of({str(mode): mode for mode in RenderMode})),
)
_RENDER_RULE = """a table like { match = '/shop/', mode = "always" }"""


def _render_rule(value: object, path: str, problems: Problems) -> RenderRule:
    if not isinstance(value, Mapping):
        problems.append((path, f"{shown(value)} does not fit: give {_RENDER_RULE}"))
        return RenderRule(match="")
    for key, fix in (
        ("match", "give a pattern of URLs, like '/shop/'"),
        ("mode", 'give "never", "auto" or "always"'),
    ):
        if key not in value:
            problems.append((f"{path}.{key}", f"there is none: {fix}"))
    parts = parts_of(value, RENDER_RULE_KEYS, path, problems, "a rule of rendering")
    return RenderRule(**{"match": "", **parts})


def _render_rules_written(rules: tuple[RenderRule, ...]) -> list[dict[str, Any]]:
    modes = [{} if rule.mode is None else {"mode": str(rule.mode)} for rule in rules]
    return [{"match": rule.match, **mode} for rule, mode in zip(rules, modes, strict=True)]


RENDER_RULES = Codec(
    read=rules_of("render.rules", _RENDER_RULE, RULES_MAX, _render_rule),
    schema={
        "type": "array",
        "maxItems": RULES_MAX,
        "items": schema_of_keys(RENDER_RULE_KEYS, required=["match", "mode"]),
    },
    write=_render_rules_written,
)


# --- keys ---------------------------------------------------------------------------------------

_CODECS = {**CODECS, "url_rules": RULES, "item_rules": ITEMS, "render_rules": RENDER_RULES}
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
# Path of each part of a plan in a document.
PATHS = {key.part: key.path for key in KEYS}
# A request over HTTP has no file.
DEFINABLE = tuple(key for key in KEYS if key.path != SEEDS_FILE)


def schema_of_definition() -> dict[str, Any]:
    """Return the JSON schema of definitions. No key is required."""
    return schema_of_keys(DEFINABLE)
