"""Sentences about a crawl's rules for a URL, and about the parts of pages that it stores.

`model/outcome.py` has the meanings of reasons.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from typing import assert_never

from orbweaver.frontier.admission import prefixes
from orbweaver.model.address_policy import PUBLIC_ONLY, Allowed, verdict
from orbweaver.model.api_source import ApiSource, PagingBy
from orbweaver.model.crawl import Crawl
from orbweaver.model.crawl_settings import Bodies, Scope
from orbweaver.model.named_origins import (
    LOOPBACK,
    NO_ORIGINS,
    non_public_names,
    non_public_origin_of,
    port_of,
)
from orbweaver.model.outcome import Refusal
from orbweaver.model.url import DEFAULT_BOUNDS, Bounds, host_of, hostname_of, site_of
from orbweaver.model.url_rules import RULE_SETTINGS, UrlRule, deciding

PUBLIC = "1.1.1.1"  # represents the addresses that a name may have
MINUTE_S, HOUR_S, DAY_S = 60, 3_600, 86_400


def trap_rule(refusal: Refusal, bounds: Bounds = DEFAULT_BOUNDS) -> str | None:
    """Describe the sign of a crawler trap that caused a refusal. None: it had another cause."""
    match refusal:
        case Refusal.PATH_DEPTH:
            return (
                f"more than {bounds.path_segments_max} segments in its path, or labels in its host"
            )
        case Refusal.REPETITION:
            return (
                "a segment of its path, or a label of its host, more than"
                f" {bounds.repeats_max} times"
            )
        case Refusal.QUERY:
            return (
                f"a query of more than {bounds.query_parameters_max} parameters or"
                f" {bounds.query_chars_max:,} characters, or a parameter more than"
                f" {bounds.repeats_max} times"
            )
    return None


def paging_words(api: ApiSource) -> str:
    """Describe how the next page of an API is found."""
    paging = api.paging
    if paging is None:
        return "one page"
    match paging.by:
        case PagingBy.CURSOR:
            words = f"the cursor at {paging.path} is {paging.parameter} of the next page"
        case PagingBy.NEXT:
            words = f"the next page is at {paging.path}"
        case PagingBy.LINK:
            words = 'the next page is in the header Link, rel="next"'
        case PagingBy.PAGE | PagingBy.OFFSET:
            until = f"the total at {paging.total}" if paging.total else "an empty page"
            words = f"{paging.parameter} grows by {paging.step or 1} until {until}"
        case _:
            assert_never(paging.by)
    return f"{words}, while {paging.more} is true" if paging.more else words


def scope_rule(crawl: Crawl, url: str, page: str) -> str:
    """Describe how a crawl's scope decides on a link from `page` to `url`.

    The sentence fits an accepted and a refused link.
    """
    if url == page:
        return "same URL as the page or seed"
    match crawl.scope:
        case Scope.HOST:
            one, other = host_of(url), host_of(page)
        case Scope.DOMAIN:
            one, other = site_of(hostname_of(url)), site_of(hostname_of(page))
        case Scope.PREFIX:
            folders = prefixes(crawl.scope_urls)
            near = next((folder for folder in folders if url.startswith(folder)), None)
            where = f"below {near}" if near else f"not below {' or '.join(folders[:3])}"
            return f"scope prefix: {where}"
        case _:
            return "scope any: every host belongs"
    same = f"same {crawl.scope} as the linking page ({one})"
    differs = f"{one} is not {other}, the {crawl.scope} of the linking page"
    return f"scope {crawl.scope}: {same if one == other else differs}"


def rules_words(rules: tuple[UrlRule, ...], url: str) -> list[tuple[int, str]]:
    """Return the index and the description of each rule that decides on a URL."""
    things: dict[int, list[str]] = {}
    for thing, place in deciding(rules, url).items():
        things.setdefault(place, []).append(thing)
    return [(place, rule_words(rules[place], things[place])) for place in sorted(things)]


def rule_words(rule: UrlRule, things: Iterable[str] = RULE_SETTINGS) -> str:
    words = {
        "depth_max": f"depth {rule.depth_max}",
        "express": f"priority {'high' if rule.express else 'normal'}",
        "delay_ms": f"delay {(rule.delay_ms or 0) / 1000:g} s",
        "window_s": f"window {span(rule.window_s or 0)}",
        "follow": "links followed" if rule.follow else "links not followed",
        "record": "recorded" if rule.record else "not recorded",
    }
    return ", ".join(words[thing] for thing in things if getattr(rule, thing) is not None)


def stored_parts_text(crawl: Crawl) -> Iterator[str]:
    """Describe what a crawl stores of pages in addition to their records."""
    if crawl.bodies is not Bodies.OFF:
        whose = "HTML pages" if crawl.bodies is Bodies.HTML else "whatever is fetched, HTML or not"
        yield f"the bodies of {whose}"
    if crawl.texts:
        yield "the main text of HTML pages, as text and as Markdown"
    if crawl.links:
        yield "the links of HTML pages and sitemaps"
    if crawl.redacted:
        names = {"email": "e-mail addresses", "phone": "phone numbers"}
        yield f"no {' and no '.join(names[kind] for kind in crawl.redacted)}, except in URLs"


def never_requested_reason(
    url: str, allowed: Allowed = PUBLIC_ONLY, origins: AbstractSet[str] = NO_ORIGINS
) -> str | None:
    """Explain why no worker would connect to a URL's host. None: workers would connect.

    Host names are not resolved here, so for a name only the port is checked. `origins` are the
    origins of the crawl's seeds.
    """
    name, port = hostname_of(url), port_of(url)
    if name.startswith("[") or name.rpartition(".")[2].isdigit():
        return verdict(name.strip("[]"), port, allowed, non_public_names(origins))
    if non_public_origin_of(url) is not None and allowed.networks:
        return verdict(str(LOOPBACK[0]), port, allowed, non_public_names(origins))
    return verdict(PUBLIC, port, allowed)


def moment(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms / 1000, tz=UTC):%Y-%m-%d %H:%M:%S} UTC"


def urls(number: int) -> str:
    return f"{number:,} URL{'' if number == 1 else 's'}"


def span(seconds: int) -> str:
    """Format a duration in its largest whole unit: `7 d`, `90 min`, `1 s`."""
    for unit, word in ((DAY_S, "d"), (HOUR_S, "h"), (MINUTE_S, "min")):
        if seconds and seconds % unit == 0:
            return f"{seconds // unit} {word}"
    return f"{seconds} s"
