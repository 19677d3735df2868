"""Change a running crawl.

Limits, delay, concurrency, patterns, rules, item rules and stored parts of pages can change. A
change applies to requests and links after the edit. Links that were refused before are not checked
again. All other keys identify the crawl. They can be given with their current value, so a whole
definition is accepted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from orbweaver.control.crawl_spec import SEEDS_FILE, SETTINGS, CrawlSpec
from orbweaver.control.definition import DefinitionError, DefinitionProblem, check, given_in, read
from orbweaver.control.definition_keys import BY_PATH
from orbweaver.control.spec_checks import apis_of, tracking_of
from orbweaver.control.webhook import webhook_of
from orbweaver.model.auth import keeps_cookies
from orbweaver.model.auth_checks import with_origins
from orbweaver.model.crawl import Counters, Crawl
from orbweaver.model.host_access import with_origins as with_access
from orbweaver.model.request_url import canonical_seed
from orbweaver.model.user_agent import origin_of, origins_of

EDITABLE = tuple(one.key for one in SETTINGS if one.editable)
_SEEDS = ("seeds", "sitemap_urls")
_PARAMETERS = ("strip_parameters", "keep_parameters")


def apply_document(crawl: Crawl, changes: object, lines: str | None = None) -> Crawl:
    """Apply a definition document to a crawl. Raises DefinitionError with all problems.

    `lines` is the content of the document's `seeds_file`. This function does not distribute a new
    page limit to counter shards (see `distribute_budget`).
    """
    plan, problems = read(changes, lines)
    given = given_in(changes)
    paths = [path for path in given if path in EDITABLE]
    parts = [BY_PATH[path].part for path in paths]
    standing = {BY_PATH[path].part: getattr(crawl, BY_PATH[path].part) for path in EDITABLE}
    wanted = replace(CrawlSpec(), **(standing | {part: getattr(plan, part) for part in parts}))
    found = [*problems, *_fixed(crawl, plan, given, {problem.path for problem in problems})]
    if crawl.continuous and "limits.duration" in given:
        found.append(DefinitionProblem("limits.duration", "this crawl has no end: leave it out"))
    # Keys that the document does not set were checked when the crawl was started.
    found += [problem for problem in check(wanted, tuple(found)) if _of(problem.path, paths)]
    if not parts and not found:
        text = f"nothing to change is given: it takes {', '.join(EDITABLE)}"
        found.append(DefinitionProblem("", text))
    if found:
        raise DefinitionError(tuple(found))
    return replace(crawl, **{part: getattr(plan, part) for part in parts})


def differences(was: Crawl, crawl: Crawl) -> tuple[tuple[str, Any, Any], ...]:
    """List editable keys that differ between `was` and `crawl`: key, old value, new value."""
    return tuple(
        (path, _written(was, path), _written(crawl, path))
        for path in EDITABLE
        if getattr(was, BY_PATH[path].part) != getattr(crawl, BY_PATH[path].part)
    )


def _written(crawl: Crawl, path: str) -> Any:
    value = getattr(crawl, BY_PATH[path].part)
    return None if value is None else BY_PATH[path].codec.write(value)


def distribute_budget(crawl: Crawl, was: Crawl, counters: Counters) -> Crawl:
    """Distribute the page limit of `crawl` among its counter shards.

    `was` is the crawl before the edit that changed the limit.

    If the limit grows, each shard's quota gets a part of the difference. So commits with the old or
    the new quotas do not exceed the new limit. If the limit shrinks, each shard's quota is the
    number of its claimed URLs plus a part of the remaining limit. The quotas add up to the larger
    of the limit and the number of claimed URLs.
    """
    # Workers commit with the old quotas until they have reloaded the crawl. After that, a shard
    # claims no URL beyond its new quota.
    quotas = [was.shard_quota(shard) for shard in range(was.shards)]
    if crawl.pages_own < sum(quotas):
        quotas = [shard.spent for shard in counters.shards]
    base, rest = divmod(max(0, crawl.pages_own - sum(quotas)), crawl.shards)
    shares = (quota + base + (shard < rest) for shard, quota in enumerate(quotas))
    return replace(crawl, quotas=tuple(shares))


def _of(path: str, given: Iterable[str]) -> bool:
    return any(path == one or path.startswith((f"{one}.", f"{one}[")) for one in given)


def _fixed(
    crawl: Crawl, plan: CrawlSpec, given: Iterable[str], known: set[str]
) -> Iterator[DefinitionProblem]:
    for path in given:
        if path in EDITABLE or path in known or _is_so(crawl, plan, BY_PATH[path].part):
            continue
        fix = "cancel this one and start it again with it"
        if path in ("seeds", SEEDS_FILE, "sitemaps"):
            fix = f"start another of the name {crawl.name}, which shares what this one has seen"
        yield DefinitionProblem(path, f"it cannot change while a crawl runs: {fix}")


def _is_so(crawl: Crawl, plan: CrawlSpec, part: str) -> bool:
    part = part or "seeds"
    if part in _PARAMETERS:
        return tracking_of(plan) == crawl.tracking
    given = getattr(plan, part)
    try:
        if part in _SEEDS:
            # A retry has its own seeds, so the seeds of the definition are ignored.
            urls = {canonical_seed(url, tracking=crawl.removed_parameters) for url in given}
            if part == "seeds":
                urls |= {api.url for api in crawl.apis}
            return crawl.retry_of is not None or urls == set(getattr(crawl, part))
        if part == "webhook":
            return given is not None and webhook_of(given) == crawl.webhook
        given = _stored(crawl, plan, part)
    except ValueError:
        return False
    if part == "cookies":
        given = given or keeps_cookies(crawl.auth)  # a login keeps cookies in any case
    # No run has a schedule, so the definition's schedule is ignored.
    return not hasattr(crawl, part) or given == getattr(crawl, part)


def _stored(crawl: Crawl, plan: CrawlSpec, part: str) -> Any:
    """Return a part of a plan in the form that a crawl stores. Raises ValueError."""
    given = getattr(plan, part)
    match part:
        case "apis":
            return apis_of(plan, crawl.tracking)
        case "host_headers":
            return origins_of(given, crawl.seeds)
        case "host_access":
            return with_access(given, partial(origin_of, seeds=crawl.references))
        case "auth":
            return with_origins(given, crawl.references)
        case _:
            return given
