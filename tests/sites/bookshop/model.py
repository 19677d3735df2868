"""Resources of the shop as values, and the expected result of a correct crawl.

`Expected` is computed from the recorded links of each page, never from its HTML or the server.
Targets are canonical: root-relative, percent-encoded by the WHATWG URL Standard, without fragment
and tracking parameters. Targets on other sites are absolute.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Iterable, Mapping


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A followable link (`a` or `area`) of a page."""

    target: str
    nofollow: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """HTML page with status 200 (from its second request on, if it has `recovers`)."""

    path: str
    title: str
    body: bytes
    links: tuple[Link, ...] = ()
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "text/html; charset=utf-8"),)
    nofollow: bool = False
    noindex: bool = False
    slow: bool = False
    recovers: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Redirect:
    """A redirect; `location` is the header's spelling of `target`."""

    path: str
    status: int
    location: str
    target: str
    endless: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A path with a permanent error status."""

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
    """The model of the shop's robots.txt; `rules.text` is the served text."""

    text: str
    prefixes: tuple[str, ...]
    parts: tuple[str, ...]
    endings: tuple[str, ...]
    allowed: tuple[str, ...]

    def forbid(self, target: str) -> bool:
        """True if robots.txt forbids a path with its query."""
        if target.startswith(self.allowed):
            return False
        inside = any(part in target for part in self.parts)
        return inside or target.startswith(self.prefixes) or target.endswith(self.endings)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """URLs of a crawl from the home page, each in one set (except for `loops`).

    pages      HTML, 200, allowed by robots.txt, reached without a nofollow link noindex    the
    same, with noindex: a policy decides whether they are stored redirected URLs that redirect loops
    those in `redirected` without a final answer failed     404, 410, 403 disallowed linked or
    redirected to, but forbidden by robots.txt: never requested other      downloads that are not
    HTML nofollow   pages reached only by nofollow links: a policy decides whether they are crawled
    external   on other hosts: never requested
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
        names = (field.name for field in dataclasses.fields(self))
        return {name: sorted(getattr(self, name)) for name in names}

    @staticmethod
    def from_json(value: Mapping[str, Iterable[str]]) -> Expected:
        return Expected(**{name: frozenset(urls) for name, urls in value.items()})


def expect(resources: Mapping[str, Resource], rules: Rules, base_url: str) -> Expected:
    """Return the expected result of a crawl of `base_url` (without a final slash)."""
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
