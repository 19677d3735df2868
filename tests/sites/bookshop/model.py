"""What the shop consists of, as values, and what a correct crawl of it finds.

`Expected` is computed from the links that each page was written with, never from its HTML and never
by asking the server. Targets are canonical: root-relative, percent-encoded as the WHATWG URL
Standard does it, without fragment and tracking parameters; other sites' are absolute.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A followable link (`a` or `area`) of a page."""

    target: str
    nofollow: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """An HTML page that answers 200 (with `recovers`, from its second request on)."""

    path: str
    title: str
    body: bytes
    links: tuple[Link, ...] = ()
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "text/html; charset=utf-8"),)
    nofollow: bool = False
    noindex: bool = False
    slow: bool = False
    recovers: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Redirect:
    """A redirect: `location` is how the header spells `target`."""

    path: str
    status: int
    location: str
    target: str
    endless: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A path that answers with an error status, for good."""

    path: str
    status: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A download that is not HTML."""

    path: str
    content_type: str
    body: bytes


Resource = Page | Redirect | Missing | File


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The shop's robots.txt as the model knows it; `rules.text` is what it serves."""

    text: str
    prefixes: tuple[str, ...]
    parts: tuple[str, ...]
    endings: tuple[str, ...]
    allowed: tuple[str, ...]

    def forbid(self, target: str) -> bool:
        """Return whether a path with its query is forbidden."""
        if target.startswith(self.allowed):
            return False
        inside = any(part in target for part in self.parts)
        return inside or target.startswith(self.prefixes) or target.endswith(self.endings)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The URLs that a crawl from the home page meets, each in one set (but for `loops`).

    pages      HTML, 200, allowed by robots, reached without a nofollow link
    noindex    the same, for pages that ask not to be indexed: whether they are stored is policy
    redirected URLs that redirect
    loops      those of `redirected` that never end at an answer
    failed     404, 410, 403
    disallowed linked or redirected to, but forbidden by robots: never asked
    other      downloads that are not HTML
    nofollow   pages that only nofollow links reach: whether they are crawled is policy
    external   on other hosts: never asked
    """

    pages: frozenset[str]
    noindex: frozenset[str]
    redirected: frozenset[str]
    loops: frozenset[str]
    failed: frozenset[str]
    disallowed: frozenset[str]
    other: frozenset[str]
    nofollow: frozenset[str]
    external: frozenset[str]

    def as_json(self) -> dict[str, list[str]]:
        """Return the sets as sorted lists."""
        names = (field.name for field in dataclasses.fields(self))
        return {name: sorted(getattr(self, name)) for name in names}

    @staticmethod
    def from_json(value: Mapping[str, Iterable[str]]) -> Expected:
        """Return what `as_json` gave."""
        return Expected(**{name: frozenset(urls) for name, urls in value.items()})


def expect(resources: Mapping[str, Resource], rules: Rules, base_url: str) -> Expected:
    """Return what a crawl of `base_url` (without a slash at its end) finds."""
    sets = _reach(resources, rules, obey_nofollow=True)
    beyond = _reach(resources, rules, obey_nofollow=False)
    shown = {
        name: frozenset(t if name == "external" else base_url + t for t in targets)
        for name, targets in sets.items()
    }
    nofollow = (beyond["pages"] | beyond["noindex"]) - sets["pages"] - sets["noindex"]
    return Expected(**shown, nofollow=frozenset(base_url + target for target in nofollow))


def _reach(
    resources: Mapping[str, Resource], rules: Rules, *, obey_nofollow: bool
) -> dict[str, set[str]]:
    names = ("pages", "noindex", "redirected", "loops", "failed", "disallowed", "other", "external")
    sets: dict[str, set[str]] = {name: set() for name in names}
    known = {"/"}
    todo = deque(known)
    while todo:
        target = todo.popleft()
        found = _classes(target, resources, rules)
        for name in found:
            sets[name].add(target)
        if "disallowed" in found or "external" in found:
            continue
        for following in _next(resources.get(target), obey_nofollow=obey_nofollow):
            if following not in known:
                known.add(following)
                todo.append(following)
    return sets


def _classes(target: str, resources: Mapping[str, Resource], rules: Rules) -> tuple[str, ...]:
    if not target.startswith("/"):
        return ("external",)
    if rules.forbid(target):
        return ("disallowed",)
    match resources.get(target):
        case Page(noindex=noindex):
            return ("noindex",) if noindex else ("pages",)
        case Redirect(endless=endless):
            return ("redirected", "loops") if endless else ("redirected",)
        case File():
            return ("other",)
        case _:
            return ("failed",)


def _next(resource: Resource | None, *, obey_nofollow: bool) -> list[str]:
    match resource:
        case Redirect(target=target):
            return [target]
        case Page(nofollow=True) if obey_nofollow:
            return []
        case Page(links=links):
            return [link.target for link in links if not (obey_nofollow and link.nofollow)]
        case _:
            return []
