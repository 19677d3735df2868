"""Check a site: an ordinary crawl that stores links and bodies, then the status of other URLs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from orbweaver.app.store_runner import store_proxies, store_settings
from orbweaver.cli import text
from orbweaver.cli.causes import code_of
from orbweaver.cli.check_links.context import NAME, CheckContext, run_crawl
from orbweaver.cli.check_links.links import NO_PAGE, Anchors, Link, LinkIndex
from orbweaver.cli.check_links.report import Results
from orbweaver.cli.check_links.verdict import LEFT_OUT, LinkState, judge, last_url, unverified
from orbweaver.cli.commands.crawl import checked
from orbweaver.cli.exit_codes import PageError
from orbweaver.cli.proxy_options import trouble_of_seed
from orbweaver.control.crawl_spec import CrawlSpec
from orbweaver.control.spec_checks import name_of
from orbweaver.exporting.unit_worker import links_of
from orbweaver.frontier.link_table import read_links, table_rows
from orbweaver.frontier.retrying import closing
from orbweaver.frontier.stored_record import Missing, PagePart, read_stored
from orbweaver.model.named_origins import non_public_origin_of
from orbweaver.model.outcome import Reason
from orbweaver.model.url import host_of
from orbweaver.parsing.page import as_utf8

if TYPE_CHECKING:
    from orbweaver.cli.session import Session
    from orbweaver.model.crawl import Crawl
    from orbweaver.model.page_record import PageRecord

NAME_CHARS_MAX = 80


async def check_site(url: str, context: CheckContext) -> Results:
    """Check the links of a site. Raises PageError if its first page cannot be read."""
    around, plan = context.around, _plan(url, context.options)
    crawl = checked(plan, around)
    seed = crawl.seeds[0]
    proxies = store_proxies(around.environment, store_settings(around.environment))
    if why := await trouble_of_seed(crawl, proxies, around, seed):
        raise _nothing(url, why.detail, why.reason)
    index = LinkIndex(excludes=context.excludes)
    async with context.session() as session:
        view = await run_crawl(session, plan, context.display())
        records = await _read(session, view.crawl, index)
        if not index.pages:
            first = judge(seed, records)
            raise _nothing(url, first.detail or "it is no HTML page", first.reason)
        results = await _judged(session, context, index, records, seed)
        _add_start(results, seed, records)
        wanted = results.wanted_fragments()
        for page, record in records.items():
            anchors = await _anchors(session, record)
            if anchors is not None:
                results.add_anchors(page, page, anchors, wanted.get(page, ()))
    return results


def _nothing(url: str, why: str, reason: str) -> PageError:
    said = f"nothing could be checked: {text.clean(url)}: {text.clean(why)}"
    return PageError(said, code_of(reason))


def _plan(url: str, given: Mapping[str, Any]) -> CrawlSpec:
    # A name of its own, because other crawls of the site must not skip the pages of a check.
    name = f"{NAME}-{name_of(url)}"[:NAME_CHARS_MAX].rstrip("-")
    options = {key: value for key, value in given.items() if key != "duration_max_s"}
    return replace(CrawlSpec(seeds=(url,), name=name, links=True, window_s=0), **options)


async def _judged(
    session: Session,
    context: CheckContext,
    index: LinkIndex,
    records: Mapping[str, PageRecord],
    seed: str,
) -> Results:
    """Judge the links. URLs that the crawl did not request get a status check."""
    hosts = {host_of(record.url) for record in records.values() if record.charset}
    if not context.external:
        index.keep(lambda target: host_of(target) in hosts)
    ends = {target: last_url(target, records) for target in index.targets()}
    left_out = {
        target
        for target, end in ends.items()
        if target in index.left_out and host_of(end) in hosts and end not in records
    }
    asked = [
        end
        for target, end in ends.items()
        if end not in records
        and target not in left_out
        and (context.external or host_of(end) in hosts)
    ]
    is_local = non_public_origin_of(seed) is not None
    found = await context.statuses(session, asked, is_local=is_local)
    results = Results(index=index, earlier=found.earlier)
    found = replace(found, records={**found.records, **records})
    for target in ends:
        is_left = target in left_out
        results.verdicts[target] = (
            unverified(target, LEFT_OUT) if is_left else found.verdict(target)
        )
    return results


def _add_start(results: Results, seed: str, records: Mapping[str, PageRecord]) -> None:
    """Report a start URL without a page. Its sitemap can contain all pages that were read."""
    index = results.index
    if index.excludes(seed):
        return
    start = results.verdicts.setdefault(seed, judge(seed, records))
    if start.state is not LinkState.FINE:
        index.found[Link(seed)][seed] = None
    elif (last := records.get(start.url)) and last.reason in (Reason.CONTENT_TYPE, Reason.EMPTY):
        index.unread[NO_PAGE] += 1


async def _read(session: Session, crawl: Crawl, index: LinkIndex) -> dict[str, PageRecord]:
    """Add the stored links of a crawl to the index. Return its records by URL."""
    records: dict[str, PageRecord] = {}
    rows, files = session.control.pages(crawl), session.ports.files
    async with closing(rows):
        async for record in rows:
            records[record.url] = record
            if not record.charset:
                continue
            index.add_page(record.cut, scripted=bool(record.needs_rendering))
            links = await links_of(record, files)
            found = None if links is None else read_links(links, record.url)
            for row in () if found is None else table_rows(found):
                index.add(record.url, row)
    return records


async def _anchors(session: Session, record: PageRecord) -> Anchors | None:
    """Return the anchors of a stored page. None: it is not stored, or comes from scripts."""
    if not record.charset or record.needs_rendering:
        return None
    try:
        stored = await read_stored(session.ports.files, record, PagePart.BODY)
        body = None if isinstance(stored, Missing) else stored.body()
    except ValueError:
        return None
    if body is None:
        return None
    return Anchors(as_utf8(body, f"text/html; charset={record.charset}")[1])
