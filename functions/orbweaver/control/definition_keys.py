"""Define the keys of a definition: the type of each value, and the part of a plan that it sets."""

from __future__ import annotations

from typing import Any

from orbweaver.control.crawl_spec import SEEDS_FILE, SETTINGS
from orbweaver.control.definition_items import ITEMS
from orbweaver.control.definition_values import (
    CODECS,
    Key,
    rules_of,
    schema_of_keys,
    word_of,
)
from orbweaver.model.crawl_settings import PRIORITIES, RenderMode, RenderRule
from orbweaver.model.url_rules import UrlRule

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
