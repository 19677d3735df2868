"""What a crawl's definition may say: every key, what it takes, and which part of a plan it is."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orbweaver.core.crawl import Scope
from orbweaver.core.duration import DurationError, duration_ms

if TYPE_CHECKING:
    from collections.abc import Callable

SEEDS_FILE = "seeds_file"
# TOML has no greater ones, and whoever gives one means something else.
NUMBER_MAX = 2**63
SHOWN_CHARS_MAX = 60


class Unfit(Exception):
    """A value does not fit; the text says the fix."""


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


def _key(path: str, part: str, read: Callable[[object], Any], **more: Any) -> Key:
    return Key(path=path, part=part, read=read, **more)


def _words(path: str, part: str, words: Mapping[str, Any]) -> Key:
    names = {value: word for word, value in words.items()}
    return Key(path=path, part=part, read=_one_of(words), write=lambda value: names[value])


KEYS = (
    _key("name", "name", _text),
    _key("seeds", "seeds", _texts),
    _key(SEEDS_FILE, "", _text),
    _key("sitemaps", "sitemap_urls", _texts),
    _words("priority", "express", {"normal": False, "high": True}),
    _words("scope.links", "scope", {str(scope): scope for scope in Scope}),
    _key("scope.include", "include", _texts),
    _key("scope.exclude", "exclude", _texts),
    _key("scope.robots_sitemaps", "sitemaps", _switch),
    _key("limits.depth", "depth_max", _number),
    _key("limits.pages", "pages_max", _number),
    _key("limits.duration", "duration_s", _seconds, write=lambda value: f"{value}s"),
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
)
BY_PATH = {key.path: key for key in KEYS}
TABLES = tuple(dict.fromkeys(path.partition(".")[0] for path in BY_PATH if "." in path))
# What a part of a plan is called in a document.
PATHS = {key.part: key.path for key in KEYS}
