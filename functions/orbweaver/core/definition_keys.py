"""What a crawl's definition may say: every key, what it takes, and which part of a plan it is."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orbweaver.core.amount import NANO, AmountError, nanodollars, size_bytes, size_text
from orbweaver.core.crawl import Scope
from orbweaver.core.duration import DurationError, duration_ms
from orbweaver.core.rules import RULES_MAX, Rule
from orbweaver.core.schedule import Overlap
from orbweaver.core.url import redacted

if TYPE_CHECKING:
    from collections.abc import Callable

SEEDS_FILE = "seeds_file"
# TOML has no greater ones, and whoever gives one means something else.
NUMBER_MAX = 2**63
SHOWN_CHARS_MAX = 60


class Unfit(Exception):
    """A value does not fit; the text says the fix."""


class UnfitWithin(Exception):
    """Some of a value does not fit: paths within it, and words; `rest` is what could be read."""

    def __init__(self, rest: Any, problems: list[tuple[str, str]]) -> None:
        super().__init__(problems)
        self.rest = rest
        self.problems = problems


def shown(value: object) -> str:
    """Write a value so that it may be shown: what it is, where it is long."""
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
    """Write the name of a key that somebody has made up so that it may be shown."""
    known = re.fullmatch(r"[\w-]{1,60}", name, re.ASCII)
    return name if known else ascii(name[:SHOWN_CHARS_MAX])


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise Unfit("give a text in quotes")
    return value


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise Unfit('give a list of texts, like ["…", "…"]')
    return tuple(value)


def _number(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > NUMBER_MAX:
        raise Unfit("give a whole number without quotes, like 1000")
    return value


def _bytes(value: object) -> int:
    return _amount(value, size_bytes, 'give a size like "500MB" or "10GB", or a number of bytes')


def _dollars(value: object) -> int:
    return _amount(value, nanodollars, "give an amount of dollars, like 5 or 0.25")


def _amount(value: object, read: Callable[[str], int], fix: str) -> int:
    if isinstance(value, int | float) and not isinstance(value, bool):
        # Neither negative, nor infinite, nor no number at all.
        value = f"{value:.9f}".rstrip("0").rstrip(".") if 0 <= value < NUMBER_MAX else ""
    if isinstance(value, str):
        try:
            return read(value)
        except AmountError:
            pass
    raise Unfit(fix)


def _switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise Unfit("give true or false, without quotes")
    return value


def _milliseconds(value: object) -> int:
    if isinstance(value, int | float) and not isinstance(value, bool):
        # Neither negative, nor infinite, nor no number at all.
        value = f"{value:.9f}" if 0 <= value < NUMBER_MAX else ""
        value = value.rstrip("0").rstrip(".")
    if isinstance(value, str):
        try:
            return duration_ms(value)
        except DurationError:
            pass
    raise Unfit('give a time like "250ms", "1.5s", "2h" or "7d", or a number of seconds')


def _seconds(value: object) -> int:
    return -(-_milliseconds(value) // 1_000)


def _headers(value: object) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, Mapping) or not all(isinstance(one, str) for one in value.values()):
        raise Unfit('give a table of names and texts, like { "Accept-Language" = "de" }')
    return tuple(value.items())


def _one_of(words: Mapping[str, Any]) -> Callable[[object], Any]:
    def read(value: object) -> Any:
        if isinstance(value, str) and value in words:
            return words[value]
        near = difflib.get_close_matches(str(value)[:SHOWN_CHARS_MAX].lower(), words, n=1)
        hint = f"did you mean {near[0]}? It takes " if near else "give "
        raise Unfit(f"{hint}{' or '.join(words)}")

    return read


def _same(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key of the document, and the part of a plan that it is."""

    path: str
    part: str
    read: Callable[[object], Any]
    write: Callable[[Any], Any] = _same
    secret: bool = False
    words: tuple[str, ...] = ()
    # The keys of the tables that it lists.
    inner: tuple[Key, ...] = ()


def _key(path: str, part: str, read: Callable[[object], Any], **more: Any) -> Key:
    return Key(path=path, part=part, read=read, **more)


def _words(path: str, part: str, words: Mapping[str, Any]) -> Key:
    names = {value: word for word, value in words.items()}
    return _key(path, part, _one_of(words), write=names.__getitem__, words=tuple(words))


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
            problems.append((f"{path}.{plain(name)}", _no_such_key(name)))
            continue
        try:
            parts[key.part] = key.read(one)
        except Unfit as error:
            problems.append((f"{path}.{name}", f"{shown(one)} does not fit: {error}"))
    return Rule(**parts)


def _no_such_key(name: str) -> str:
    names = [key.path for key in RULE_KEYS]
    near = difflib.get_close_matches(name[:SHOWN_CHARS_MAX].lower(), names, n=1)
    hint = f"did you mean {near[0]}?" if near else f"a rule has {', '.join(names)}"
    return f"there is no such key: {hint}"


def _rules_written(rules: tuple[Rule, ...]) -> list[dict[str, Any]]:
    return [
        {
            key.path: key.write(value)
            for key in RULE_KEYS
            if (value := getattr(rule, key.part)) is not None
        }
        for rule in rules
    ]


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
    _key("identity.proxies", "proxied", _switch),
    _key("dedup.window", "window_s", _seconds, write=lambda value: f"{value}s"),
    _key("dedup.strip_parameters", "strip_parameters", _texts),
    _key("dedup.keep_parameters", "keep_parameters", _switch),
    _key("records.canonical", "canonical_only", _switch),
    _words("records.noindex", "noindex_skipped", {"record": False, "skip": True}),
    _key("schedule.every", "every", _text),
    _key("schedule.cron", "cron", _text),
    _key("schedule.timezone", "timezone", _text),
    _words("schedule.overlap", "overlap", {str(one): one for one in Overlap}),
    _key("notify.webhook", "webhook", _text, secret=True),
    _key("rules", "rules", _rules, write=_rules_written, inner=RULE_KEYS),
)
BY_PATH = {key.path: key for key in KEYS}
TABLES = tuple(dict.fromkeys(path.partition(".")[0] for path in BY_PATH if "." in path))
# What a part of a plan is called in a document.
PATHS = {key.part: key.path for key in KEYS}
