"""Validate a plan, and make the crawl of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, replace
from functools import lru_cache, partial
from hashlib import blake2b
from typing import Any

from orbweaver.control.crawl_spec import SETTINGS, CrawlSpec, PlanError
from orbweaver.control.webhook import problems_in as problems_of_webhook
from orbweaver.control.webhook import webhook_of
from orbweaver.diagnostics.url_changes import suggest_url
from orbweaver.frontier.envelope import CRAWL_ID_CHARS_MAX
from orbweaver.frontier.messages import SEEDS_REFERENCES_MAX
from orbweaver.model import host_access as access
from orbweaver.model.api_source import ApiSource
from orbweaver.model.auth import OriginAuth, keeps_cookies
from orbweaver.model.auth_checks import problems_of_auth, selectors_of, with_origins
from orbweaver.model.crawl import DEFAULT_CRAWL, Crawl, first_hosts, run_id
from orbweaver.model.crawl_codec import digest_of
from orbweaver.model.crawl_rules import problems_of as problems_of_rules
from orbweaver.model.crawl_settings import ORDERED_PAGES_MAX, Bodies, CrawlSettings, HostAccess
from orbweaver.model.http_exchange import HostHeaders
from orbweaver.model.render_rules import problems_of as problems_of_rendering
from orbweaver.model.request_url import canonical_seed, problem_of_line
from orbweaver.model.url import TRACKING_PARAMETERS, host_of, redacted
from orbweaver.model.url_patterns import first_match, matches, problems_between
from orbweaver.model.url_patterns import problems_of as problems_of_patterns
from orbweaver.model.user_agent import (
    IdentityError,
    check_agents,
    origin_of,
    origins_of,
    path_of_host,
    problems_of_headers,
    problems_of_host_headers,
)

PAGES_MAX_DEFAULT = 1_000_000
# Number of counter shards of a crawl with the default page limit, which need not be exact. Several
# shards commit faster. A page limit that a user gave is exact, so its crawl has one shard.
SHARDS_DEFAULT = 16
# Default concurrency of a crawl without a delay, whose rate is limited only by concurrency. A crawl
# with a delay sends one request at a time by default.
CONCURRENCY_DEFAULT = 16
# Names of crawls become names of folders, files and keys. `..` would be an invalid folder, and
# readers skip folders like `_x` and `.x`.
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,79}")
KEY_CHARS_MAX = 255
# A name or address of one host, without wildcard.
_HOST = re.compile(r"[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63}){0,126}|\[[0-9A-Fa-f:.]{2,45}\]")
ID = re.compile(rf"[a-z0-9][a-z0-9._-]{{0,{CRAWL_ID_CHARS_MAX - 1}}}")
# Format of message ids. A crawl's id must not have it, because ids of its first messages derive
# from the crawl's id.
PACK_ID = re.compile(r"[0-9a-f]{32}")
SEEDS_MAX = 200_000
SEEDS_BYTES_MAX = 32 * 1024 * 1024
SPLIT = "split the list, and crawl each part with the same --name: they share their seen URLs"
# A URL with a user name, and possibly a password, before the host.
_USER = re.compile(r"\s*[A-Za-z]+:[/\\]+[^/\\?#]*@")
# The port of a URL.
_PORT = re.compile(r"\s*[A-Za-z]+://(?:[^/?#@]*@)?(?:\[[^\]/]*\]|[^/?#:]*):([^/?#]+)")
PORTS = 65_536
# Names of parameters as canonical URLs spell them. A `*` at the end matches any characters.
PARAMETER = re.compile(r"[!-\"$-%'-)+-<>-~]{1,64}\*?|\*")
PARAMETERS_MAX = 100
# Maximum number of problems to report for seeds and sitemaps.
PROBLEMS_MAX = 20


def crawl_of(plan: CrawlSpec, now_ms: int) -> Crawl:
    """Make the crawl of a plan, with `now_ms` as its start. Raises PlanError if it is invalid."""
    for problem in _problems(plan):
        raise problem
    tracking = tracking_of(plan)
    seeds, sitemap_urls = references_of(plan, tracking)
    name = name_of((seeds + sitemap_urls)[0]) if plan.name is None else plan.name
    concurrency = plan.concurrency
    if concurrency is None:
        concurrency = 1 if plan.delay_ms else CONCURRENCY_DEFAULT
    settings = {one.name: getattr(plan, one.name) for one in fields(CrawlSettings)} | {
        "name": name,
        "seeds": seeds,
        "sitemap_urls": sitemap_urls,
        "apis": apis_of(plan, tracking),
        "pages_max": plan.pages_max or PAGES_MAX_DEFAULT,
        "concurrency": concurrency,
        "host_headers": _host_headers(plan, seeds),
        "insecure_hosts": tuple(dict.fromkeys(map(str.lower, plan.insecure_hosts))),
        "host_access": _host_access(plan, (*seeds, *sitemap_urls)),
        "auth": (logins := _logins(plan, (*seeds, *sitemap_urls))),
        # A session needs cookies.
        "cookies": plan.cookies or keeps_cookies(logins),
        "webhook": None if plan.webhook is None else webhook_of(plan.webhook),
    }
    crawl = Crawl(
        id=plan.id or run_id(name, now_ms),
        started_at_ms=now_ms,
        # A URL that is both a seed and a sitemap counts once.
        seeds_planned=-(-len({*seeds, *sitemap_urls}) // SEEDS_REFERENCES_MAX),
        tracking=tracking,
        shards=1 if plan.pages_max else SHARDS_DEFAULT,
        hosts_counted=first_hosts((*seeds, *sitemap_urls)),
        **settings,
    )
    return replace(crawl, work=digest_of(crawl))


def _host_headers(plan: CrawlSpec, seeds: tuple[str, ...]) -> HostHeaders:
    try:
        return origins_of(plan.host_headers, seeds)
    except IdentityError as error:
        raise PlanError("host_headers", str(error)) from error


def _host_access(plan: CrawlSpec, urls: tuple[str, ...]) -> tuple[HostAccess, ...]:
    try:
        return access.with_origins(plan.host_access, partial(origin_of, seeds=urls))
    except (IdentityError, access.AccessError) as error:
        raise PlanError("host_access", str(error)) from error


def _logins(plan: CrawlSpec, urls: tuple[str, ...]) -> tuple[OriginAuth, ...]:
    try:
        return with_origins(plan.auth, urls)
    except IdentityError as error:
        raise PlanError("auth", str(error)) from error


def keyed(plan: CrawlSpec, key: str) -> CrawlSpec:
    """Return a plan with a run id that is made from an idempotency key. Raises PlanError."""
    if not 1 <= len(key) <= KEY_CHARS_MAX or not key.isprintable():
        raise PlanError(
            "idempotency_key", f"a key is 1 to {KEY_CHARS_MAX} printable characters: give another"
        )
    if plan.id is not None:
        raise PlanError("idempotency_key", "an id names the run already: give one of the two")
    return replace(plan, id=f"key-{blake2b(key.encode(), digest_size=16).hexdigest()}")


def problems_of(plan: CrawlSpec, now_ms: int | None = None) -> tuple[PlanError, ...]:
    """Find all problems of a plan. `crawl_of` raises the first of them.

    If `now_ms` is given, a schedule whose last time has passed is a problem.
    """
    return tuple(_problems(plan, now_ms))


def _problems(plan: CrawlSpec, now_ms: int | None = None) -> Iterator[PlanError]:
    yield from _of_bounds(plan)
    patterns = tuple(
        PlanError(part, str(error))
        for part in ("include", "exclude")
        for error in problems_of_patterns(getattr(plan, part))
    )
    yield from patterns
    if not patterns:
        for text in problems_between(plan.include, plan.exclude):
            yield PlanError("include", text)
    rules = (*problems_of_rules(plan.rules), *_of_items(plan), *_of_apis(plan))
    for part, text in (*rules, *problems_of_rendering(plan.render_rules)):
        yield PlanError(part, text)
    if plan.screenshots and (plan.redacted or plan.bodies is Bodies.OFF):
        why = "pictures cannot be redacted" if plan.redacted else "they are stored beside bodies"
        fix = "leave out records.redact" if plan.redacted else "store bodies"
        yield PlanError("screenshots", f"true does not fit: {why}: {fix}, or leave it out")
    if plan.stop_when_nothing_new and not 0 < (plan.pages_max or 0) <= ORDERED_PAGES_MAX:
        fix = f"give a limit of pages of up to {ORDERED_PAGES_MAX:,}, or leave it out"
        text = f"true does not fit: only crawls with such a limit learn what is new: {fix}"
        yield PlanError("stop_when_nothing_new", text)
    references = tuple(PlanError(part, text) for part, text in _problems_of_references(plan))
    yield from references
    if not (patterns or references):
        yield from _of_seeds_left_out(plan)
    yield from _of_names(plan)
    yield from _of_identity(plan, "user_agents", check_agents)
    for text in problems_of_headers(plan.headers):
        yield PlanError("headers", text)
    yield from _of_hosts(plan)
    yield from _of_auth(plan)
    for part, text in (*_of_schedule(plan, now_ms), *problems_of_webhook(plan)):
        yield PlanError(part, text)


# The checks are imported on use, because most crawls have no items and no schedule.
def _of_items(plan: CrawlSpec) -> Iterable[tuple[str, str]]:
    if not plan.items:
        return ()
    from orbweaver.extraction.rules import problems_of

    return problems_of(plan.items)


def _of_apis(plan: CrawlSpec) -> Iterable[tuple[str, str]]:
    if not plan.apis:
        return ()
    from orbweaver.control.definition_api import problems_of

    return problems_of(plan.apis, plan.items)


def _of_auth(plan: CrawlSpec) -> Iterator[PlanError]:
    if not plan.auth:
        return
    from orbweaver.extraction.css import problem_of

    for path, text in problems_of_auth(plan.auth):
        yield PlanError("auth", text, path)
    for one in plan.auth:
        for key, selector in () if one.login is None else selectors_of(one.login):
            if (why := problem_of(selector)) is not None:
                yield PlanError("auth", why, f"{path_of_host(one.origin)}.login.{key}")


def _of_schedule(plan: CrawlSpec, now_ms: int | None) -> Iterable[tuple[str, str]]:
    if plan.every is None and plan.cron is None and plan.timezone is None:
        return ()
    from orbweaver.control.schedule import problems_in

    return problems_in(plan, now_ms)


def _of_bounds(plan: CrawlSpec) -> Iterator[PlanError]:
    for one in SETTINGS:
        value = None if one.bounds is None else getattr(plan, one.name)
        if (text := one.problem_of(value)) is not None:
            yield PlanError(one.name, text)


def _of_seeds_left_out(plan: CrawlSpec) -> Iterator[PlanError]:
    seeds = references_of(plan, tracking_of(plan))[0] if plan.exclude else ()
    for seed in seeds:
        # A crawl with only excluded seeds would be empty.
        if matches(plan.exclude, seed):
            pattern = first_match(plan.exclude, seed) or ""
            text = f"{pattern[:100]!r} leaves out the seed {redacted(seed)!r}: change one of them"
            yield PlanError("exclude", text)
            return


def _of_names(plan: CrawlSpec) -> Iterator[PlanError]:
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


def _of_hosts(plan: CrawlSpec) -> Iterator[PlanError]:
    for path, text in problems_of_host_headers(plan.host_headers):
        yield PlanError("host_headers", text, path)
    for path, text in access.problems_of(plan.host_access):
        yield PlanError("host_access", text, path)
    for host in plan.insecure_hosts:
        if not _HOST.fullmatch(host):
            text = f"{host!r} is not a host name: give one like test.example.com, without port"
            yield PlanError("insecure_hosts", text)


def _of_identity(plan: CrawlSpec, part: str, check: Callable[[Any], None]) -> Iterator[PlanError]:
    try:
        check(getattr(plan, part))
    except IdentityError as error:
        yield PlanError(part, str(error))


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

    The first pages of APIs are seeds. A seed that names an XML file counts as a sitemap, unless the
    crawl stores all files.
    """
    given = (*plan.seeds, *(api.url for api in plan.apis))
    return _references(given, plan.sitemap_urls, tracking, plan.bodies is Bodies.ALL)


def apis_of(plan: CrawlSpec, tracking: tuple[str, ...] | None) -> tuple[ApiSource, ...]:
    """Return the APIs of a plan with canonical URLs. Raises ValueError for an invalid URL."""
    return tuple(replace(one, url=_canonical_of(one.url, tracking)) for one in plan.apis)


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


def _problems_of_references(plan: CrawlSpec) -> Iterator[tuple[str, str]]:
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
    count = len(plan.seeds) + len(plan.sitemap_urls) + len(plan.apis)
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
        problems += [
            (f"api[{place}].url", problem)
            for place, api in enumerate(plan.apis)
            if (problem := problem_of(api.url, tracking)) is not None
        ]
        yield from problems[:PROBLEMS_MAX]
        if len(problems) > PROBLEMS_MAX:
            yield "seeds", f"{len(problems) - PROBLEMS_MAX:,} more cannot be crawled"


def valid_seeds(plan: CrawlSpec, tracking: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Return the canonical seeds and sitemaps of a plan. None: at least one URL is invalid."""
    urls = (*plan.seeds, *plan.sitemap_urls, *(api.url for api in plan.apis))
    if any(map(_USER.match, urls)):
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
        if reference.startswith("{"):
            return f"{redacted(reference)!r} cannot be crawled: {problem_of_line(reference)}"
        suggestion = suggest_url(reference)
        hint = f"; did you mean {suggestion}?" if suggestion else ""
        why = "a port is a number from 1 to 65535" if _has_bad_port(reference) else error
        return f"{redacted(reference)!r} cannot be crawled: {why}{hint}"
    return None


def _has_bad_port(reference: str) -> bool:
    found = _PORT.match(reference)
    return found is not None and not (found[1].isdecimal() and int(found[1]) < PORTS)


def _canonical_of(reference: str, tracking: tuple[str, ...] | None) -> str:
    stripped = TRACKING_PARAMETERS if tracking is None else frozenset(tracking)
    return canonical_seed(reference, tracking=stripped)


def unused_logins(crawl: Crawl) -> tuple[str, ...]:
    """Return a warning for each login at whose origin the crawl requests no URL."""
    if not crawl.auth:
        return ()
    from orbweaver.frontier.admission import logins_outside

    why = "no seed, sitemap or scope is at this origin, so the crawl does not log in there"
    return tuple(f"auth: {origin}: {why}" for origin in logins_outside(crawl))
