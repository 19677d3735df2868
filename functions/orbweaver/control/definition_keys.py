"""What a crawl's definition may say: every key, what it takes, and which part of a plan it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orbweaver.control.crawl_spec import Overlap
from orbweaver.control.definition_items import ITEM_KEYS, items, items_written
from orbweaver.control.definition_values import (
    Unfit,
    UnfitWithin,
    _bytes,
    _dollars,
    _headers,
    _hosts,
    _hosts_written,
    _key,
    _milliseconds,
    _number,
    _seconds,
    _switch,
    _text,
    _texts,
    _words,
    no_such_key,
    plain,
    shown,
)
from orbweaver.model.amounts import NANO, size_text
from orbweaver.model.crawl import Bodies, Scope
from orbweaver.model.url_rules import RULES_MAX, Rule
from orbweaver.parsing.pii_redaction import KINDS

SEEDS_FILE = "seeds_file"


# --- rules --------------------------------------------------------------------------------------

_PRIORITIES = {"normal": False, "high": True}
RULE_KEYS = (
    _key("match", "match", _text),
    _key("depth", "depth_max", _number),
    _words("priority", "express", _PRIORITIES),
    _key("delay", "delay_ms", _milliseconds, write=lambda value: f"{value}ms"),
    _key("window", "window_s", _seconds, write=lambda value: f"{value}s"),
    _key("follow", "follow", _switch),
    _key("record", "record", _switch),
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
            parts[key.part] = key.read(one)
        except Unfit as error:
            problems.append((f"{path}.{name}", f"{shown(one)} does not fit: {error}"))
    return Rule(**parts)


def _rules_written(rules: tuple[Rule, ...]) -> list[dict[str, Any]]:
    return [
        {
            key.path: key.write(value)
            for key in RULE_KEYS
            if (value := getattr(rule, key.part)) is not None
        }
        for rule in rules
    ]


# --- redaction ----------------------------------------------------------------------------------


def _kinds(value: object) -> tuple[str, ...]:
    """Read what is to be redacted, each once."""
    kinds = _texts(value)
    if not set(kinds) <= set(KINDS):
        raise Unfit(f"give a list of {' and '.join(KINDS)}")
    return tuple(kind for kind in KINDS if kind in kinds)


# --- keys ---------------------------------------------------------------------------------------

KEYS = (
    _key("name", "name", _text),
    _key("seeds", "seeds", _texts),
    _key(SEEDS_FILE, "", _text),
    _key("sitemaps", "sitemap_urls", _texts),
    _words("priority", "express", _PRIORITIES),
    _words("scope.links", "scope", {str(scope): scope for scope in Scope}),
    _key("scope.include", "include", _texts),
    _key("scope.exclude", "exclude", _texts),
    _key("scope.robots_sitemaps", "sitemaps", _switch),
    _key("limits.depth", "depth_max", _number),
    _key("limits.pages", "pages_max", _number),
    _key("limits.host_pages", "host_pages_max", _number),
    _key("limits.duration", "duration_s", _seconds, write=lambda value: f"{value}s"),
    _key("limits.bytes", "bytes_max", _bytes, write=size_text),
    _key("limits.dollars", "nanodollars_max", _dollars, write=lambda value: value / NANO),
    _key("politeness.delay", "delay_ms", _milliseconds, write=lambda value: f"{value}ms"),
    _key("politeness.concurrency", "concurrency", _number),
    _key("politeness.robots", "obey_robots", _switch),
    _key("identity.user_agents", "user_agents", _texts),
    _key("identity.headers", "headers", _headers, write=dict, secret=True),
    _key("identity.cookies", "cookies", _switch),
    _key("identity.hosts", "host_headers", _hosts, write=_hosts_written, secret=True),
    _key("identity.proxies", "proxied", _switch),
    _key("dedup.window", "window_s", _seconds, write=lambda value: f"{value}s"),
    _key("dedup.strip_parameters", "strip_parameters", _texts),
    _key("dedup.keep_parameters", "keep_parameters", _switch),
    _key("records.canonical", "canonical_only", _switch),
    _words("records.noindex", "noindex_skipped", {"record": False, "skip": True}),
    _words("records.bodies", "bodies", {str(one): one for one in Bodies}),
    _key("records.text", "texts", _switch),
    _key("records.redact", "redacted", _kinds),
    _key("schedule.every", "every", _text),
    _key("schedule.cron", "cron", _text),
    _key("schedule.timezone", "timezone", _text),
    _words("schedule.overlap", "overlap", {str(one): one for one in Overlap}),
    _key("notify.webhook", "webhook", _text, secret=True),
    _key("rules", "rules", _rules, write=_rules_written, inner=RULE_KEYS),
    _key("items", "items", items, write=items_written, inner=ITEM_KEYS),
)
BY_PATH = {key.path: key for key in KEYS}
TABLES = tuple(dict.fromkeys(path.partition(".")[0] for path in BY_PATH if "." in path))
# What a part of a plan is called in a document.
PATHS = {key.part: key.path for key in KEYS}
