"""Routes of crawls: start, list, show, edit, pause, resume, cancel, retry failures.

A crawl is named by its id alone; the same key with the same definition is the same crawl, however
often and from however many places it is asked for.
"""

from __future__ import annotations

from orbweaver.api.context import Means, Reply
from orbweaver.api.problems import Refused
from orbweaver.api.requests import Again, Definition, HostsShown, Keyed, Listing, OfCrawl
from orbweaver.api.responses import HostList, LeftOut, Progress, Run, Runs
from orbweaver.api.seeds import closed
from orbweaver.control import cursor
from orbweaver.control.definition import parse
from orbweaver.control.schedule import recurrence_in
from orbweaver.model.crawl import Crawl


async def start(means: Means, *, headers: Keyed, body: Definition) -> Reply:
    """Start a crawl, or find the one that was started with this key."""
    plan = parse(body)
    if recurrence_in(plan) is not None:
        raise Refused(400, "schedule: this begins one run: leave it out, see `orbweaver schedule`")
    flaws = (*closed(plan.seeds, "seeds", means), *closed(plan.sitemap_urls, "sitemaps", means))
    if flaws:
        raise Refused(400, str(flaws[0]), flaws)
    crawl, created = await means.control.begin(plan, headers.idempotency_key)
    place = {"Location": f"crawls/{crawl.id}"}
    return Reply(status=201 if created else 200, body=Run.of(crawl), headers=place)


async def listed(means: Means, *, query: Listing) -> Reply:
    """List crawls, newest first."""
    listing = ("crawls", query.state or "")
    crawls = [crawl for crawl in await means.crawls.list() if query.state in (None, crawl.state)]
    if query.cursor is not None:
        place = cursor.decode(listing, query.cursor, (0, ""))
        crawls = [crawl for crawl in crawls if (-crawl.started_at_ms, crawl.id) > place]
    shown = crawls[: query.limit]
    following = None
    if len(crawls) > len(shown):
        following = cursor.encode(listing, (-shown[-1].started_at_ms, shown[-1].id))
    return Reply(status=200, body=Runs(crawls=tuple(map(Run.of, shown)), next=following))


async def show(means: Means, *, path: OfCrawl) -> Reply:
    """Show how a crawl stands."""
    crawl = await means.crawl(path.id)
    status = await means.control.status(crawl.id)
    return Reply(status=200, body=Progress.of(status))


async def hosts(means: Means, *, path: OfCrawl, query: HostsShown) -> Reply:
    """Show how a crawl does at its hosts: paced at, blocked until and why, queued, failed."""
    crawl = await means.crawl(path.id)
    found = await means.control.hosts(crawl.id, () if query.host is None else (query.host,))
    return Reply(status=200, body=HostList(crawl=Run.of(crawl), hosts=found))


async def report(means: Means, *, path: OfCrawl) -> Reply:
    """Say what a crawl left out and why, with examples."""
    crawl = await means.crawl(path.id)
    told = await means.control.report(crawl.id)
    return Reply(status=200, body=LeftOut(crawl=Run.of(told.crawl), skipped=told.skipped))


async def edit(means: Means, *, path: OfCrawl, body: Definition) -> Reply:
    """Change limits, delay, patterns and rules of a crawl while it runs."""
    crawl = await means.crawl(path.id)
    return _done(await means.control.edit(crawl.id, body))


async def pause(means: Means, *, path: OfCrawl) -> Reply:
    """Have a crawl set aside what it would ask for."""
    crawl = await means.crawl(path.id)
    return _done(await means.control.pause(crawl.id))


async def resume(means: Means, *, path: OfCrawl) -> Reply:
    """Have a paused crawl go on."""
    crawl = await means.crawl(path.id)
    return _done(await means.control.resume(crawl.id))


async def cancel(means: Means, *, path: OfCrawl) -> Reply:
    """End a crawl; what it got stays."""
    crawl = await means.crawl(path.id)
    return _done(await means.control.cancel(crawl.id))


async def retry(means: Means, *, path: OfCrawl, body: Again) -> Reply:
    """Begin new runs of a crawl with just the URLs that failed; none where nothing did."""
    crawl = await means.crawl(path.id)
    runs = await means.control.retry(crawl.id, reasons=body.reasons, host=body.host)
    return Reply(status=201 if runs else 200, body=Runs(crawls=tuple(map(Run.of, runs))))


def _done(crawl: Crawl) -> Reply:
    return Reply(status=200, body=Run.of(crawl))
