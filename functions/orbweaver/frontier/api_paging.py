"""Decide which page of an API follows a page. Paging ends in doubt, with a count or a reason.

The next page is a URL like any other: it is claimed, requested and recorded once. Source of the
header `Link`: RFC 8288.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import field
from typing import Any, Protocol, assert_never

from orbweaver.frontier.admission import admit_pattern, apply_rule
from orbweaver.frontier.pack_result import FoundLinks
from orbweaver.model.api_source import ApiSource, Paging, PagingBy, PagingFacts
from orbweaver.model.crawl import Crawl
from orbweaver.model.outcome import Refusal
from orbweaver.model.request_url import (
    BodyKind,
    PostBody,
    is_post,
    json_body,
    request_url,
    split_request,
)
from orbweaver.model.target import Target
from orbweaver.model.url import canonicalize, host_of
from orbweaver.model.url_rules import combined_rule
from orbweaver.model.value import value_class
from orbweaver.parsing.links import links_of

CURSOR_CHARS_MAX = 1_000
NUMBER_MAX = 2**53
_EMPTY = "the page has no items and no links"
# Bytes that are escaped in names and values of query parameters.
_UNSAFE = re.compile(rb"[^-A-Za-z0-9._~\[\]:@,/]")


class Seen(Protocol):
    """Returns the URLs that the crawl is known to have claimed."""

    def __call__(self, urls: Collection[str], /) -> AbstractSet[str]: ...


@value_class
class PagingStep:
    """The next page of an API, or why there is none. `problem`: the API's answer does not fit."""

    found: FoundLinks = field(default_factory=FoundLinks)
    problem: str | None = None


class PagingProblem(ValueError):
    """A page of an API names the next page in a form that does not fit its rule."""


def step_of(
    crawl: Crawl,
    api: ApiSource,
    target: Target,
    facts: PagingFacts,
    headers: Mapping[str, str],
    seen: Seen = frozenset().intersection,
) -> PagingStep:
    """Return the page that follows `target`."""
    if api.paging is None:
        return PagingStep()
    try:
        url = next_url(crawl, api.paging, target.url, facts, headers)
    except PagingProblem as error:
        return PagingStep(problem=str(error))
    if url is None:
        return PagingStep()
    if (refusal := _refusal(crawl, target, url, seen)) is not None:
        return PagingStep(found=FoundLinks(refused=((refusal, 1, (url,)),)))
    following = Target(
        url=url,
        depth=target.depth,
        referrer=target.url,
        root=target.root,
        local=target.local,
        api=api.url,
        page=target.page + 1,
    )
    following = apply_rule(following, combined_rule(crawl.rules, url))
    if target.page >= api.pages_max:
        refused = ((Refusal.API_PAGES, 1, (url,)),)
        return PagingStep(found=FoundLinks(refused=refused, left=(following,)))
    return PagingStep(found=FoundLinks(admitted=(following,)))


def _refusal(crawl: Crawl, target: Target, url: str, seen: Seen) -> Refusal | None:
    if url == target.url or url in seen((url,)):
        return Refusal.API_REPEATED
    # A page must not lead the crawl, and the secrets of its API, to another origin.
    if host_of(url) != host_of(target.url):
        return Refusal.SCOPE
    return admit_pattern(crawl, url, seed=True)


def next_url(
    crawl: Crawl, paging: Paging, url: str, facts: PagingFacts, headers: Mapping[str, str]
) -> str | None:
    """Return the URL of the page that follows `url`, or None at the end. Raises PagingProblem."""
    if facts.problem is not None:
        raise PagingProblem(facts.problem)
    if paging.more and not _goes_on(paging, facts):
        return None
    try:
        reference = _reference(paging, url, facts, headers)
        if reference is None and paging.more:
            _raise_if_unreached(paging, facts)
        if reference is None or (paging.parameter and is_post(url)):
            return reference
        return canonicalize(reference, url, tracking=crawl.removed_parameters)
    except PagingProblem:
        raise
    except ValueError as error:
        raise PagingProblem(f"the next page has no URL: {error}") from error


def _reference(
    paging: Paging, url: str, facts: PagingFacts, headers: Mapping[str, str]
) -> str | None:
    match paging.by:
        case PagingBy.LINK:
            links = links_of(headers.get("link", ""))
            return next((one.reference for one in links if "next" in one.relations), None)
        case PagingBy.NEXT:
            return _found_url(paging, facts)
        case PagingBy.CURSOR:
            value: str | int | None = _cursor(paging, facts)
        case PagingBy.PAGE | PagingBy.OFFSET:
            value = _number(paging, url, facts)
        case _:
            assert_never(paging.by)
    return None if value is None else with_value(url, paging.parameter, value)


def _goes_on(paging: Paging, facts: PagingFacts) -> bool:
    if facts.more is None or isinstance(facts.more, bool):
        return bool(facts.more)
    raise PagingProblem(f"{paging.more} finds no boolean: {_shown(facts.more)}")


def _raise_if_unreached(paging: Paging, facts: PagingFacts) -> None:
    """Raise PagingProblem if `more` is true, but the page does not show the next one."""
    match paging.by:
        case PagingBy.LINK:
            lacks = 'the header Link has no rel="next"'
        case PagingBy.NEXT | PagingBy.CURSOR:
            found = "nothing" if facts.value is None else _shown(facts.value)
            lacks = f"{paging.path} finds {found}"
        case PagingBy.PAGE | PagingBy.OFFSET:
            if not facts.empty:
                return  # the total is reached
            lacks = _EMPTY
        case _:
            assert_never(paging.by)
    raise PagingProblem(f"{paging.more} is true, but {lacks}")


def _found_url(paging: Paging, facts: PagingFacts) -> str | None:
    # APIs mark the last page by null, false or an empty text.
    if facts.value in (None, False, ""):
        return None
    if not isinstance(facts.value, str):
        raise PagingProblem(f"{paging.path} finds no URL: {_shown(facts.value)}")
    return facts.value


def _cursor(paging: Paging, facts: PagingFacts) -> str | int | None:
    value = facts.value
    if value is None or value is False or value == "":
        return None
    if isinstance(value, bool | float):
        raise PagingProblem(f"{paging.path} finds no cursor: {_shown(value)}")
    if len(str(value)) > CURSOR_CHARS_MAX:
        long = f"a cursor of {len(str(value)):,} characters"
        raise PagingProblem(f"{paging.path} finds {long}, more than {CURSOR_CHARS_MAX:,}")
    return value


def _number(paging: Paging, url: str, facts: PagingFacts) -> int | None:
    if facts.empty and not paging.total:
        return None
    first, step = paging.first_number, paging.step or 1
    written = value_of(url, paging.parameter)
    if written is not None and not (written.isascii() and written.isdecimal()):
        raise PagingProblem(f"{paging.parameter} of the URL is no number: {_shown(written)}")
    number = (first if written is None else int(written[:17])) + step
    if paging.total:
        total = facts.total
        if isinstance(total, str) and total.isascii() and total.isdecimal():
            total = int(total[:17])
        if isinstance(total, bool) or not isinstance(total, int):
            raise PagingProblem(f"{paging.total} finds no number: {_shown(total)}")
        done = number - first if paging.by is PagingBy.OFFSET else (number - first) // step
        if done >= total:
            return None
        if facts.empty:
            raise PagingProblem(f"{paging.total} finds {total:,}, but {_EMPTY}")
    return number if number <= NUMBER_MAX else None


# --- parameters ---------------------------------------------------------------------------------


def value_of(url: str, name: str) -> str | None:
    """Return the value of a query parameter, or of a field of a POST request's body, or None."""
    _, post = split_request(url)
    if post is None:
        return parameter_of(url, name)
    if post.kind is BodyKind.FORM:
        return parameter_of(f"?{post.text}", name)
    one: Any = json.loads(post.text)
    for key in name.split("."):
        one = one.get(key) if isinstance(one, dict) else None
    return None if one is None else str(one)


def with_value(url: str, name: str, value: str | int) -> str:
    """Return a URL with this value of a query parameter, or of a field of a POST request's body.

    Raises ValueError if the body becomes too long, or has no place for the field.
    """
    address, post = split_request(url)
    if post is None:
        return with_parameter(url, name, str(value))
    if post.kind is BodyKind.FORM:
        text = with_parameter(f"?{post.text}", name, str(value))[1:]
        return request_url(address, PostBody(post.kind, text))
    whole = one = json.loads(post.text)
    *holders, last = name.split(".")
    for key in holders:
        one = one.setdefault(key, {}) if isinstance(one, dict) else None
    if not isinstance(one, dict):
        raise ValueError(f"the body has no object for {name}")  # noqa: TRY004 - the API's, not ours
    one[last] = value
    return request_url(address, json_body(whole))


def parameter_of(url: str, name: str) -> str | None:
    """Return the value of a query parameter as the URL spells it, or None."""
    for one in url.partition("?")[2].split("&"):
        key, _, value = one.partition("=")
        if key == _escaped(name):
            return value
    return None


def with_parameter(url: str, name: str, value: str) -> str:
    """Return a URL with this value of a parameter. All other parameters keep bytes and order."""
    path, _, query = url.partition("?")
    key = _escaped(name)
    written = f"{key}={_escaped(value)}"
    found = [written if one.partition("=")[0] == key else one for one in query.split("&") if one]
    if written not in found:
        found.append(written)
    return f"{path}?{'&'.join(found)}"


def _escaped(text: str) -> str:
    # Names like `page[number]` stay readable, and as most servers write them.
    return _UNSAFE.sub(
        lambda found: b"%%%02X" % found[0][0], text.encode("utf-8", "replace")
    ).decode()


def _shown(value: object) -> str:
    return ascii(value)[:60]
