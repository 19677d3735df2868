"""Read seeds and sitemaps of a plan as canonical URLs, and find their problems.

An invalid URL is reported with the reason and a probable correction. Duplicates count once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from orbweaver.control.crawl_spec import CrawlSpec
from orbweaver.diagnostics.url_changes import suggest_url
from orbweaver.model.crawl import DEFAULT_CRAWL
from orbweaver.model.crawl_settings import Bodies
from orbweaver.model.url import TRACKING_PARAMETERS, canonicalize, host_of, redacted

SEEDS_MAX = 200_000
SEEDS_BYTES_MAX = 32 * 1024 * 1024
SPLIT = "split the list, and crawl each part with the same --name: they share their seen URLs"
# A URL with a user name, and possibly a password, before the host.
_USER = re.compile(r"\s*[A-Za-z]+:[/\\]+[^/\\?#]*@")
# Names of parameters as canonical URLs spell them. A `*` at the end matches any characters.
PARAMETER = re.compile(r"[!-\"$-%'-)+-<>-~]{1,64}\*?|\*")
PARAMETERS_MAX = 100
# Maximum number of problems to report for seeds and sitemaps.
PROBLEMS_MAX = 20


def tracking_of(plan: CrawlSpec) -> tuple[str, ...] | None:
    """Return the names of URL parameters that a plan removes. None: the default parameters."""
    mine = {name.lower() for name in plan.strip_parameters}
    if plan.keep_parameters:
        return tuple(sorted(mine))
    return tuple(sorted(mine | TRACKING_PARAMETERS)) if mine - TRACKING_PARAMETERS else None


def references_of(
    plan: CrawlSpec, tracking: tuple[str, ...] | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the seeds of a plan and its sitemaps. Raises ValueError for an invalid URL.

    A seed that names an XML file counts as a sitemap, unless the crawl stores all files.
    """
    return _references(plan.seeds, plan.sitemap_urls, tracking, plan.bodies is Bodies.ALL)


# Cached, because a command calls this several times, and a list can have 200,000 URLs.
@lru_cache(maxsize=2)
def _references(
    given: tuple[str, ...],
    sitemap_urls: tuple[str, ...],
    tracking: tuple[str, ...] | None,
    stores_files: bool,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    seeds = tuple(dict.fromkeys(_canonical_of(url, tracking) for url in given))
    files = () if stores_files else tuple(filter(_names_xml, seeds))
    sitemaps = (*files, *(_canonical_of(url, tracking) for url in sitemap_urls))
    if files:
        seeds = tuple(seed for seed in seeds if not _names_xml(seed))
    return seeds, tuple(dict.fromkeys(sitemaps))


def _names_xml(url: str) -> bool:
    return url.partition("?")[0].endswith((".xml", ".xml.gz"))


def name_of(url: str) -> str:
    """Return the default name of a crawl that starts at this URL: `example.com`, `127.0.0.1-8000`.

    Because the host is the name, a second crawl of a site finds the claims of the first crawl.
    """
    host = host_of(url).partition("://")[2].strip("[]")
    name = re.sub(r"[^a-z0-9._]+", "-", host.lower()).lstrip("-._")[:80].strip("-")
    return name if name not in ("", DEFAULT_CRAWL) else "crawl"


def problems_in(plan: CrawlSpec) -> Iterator[tuple[str, str]]:
    """Yield the problems of a plan's seeds and sitemaps.

    A problem is the part of the plan and a message with the fix.
    """
    parameters = tuple(_of_parameters(plan))
    yield from parameters
    yield from _of_references(plan, None if parameters else tracking_of(plan))


def _of_parameters(plan: CrawlSpec) -> Iterator[tuple[str, str]]:
    for name in plan.strip_parameters:
        if not PARAMETER.fullmatch(name):
            fix = "give one as URLs spell it, like ref or my_* (a * at the end stands for any rest)"
            yield "strip_parameters", f"{name[:100]!r} is not a parameter's name: {fix}"
    if len(plan.strip_parameters) > PARAMETERS_MAX:
        number = len(plan.strip_parameters)
        yield "strip_parameters", f"{number:,} are too many: at most {PARAMETERS_MAX}"


def _of_references(plan: CrawlSpec, tracking: tuple[str, ...] | None) -> Iterator[tuple[str, str]]:
    count = len(plan.seeds) + len(plan.sitemap_urls)
    if not count:
        yield "seeds", "there is no seed: give at least one URL"
    elif count > SEEDS_MAX:
        yield "seeds", f"{count:,} seeds are too many, at most {SEEDS_MAX:,} a crawl: {SPLIT}"
    elif (references := valid_seeds(plan, tracking)) is not None:
        yield from _of_size(references)
    else:
        problems = [
            (part, problem)
            for part in ("seeds", "sitemap_urls")
            for reference in getattr(plan, part)
            if (problem := problem_of(reference, tracking)) is not None
        ]
        yield from problems[:PROBLEMS_MAX]
        if len(problems) > PROBLEMS_MAX:
            yield "seeds", f"{len(problems) - PROBLEMS_MAX:,} more cannot be crawled"


def valid_seeds(plan: CrawlSpec, tracking: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Return the canonical seeds and sitemaps of a plan. None: at least one URL is invalid."""
    if any(map(_USER.match, (*plan.seeds, *plan.sitemap_urls))):
        return None
    try:
        seeds, sitemaps = references_of(plan, tracking)
    except ValueError:
        return None
    return seeds + sitemaps


def _of_size(references: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    size = sum(len(reference.encode()) for reference in references)
    if size > SEEDS_BYTES_MAX:
        text = f"the seeds take {size:,} bytes, and a crawl holds {SEEDS_BYTES_MAX:,}: {SPLIT}"
        yield "seeds", text


def problem_of(reference: str, tracking: tuple[str, ...] | None = None) -> str | None:
    """Return why a URL cannot be crawled, and the fix. None: it can be crawled."""
    try:
        _canonical_of(reference, tracking)
        if _USER.match(reference):
            fix = "leave it out, and give --header 'Authorization: …' or identity.headers instead"
            return f"{redacted(reference)!r} names a user, who is not sent: {fix}"
    except ValueError as error:
        suggestion = suggest_url(reference)
        hint = f"; did you mean {suggestion}?" if suggestion else ""
        return f"{redacted(reference)!r} cannot be crawled: {error}{hint}"
    return None


def _canonical_of(reference: str, tracking: tuple[str, ...] | None) -> str:
    stripped = TRACKING_PARAMETERS if tracking is None else frozenset(tracking)
    return canonicalize(reference, tracking=stripped)
