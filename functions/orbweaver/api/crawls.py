"""Handle the routes of crawls: start, list, show, edit, add seeds, pause, resume, cancel, retry.

Requests name a crawl by its id. If two requests have the same idempotency key and the same
definition, they refer to the same crawl. All further seeds of a request are checked before the
first is sent, so all of them are accepted or none. Message ids derive from the client's key, or
from the request's id, so a message that is sent twice is detected. A URL with a forbidden address
is refused here too, although the worker would refuse it later.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import tzinfo
from typing import Any

from orbweaver.api import requests
from orbweaver.api.context import HandlerContext, Reply
from orbweaver.api.problems import FLAWS_MAX, Part, Refused
from orbweaver.api.requests import (
    SEEDS_FOLDER,
    Again,
    Definition,
    DefinitionTried,
    HostAsked,
    HostsShown,
    Keyed,
    Listing,
    OfCrawl,
    Overviewed,
    Seeds,
)
from orbweaver.api.responses import (
    Accepted,
    Checked,
    Difference,
    Differences,
    Estimated,
    HostList,
    HostOfCrawl,
    HostSeen,
    LeftOut,
    OverviewList,
    OverviewRow,
    Progress,
    Run,
    Runs,
)
from orbweaver.control.crawl_control import Status
from orbweaver.control.definition import (
    DefinitionError,
    DefinitionProblem,
    files_in,
    lines_of,
    parse,
    read,
)
from orbweaver.control.definition import check as definition_problems
from orbweaver.control.edits import apply_document, differences
from orbweaver.control.schedule import day_in, recurrence_in, window_warning, zone_or_utc
from orbweaver.control.spec_checks import crawl_of
from orbweaver.diagnostics.host_status import hosts_of, times_of
from orbweaver.diagnostics.rule_texts import never_requested_reason
from orbweaver.frontier.messages import REFERENCE_CHARS_MAX, seeds_of
from orbweaver.frontier.retrying import all_of
from orbweaver.frontier.yield_drop import drop_percent
from orbweaver.model.auth import names_place_over_http
from orbweaver.model.crawl import Crawl, State
from orbweaver.model.errors import TooLarge, UnknownCrawl
from orbweaver.model.request_url import canonical_seed
from orbweaver.model.url import host_of, redacted
from orbweaver.politeness.host_schedule import strikes_of
from orbweaver.worker.seeding import crawl_for

READ_AT_ONCE = 16
ROBOTS_BYTES_SHOWN = 100_000
# Maximum number of records for a report, which takes about 10 s. `orbweaver report` reads all
# records.
RECORDS_MAX = 20_000
URLS_MAX = 10_000
# Limit of URLs in a file. The function has time to send this number, 100 per message.
LINES_MAX = 100_000
FILE_BYTES_MAX = 10_000_000


async def start(means: HandlerContext, *, headers: Keyed, body: Definition) -> Reply:
    """Start a crawl, or return the crawl that this key started."""
    plan = await asyncio.to_thread(parse, body)
    if named := files_in(plan):
        raise DefinitionError(named)
    if recurrence_in(plan) is not None:
        raise Refused(
            400, "schedule: this request starts one run: leave it out, see `orbweaver schedule`"
        )
    flaws = (*closed(plan.seeds, "seeds", means), *closed(plan.sitemap_urls, "sitemaps", means))
    if flaws:
        raise Refused(400, str(flaws[0]), flaws)
    if (where := names_place_over_http(plan.auth)) is not None:
        raise Refused(400, f"auth: {where} is not possible over HTTP: give secret:NAME")
    crawl, created = await means.control.begin(plan, headers.idempotency_key)
    place = {"Location": f"crawls/{crawl.id}"}
    return Reply(status=201 if created else 200, body=Run.build(crawl), headers=place)


async def listed(means: HandlerContext, *, query: Listing) -> Reply:
    """List crawls, newest first."""
    listing = ("crawls", query.state or "")
    crawls = [crawl for crawl in await means.crawls.list() if query.state in (None, crawl.state)]
    if query.cursor is not None:
        place = requests.decode_cursor(listing, query.cursor, (0, ""))
        crawls = [crawl for crawl in crawls if (-crawl.started_at_ms, crawl.id) > place]
    shown = crawls[: query.limit]
    following = None
    if len(crawls) > len(shown):
        following = requests.encode_cursor(listing, (-shown[-1].started_at_ms, shown[-1].id))
    return Reply(status=200, body=Runs(crawls=tuple(map(Run.build, shown)), next=following))


async def overview(means: HandlerContext, *, query: Overviewed) -> Reply:
    """List the newest run of each name, or all runs of one name, with their progress."""
    filters = (query.name, query.begins, query.state, query.day, query.zone)
    listing = ("overview", *(one or "" for one in filters))
    try:
        zone = zone_or_utc(query.zone)
    except ValueError as error:
        raise Refused(400, f"zone: {error}") from error
    fits = [crawl for crawl in await means.crawls.list() if _is_asked_for(crawl, query, zone)]
    fits.sort(key=_place)
    runs = Counter(crawl.name for crawl in fits)
    if query.name is None:
        first: dict[str, Crawl] = {}
        # A finished retry is listed below the run whose failures it requested again.
        for crawl in sorted(fits, key=lambda one: not one.live and one.retry_of is not None):
            first.setdefault(crawl.name, crawl)
        fits = [crawl for crawl in fits if first[crawl.name] is crawl]
    total = len(fits)
    if query.cursor is not None:
        place = requests.decode_cursor(listing, query.cursor, (0, 0, ""))
        fits = [crawl for crawl in fits if _place(crawl) > place]
    shown = fits[: query.limit]
    found = await all_of(map(means.crawls.counters, shown), READ_AT_ONCE)
    at_ms = means.clock.now_ms()
    rows = []
    for crawl, counters in zip(shown, found, strict=True):
        progress = Progress.build(Status(crawl=crawl, counters=counters, at_ms=at_ms))
        ended = crawl.state is State.FINISHED
        less = drop_percent(crawl, counters.total) if ended else None
        rows.append(OverviewRow(progress=progress, runs=runs[crawl.name], less_percent=less))
    following = None
    if len(fits) > len(shown):
        following = requests.encode_cursor(listing, _place(shown[-1]))
    return Reply(status=200, body=OverviewList(crawls=tuple(rows), total=total, next=following))


def _is_asked_for(crawl: Crawl, query: Overviewed, zone: tzinfo) -> bool:
    return (
        query.name in (None, crawl.name)
        and query.state in (None, crawl.state)
        and (query.day is None or query.day == day_in(crawl.started_at_ms, zone))
        and (query.begins is None or crawl.name.startswith(query.begins))
    )


def _place(crawl: Crawl) -> tuple[int, int, str]:
    """Sort key of lists: unfinished crawls first, then newest first."""
    return int(crawl.state is State.FINISHED), -crawl.started_at_ms, crawl.id


async def check(means: HandlerContext, *, body: DefinitionTried) -> Reply:
    """List the mistakes of a definition, without starting it."""
    return await asyncio.to_thread(_checked, means, body)


def _checked(means: HandlerContext, body: Mapping[str, Any]) -> Reply:
    plan, problems = read(body)
    if any(not problem.path for problem in problems):  # not a definition
        raise DefinitionError(problems)
    unasked = (*closed(plan.seeds, "seeds", means), *closed(plan.sitemap_urls, "sitemaps", means))
    placed = {flaw.text for flaw in unasked}  # report a problem once, at its key
    problems = (*problems, *files_in(plan))
    unfit = (*problems, *definition_problems(plan, problems, means.clock.now_ms()))
    found = (*(flaw for flaw in unfit if flaw.text not in placed), *unasked)
    parts = tuple(Part(path=flaw.path, text=flaw.text) for flaw in found[:FLAWS_MAX])
    name = expected = None
    warnings: tuple[str, ...] = ()
    if not found:
        warnings = tuple(filter(None, [window_warning(plan, means.clock.now_ms())]))
        crawl = crawl_of(plan, means.clock.now_ms())
        name, expected = crawl.name, _expected(crawl, plan.pages_max)
    told = Checked(
        problems=parts,
        name=name,
        seeds=len(plan.seeds),
        estimate=expected,
        warnings=warnings,
    )
    return Reply(status=200, body=told)


def _expected(crawl: Crawl, pages_max: int | None) -> Estimated:
    """Estimate the cost of a crawl on a stack with default settings."""
    # Imported here so that other requests do not load it.
    from orbweaver.budget.estimate import PAGES_ASSUMED, Assumptions, estimate
    from orbweaver.budget.prices import dollars

    hosts = max(1, len(hosts_of(crawl)))
    assumed = Assumptions(pages=pages_max or PAGES_ASSUMED, hosts=hosts)
    found = estimate(crawl, assumed)
    usd, least_s = dollars(found.units.by_term), found.least_s
    return Estimated(pages=assumed.pages, hosts=hosts, usd=usd, least_s=least_s)


async def preview(means: HandlerContext, *, path: OfCrawl, body: Definition) -> Reply:
    """Show how an edit would change a crawl, without changing it."""
    crawl = await means.crawl(path.id)
    if not crawl.live:
        raise Refused(409, f"crawl {crawl.id} is {crawl.state}: it cannot be edited")
    changes = tuple(
        Difference(key=key, was=was, becomes=becomes)
        for key, was, becomes in differences(crawl, apply_document(crawl, body))
    )
    return Reply(status=200, body=Differences(crawl=Run.build(crawl), changes=changes))


async def show(means: HandlerContext, *, path: OfCrawl) -> Reply:
    """Show a crawl's progress."""
    crawl = await means.crawl(path.id)
    status = await means.control.status(crawl.id)
    return Reply(status=200, body=Progress.build(status))


async def hosts(means: HandlerContext, *, path: OfCrawl, query: HostsShown) -> Reply:
    """Show a crawl's hosts: delay, blocks with reasons, queued and failed URLs."""
    crawl = await means.crawl(path.id)
    found = await means.control.hosts(crawl.id, () if query.host is None else (query.host,))
    return Reply(status=200, body=HostList(crawl=Run.build(crawl), hosts=found))


async def host(means: HandlerContext, *, query: HostAsked) -> Reply:
    """Show a host for all crawls: delay, blocks, robots.txt, and the line that decides on a URL."""
    seen = await means.control.host(query.host, query.url)
    host, entry, decided = seen.host, seen.host.robots, seen.decided
    body = b"" if entry is None else entry.body or b""
    now_ms = means.clock.now_ms()
    times, strikes = times_of(host, now_ms), strikes_of(host, now_ms)
    shown = HostSeen(
        host=host.name,
        blocked_until_ms=times.blocked_until_ms,
        next_slot_ms=times.next_slot_ms,
        why=times.why,
        failures=host.failures,
        strikes=strikes,
        struck_at_ms=host.struck_at_ms if strikes else None,
        robots_at_ms=None if entry is None else entry.fetched_at_ms,
        robots_verdict=None if entry is None else entry.verdict,
        robots=body[:ROBOTS_BYTES_SHOWN].decode("utf-8", "replace") if body else None,
        robots_cut=max(0, len(body) - ROBOTS_BYTES_SHOWN),
        line=None if decided is None else decided.line,
        allowed=None if decided is None else decided.allowed,
        says=None if decided is None else decided.why or "no rule matches",
        crawls=tuple(
            HostOfCrawl(crawl=Run.build(crawl), standing=view) for crawl, view in seen.crawls
        ),
        more=seen.more,
    )
    return Reply(status=200, body=shown)


async def report(means: HandlerContext, *, path: OfCrawl) -> Reply:
    """Report skipped links with reasons and examples, and the distribution of requests."""
    crawl = await means.crawl(path.id)
    told = await means.control.report(
        crawl.id,
        files=means.files,
        backlog=means.backlog,
        frontier=means.frontier,
        records_max=RECORDS_MAX,
    )
    shown = LeftOut(
        crawl=Run.build(told.crawl),
        skipped=told.skipped,
        spared=told.spared,
        requests=told.requests,
    )
    return Reply(status=200, body=shown)


async def edit(means: HandlerContext, *, path: OfCrawl, body: Definition) -> Reply:
    """Change limits, delay, patterns and rules of a running crawl."""
    crawl = await means.crawl(path.id)
    return _done(await means.control.edit(crawl.id, body))


async def pause(means: HandlerContext, *, path: OfCrawl) -> Reply:
    """Pause a crawl. Its queued URLs wait."""
    crawl = await means.crawl(path.id)
    return _done(await means.control.pause(crawl.id))


async def resume(means: HandlerContext, *, path: OfCrawl) -> Reply:
    """Resume a paused crawl."""
    crawl = await means.crawl(path.id)
    return _done(await means.control.resume(crawl.id))


async def cancel(means: HandlerContext, *, path: OfCrawl) -> Reply:
    """Cancel a crawl. Its records stay."""
    crawl = await means.crawl(path.id)
    return _done(await means.control.cancel(crawl.id))


async def retry(means: HandlerContext, *, path: OfCrawl, body: Again) -> Reply:
    """Start new runs with only the URLs of a crawl that failed, if any."""
    crawl = await means.crawl(path.id)
    runs = await means.control.retry(crawl.id, reasons=body.reasons, host=body.host)
    return Reply(status=201 if runs else 200, body=Runs(crawls=tuple(map(Run.build, runs))))


def _done(crawl: Crawl) -> Reply:
    return Reply(status=200, body=Run.build(crawl))


async def take(means: HandlerContext, *, headers: Keyed, body: Seeds, request_id: str) -> Reply:
    """Queue URLs for a crawl."""
    references, name = await _references(means, body)
    flaws = closed(references, name, means)
    if flaws:
        detail = f"{flaws[0]}; nothing was taken"
        raise Refused(400, detail, flaws)
    now_ms = means.clock.now_ms()
    crawl = await crawl_for(means.crawls, body.crawl, now_ms)
    if crawl is None:
        raise UnknownCrawl(f"there is no crawl {body.crawl!r}")
    if not crawl.live:
        raise Refused(409, f"crawl {crawl.id} is {crawl.state}: start another")
    key = headers.idempotency_key
    origin = request_id if key is None else f"{crawl.id} {key}"
    seeds = seeds_of(origin, crawl.id, references, at_ms=now_ms, planned=False)
    await means.queue.send_seeds(seeds, express=crawl.express)
    return Reply(status=202, body=Accepted(crawl=crawl.id, accepted=len(references)))


async def _references(means: HandlerContext, body: Seeds) -> tuple[Sequence[str], str]:
    """Return the given URLs, and the name of the parameter that contains them."""
    given = [name for name in ("url", "urls", "s3") if getattr(body, name) is not None]
    if len(given) != 1:
        raise Refused(400, "give one of url, urls and s3")
    if body.s3 is not None:
        return await _lines(means, body.s3), "line"
    references = (body.url,) if body.url is not None else body.urls or ()
    if len(references) > URLS_MAX:
        raise Refused(413, f"at most {URLS_MAX:,} URLs a request: put more into a file (s3)")
    return references, "urls" if body.url is None else "url"


async def _lines(means: HandlerContext, key: str) -> Sequence[str]:
    if ".." in key.split("/"):
        raise Refused(400, f"s3: give a name below {SEEDS_FOLDER}")
    try:
        content = await means.files.get(key, FILE_BYTES_MAX)
    except TooLarge as error:
        raise Refused(413, f"s3: {error}") from error
    if content is None:
        raise Refused(400, f"s3: there is no file {key!r} in the stack's bucket")
    try:
        lines = lines_of(content.decode())
    except UnicodeDecodeError as error:
        raise Refused(400, f"s3: {key!r} is no text in UTF-8") from error
    if len(lines) > LINES_MAX:
        raise Refused(413, f"s3: {key!r} has more than {LINES_MAX:,} URLs: cut it into several")
    if not lines:
        raise Refused(400, f"s3: {key!r} has no URL")
    return lines


def closed(
    references: Iterable[str], name: str, means: HandlerContext
) -> tuple[DefinitionProblem, ...]:
    """Return the problems of URLs that cannot be crawled, at most `FLAWS_MAX`.

    `name` is the parameter that contains the URLs.
    """
    found: list[DefinitionProblem] = []
    for place, reference in enumerate(references):
        why = _problem(reference, means)
        if why is not None:
            where = name if name == "url" else f"{name}[{place}]"
            text = f"{redacted(reference)!a} cannot be crawled: {why}"
            found.append(DefinitionProblem(where, text))
            if len(found) >= FLAWS_MAX:
                break
    return tuple(found)


def _problem(reference: str, means: HandlerContext) -> str | None:
    if len(reference) > REFERENCE_CHARS_MAX:
        return f"it is longer than {REFERENCE_CHARS_MAX:,} characters"
    try:
        url = canonical_seed(reference)
    except ValueError as error:
        return str(error)
    return never_requested_reason(url, means.allowed, frozenset({host_of(url)}))
