"""The crawl that a plan becomes, or what of the plan does not fit.

- A page budget is exact when somebody asked for it: one counter shard. Nobody counts a default of
  a million to the page, so the default budget is spread over 16 shards, which commit faster.
- A seed that a pattern leaves out is a contradiction, and refused: the crawl would be empty.
- With a delay one request at a time is polite; without one the concurrency is the only brake.
"""

from __future__ import annotations

import re
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from orbweaver.control.crawl_spec import Plan, PlanError
from orbweaver.control.schedule import problems_in as problems_of_schedule
from orbweaver.control.seed_list import name_of, references_of, tracking_of
from orbweaver.control.seed_list import problems_in as problems_of_references
from orbweaver.control.webhook import problems_in as problems_of_webhook
from orbweaver.control.webhook import webhook_of
from orbweaver.extraction.rules import problems_of as problems_of_items
from orbweaver.frontier.envelope import CRAWL_ID_CHARS_MAX
from orbweaver.frontier.messages import SEEDS_REFERENCES_MAX
from orbweaver.model.amounts import NANO, dollars_text, size_text
from orbweaver.model.crawl import DEFAULT_CRAWL, WEEK_S, Crawl, first_hosts, run_id
from orbweaver.model.crawl_codec import digest_of
from orbweaver.model.durations import duration_text
from orbweaver.model.url import redacted
from orbweaver.model.url_patterns import first_match, matches, problems_between
from orbweaver.model.url_patterns import problems_of as problems_of_patterns
from orbweaver.model.url_rules import problems_of as problems_of_rules
from orbweaver.model.user_agent import (
    IdentityError,
    check_agents,
    check_host_headers,
    origins_of,
    problems_of_headers,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from orbweaver.model.http_exchange import HostHeaders


PAGES_MAX_DEFAULT = 1_000_000


SHARDS_DEFAULT = 16


CONCURRENCY_DEFAULT = 16


# Names become folders, ids files and keys: `..` is none, and readers pass over `_x` and `.x`.
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,79}")


KEY_CHARS_MAX = 255


ID = re.compile(rf"[a-z0-9][a-z0-9._-]{{0,{CRAWL_ID_CHARS_MAX - 1}}}")


# As ids of packs are spelled: those of a crawl's first messages follow from its own id.
PACK_ID = re.compile(r"[0-9a-f]{32}")


# Field, least, most, and how the numbers are written; the most is far above what makes sense.
BOUNDS: tuple[tuple[str, int, int, Callable[[int], str]], ...] = (
    ("depth_max", 0, 1_000, "{:,}".format),
    ("pages_max", 1, 100_000_000, "{:,}".format),
    ("host_pages_max", 1, 100_000_000, "{:,}".format),
    ("bytes_max", 100_000, 10**15, size_text),
    ("delay_ms", 0, 86_400_000, duration_text),
    ("concurrency", 1, 64, "{:,}".format),
    ("window_s", 0, 366 * 86_400, lambda span_s: duration_text(span_s * 1_000)),
    ("duration_s", 60, WEEK_S, lambda span_s: duration_text(span_s * 1_000)),
)


# What one visit may cost at most is a tenth of a cent.
NANODOLLARS_MIN, NANODOLLARS_MAX = NANO // 100, 1_000_000 * NANO


def crawl_of(plan: Plan, now_ms: int) -> Crawl:
    """Make the crawl that a plan asks for, started now; raises PlanError."""
    for problem in _problems(plan):
        raise problem
    tracking = tracking_of(plan)
    seeds, sitemap_urls = references_of(plan, tracking)
    name = name_of((seeds + sitemap_urls)[0]) if plan.name is None else plan.name
    concurrency = plan.concurrency
    if concurrency is None:
        concurrency = 1 if plan.delay_ms else CONCURRENCY_DEFAULT
    crawl = Crawl(
        id=plan.id or run_id(name, now_ms),
        name=name,
        started_at_ms=now_ms,
        seeds=seeds,
        # A sitemap that is a seed as well is one reference.
        seeds_planned=-(-len({*seeds, *sitemap_urls}) // SEEDS_REFERENCES_MAX),
        sitemaps=plan.sitemaps,
        sitemap_urls=sitemap_urls,
        scope=plan.scope,
        depth_max=plan.depth_max,
        pages_max=plan.pages_max or PAGES_MAX_DEFAULT,
        host_pages_max=plan.host_pages_max,
        bytes_max=plan.bytes_max,
        nanodollars_max=plan.nanodollars_max,
        delay_ms=plan.delay_ms,
        concurrency=concurrency,
        window_s=plan.window_s,
        duration_max_s=plan.duration_s,
        include=plan.include,
        exclude=plan.exclude,
        rules=plan.rules,
        items=plan.items,
        obey_robots=plan.obey_robots,
        user_agents=plan.user_agents,
        headers=plan.headers,
        host_headers=_host_headers(plan, seeds),
        cookies=plan.cookies,
        proxied=plan.proxied,
        tracking=tracking,
        canonical_only=plan.canonical_only,
        noindex_skipped=plan.noindex_skipped,
        bodies=plan.bodies,
        texts=plan.texts,
        redacted=plan.redacted,
        webhook=None if plan.webhook is None else webhook_of(plan.webhook),
        express=plan.express,
        shards=1 if plan.pages_max else SHARDS_DEFAULT,
        hosts_counted=first_hosts((*seeds, *sitemap_urls)),
    )
    return replace(crawl, work=digest_of(crawl))


def _host_headers(plan: Plan, seeds: tuple[str, ...]) -> HostHeaders:
    try:
        return origins_of(plan.host_headers, seeds)
    except IdentityError as error:
        raise PlanError("host_headers", str(error)) from error


def keyed(plan: Plan, key: str) -> Plan:
    """Name a run after a key, so that the key can be of one crawl alone; raises PlanError."""
    if not 1 <= len(key) <= KEY_CHARS_MAX or not key.isprintable():
        raise PlanError(
            "idempotency_key", f"a key is 1 to {KEY_CHARS_MAX} printable characters: give another"
        )
    if plan.id is not None:
        raise PlanError("idempotency_key", "an id names the run already: give one of the two")
    return replace(plan, id=f"key-{blake2b(key.encode(), digest_size=16).hexdigest()}")


def problems_of(plan: Plan, now_ms: int | None = None) -> tuple[PlanError, ...]:
    """Find all that does not fit in a plan; `crawl_of` raises the first of them.

    With `now_ms` that includes a schedule whose last time has passed.
    """
    return tuple(_problems(plan, now_ms))


def _problems(plan: Plan, now_ms: int | None = None) -> Iterator[PlanError]:
    for part, low, high, written in BOUNDS:
        value = getattr(plan, part)
        if value is not None and not low <= value <= high:
            fix = f"give {written(low)} to {written(high)}"
            yield PlanError(part, f"{written(value).replace(',', '')} does not fit: {fix}")
    dollars = plan.nanodollars_max
    if dollars is not None and not NANODOLLARS_MIN <= dollars <= NANODOLLARS_MAX:
        fix = f"give {dollars_text(NANODOLLARS_MIN)} to {NANODOLLARS_MAX // NANO:,} dollars"
        yield PlanError("nanodollars_max", f"{dollars_text(dollars)} does not fit: {fix}")
    patterns = tuple(
        PlanError(part, str(error))
        for part in ("include", "exclude")
        for error in problems_of_patterns(getattr(plan, part))
    )
    yield from patterns
    if not patterns:
        for text in problems_between(plan.include, plan.exclude):
            yield PlanError("include", text)
    for part, text in (*problems_of_rules(plan.rules), *problems_of_items(plan.items)):
        yield PlanError(part, text)
    references = tuple(PlanError(part, text) for part, text in problems_of_references(plan))
    yield from references
    if not (patterns or references):
        yield from _of_seeds_left_out(plan)
    yield from _of_names(plan)
    yield from _of_identity(plan, "user_agents", check_agents)
    for text in problems_of_headers(plan.headers):
        yield PlanError("headers", text)
    yield from _of_identity(plan, "host_headers", check_host_headers)
    for part, text in (*problems_of_schedule(plan, now_ms), *problems_of_webhook(plan)):
        yield PlanError(part, text)


def _of_seeds_left_out(plan: Plan) -> Iterator[PlanError]:
    seeds, _ = references_of(plan, tracking_of(plan))
    for seed in seeds if plan.exclude else ():
        if matches(plan.exclude, seed):
            pattern = first_match(plan.exclude, seed) or ""
            text = f"{pattern[:100]!r} leaves out the seed {redacted(seed)!r}: change one of them"
            yield PlanError("exclude", text)
            return


def _of_names(plan: Plan) -> Iterator[PlanError]:
    name = plan.name
    if name is not None and not NAME.fullmatch(name):
        near = re.sub(r"[^a-z0-9._-]+", "-", name.lower()).lstrip("-._")[:80].strip("-")
        hint = f"; {near} would do" if near else ""
        fits = "1 to 80 of a-z, 0-9, dot, hyphen and underscore, a letter or digit first"
        yield PlanError("name", f"{name[:100]!r} does not fit: {fits}{hint}")
    elif name == DEFAULT_CRAWL:
        yield PlanError("name", f"{name!r} is the crawl of bare URLs on the queue: give another")
    if plan.id is not None and (not ID.fullmatch(plan.id) or plan.id == DEFAULT_CRAWL):
        fits = "a-z, 0-9, dot, hyphen, underscore, a letter or digit first"
        yield PlanError("id", f"{plan.id!r} is not a crawl's id: {fits}")
    elif plan.id is not None and PACK_ID.fullmatch(plan.id):
        yield PlanError("id", f"{plan.id!r} could be a message's id: put a word before it")


def _of_identity(plan: Plan, part: str, check: Callable[[Any], None]) -> Iterator[PlanError]:
    try:
        check(getattr(plan, part))
    except IdentityError as error:
        yield PlanError(part, str(error))
