"""Define a URL that a crawl must request, with its attributes and its form in messages.

A pack is a message with up to 25 such URLs. Each is a row, which ends with an object if it has
optional attributes. Newer versions may write more attributes. Readers ignore unknown ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from enum import StrEnum
from operator import attrgetter
from typing import Any

from orbweaver.model.value import value_class


class TargetKind(StrEnum):
    """Purpose of requesting a URL: a page, or a sitemap (list of pages)."""

    PAGE = "page"
    SITEMAP = "sitemap"


@value_class
class Prior:
    """An earlier claim of a URL (its reservation for one run): the run and the time."""

    crawl: str
    at_ms: int


@value_class
class Target:
    """A URL that belongs to a crawl. `attempt` counts from 1, `hops` counts preceding redirects.

    A claim of an earlier run that is older than `modified_at_ms` does not count. For a sitemap,
    `hops` includes index files, and `first` is the number of processed entries. `site` is the host
    whose robots.txt names the sitemap, or None if a user named it. A page that a sitemap lists on
    another host has `site`, too. URL rules set `express` (priority) and `window_s`. Earlier claims
    count for `window_s` seconds (None: the crawl's window).
    """

    url: str
    depth: int
    attempt: int = 1
    hops: int = 0
    referrer: str | None = None
    prior: Prior | None = None
    # Folder that limits this part of the crawl, if a seed redirected out of its own.
    root: str | None = None
    # Non-public origin that the original seed names, if the crawl does not name it
    # (model/named_origins.py).
    local: str | None = None
    modified_at_ms: int | None = None
    kind: TargetKind = TargetKind.PAGE
    site: str | None = None
    first: int = 0
    express: bool = False
    window_s: int | None = None
    # Whether its host's page limit already counts it.
    counted: bool = False
    # Whether it was sent to the seed queue, so that its redirects do not widen the scope.
    bound: bool = False
    # Whether it may need rendering, so that a worker with a browser must take it.
    render: bool = False
    # Failure of the previous attempt, for people. Unset for a first attempt.
    failed: str | None = None
    # Number of repeated requests because it redirects to itself and sets a cookie.
    reloads: int = 0
    # For a page of an API: the API's URL, and the number of the page from 1 (model/api_source.py).
    api: str | None = None
    page: int = 0
    # Whether the URL ended in an earlier run, and this run has not requested it yet.
    again: bool = False


# Optional attributes in the order of writing: name in a row, field, type.
_EXTRAS = (
    ("root", "root", "a URL"),
    ("local", "local", "a URL"),
    ("modified", "modified_at_ms", "a number from 0"),
    ("kind", "kind", "a kind"),
    ("site", "site", "a URL"),
    ("first", "first", "a number from 0"),
    ("window", "window_s", "a number from 0"),
    ("express", "express", "true or false"),
    ("counted", "counted", "true or false"),
    ("bound", "bound", "true or false"),
    ("render", "render", "true or false"),
    ("failed", "failed", "a text"),
    ("reloads", "reloads", "a number from 0"),
    ("again", "again", "true or false"),
    ("api", "api", "a URL"),
    ("page", "page", "a number from 0"),
)
_FITS: Mapping[str, Callable[[Any], bool]] = {
    "a URL": lambda value: value is None or isinstance(value, str),
    "a text": lambda value: value is None or isinstance(value, str),
    "a number from 0": lambda value: value is None or (type(value) is int and value >= 0),
    "a kind": lambda value: bool(TargetKind(value)),
    "true or false": lambda value: isinstance(value, bool),
}
_DEFAULTS = {field.name: field.default for field in fields(Target)}
_extras_in = attrgetter("prior", *(field for _, field, _ in _EXTRAS))
_NO_EXTRAS = (None, *(_DEFAULTS[field] for _, field, _ in _EXTRAS))
PACK_TARGETS_MAX = 25


def next_attempt(target: Target, failed: str | None = None) -> Target:
    """Return the same URL for one more attempt. `failed` is the reason."""
    return replace(target, attempt=target.attempt + 1, failed=failed)


def to_rows(targets: Sequence[Target]) -> tuple[list[list[Any]], list[str]]:
    """Return the URLs of a pack as rows, and the referrers to which the rows refer by index."""
    referrers: dict[str, int] = {}
    rows = []
    for target in targets:
        place = -1
        if target.referrer is not None:
            place = referrers.setdefault(target.referrer, len(referrers))
        row: list[Any] = [target.url, target.depth, target.attempt, target.hops, place]
        if extras := extras_of(target):
            row.append(extras)
        rows.append(row)
    return rows, list(referrers)


def from_rows(rows: Sequence[Any], referrers: Sequence[Any]) -> Iterator[Target]:
    """Read the rows of a pack. Raises ValueError for an invalid one."""
    for row in rows:
        match row:
            case [str(url), int(depth), int(attempt), int(hops), int(place), *rest] if min(
                depth, attempt, hops
            ) >= 0 and -1 <= place < len(referrers):
                target = Target(
                    url=url,
                    depth=depth,
                    attempt=attempt,
                    hops=hops,
                    referrer=None if place < 0 else str(referrers[place]),
                )
            case _:
                raise ValueError("a pack's url row is [url, depth, attempt, hops, referrer]")
        match rest:
            case []:
                yield target
            case [dict(extras)]:
                yield with_extras(target, extras)
            case _:
                raise ValueError("a pack's url row may end with one object")


def extras_of(target: Target) -> dict[str, Any]:
    if _extras_in(target) == _NO_EXTRAS:
        return {}
    extras: dict[str, Any] = {}
    if target.prior is not None:
        extras["prior"] = [target.prior.crawl, target.prior.at_ms]
    for name, field, _ in _EXTRAS:
        value = getattr(target, field)
        if value != _DEFAULTS[field]:
            extras[name] = value
    return extras


def with_extras(target: Target, extras: dict[str, Any]) -> Target:
    """Add extras to a target. Unknown ones are ignored. Raises ValueError for an invalid one."""
    match extras.get("prior"):
        case None:
            prior = None
        case [str(crawl), int(at_ms)]:
            prior = Prior(crawl=crawl, at_ms=at_ms)
        case _:
            raise ValueError("prior is [crawl, at]")
    found: dict[str, Any] = {}
    for name, field, fit in _EXTRAS:
        if name in extras and not _FITS[fit](extras[name]):
            raise ValueError(f"{name} is {fit}")
        if extras.get(name) is not None:
            found[field] = extras[name]
    if "kind" in found:
        found["kind"] = TargetKind(found["kind"])
    return replace(target, prior=prior, **found)
