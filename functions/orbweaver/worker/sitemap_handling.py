"""Find sitemaps and read them in parts.

A sitemap is claimed, requested and counted like any other URL. Each part has at most as many
references as a page may have links. So a sitemap causes no more work per invocation than a page.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial

from orbweaver.fetching.response_verdict import End, Read
from orbweaver.frontier.admission import admit_child, admit_entry, admit_sitemap, hosts_for_sitemap
from orbweaver.frontier.pack_result import EndedPage, FoundLinks, PageResult, Returning
from orbweaver.model.crawl import Crawl
from orbweaver.model.http_exchange import Failure, Response
from orbweaver.model.outcome import Outcome, Reason, Refusal
from orbweaver.model.ports import Clock
from orbweaver.model.settings import Settings
from orbweaver.model.target import Target, TargetKind
from orbweaver.model.turns import slices, turn_after
from orbweaver.model.url import canonicalize, host_of
from orbweaver.model.value import value_class
from orbweaver.parsing.sitemap import Sitemap, read
from orbweaver.politeness.robots_txt import Robots
from orbweaver.worker.pack_context import PackContext, page_record
from orbweaver.worker.page_links import with_sitemap_links

_log = logging.getLogger(__name__)

# Servers use various types. The content shows whether it is a sitemap.
SITEMAP_TYPES = frozenset(
    {"application/xml", "text/xml", "application/gzip", "text/plain", "application/rss+xml"}
    | {"application/atom+xml", "*/*"}
)
# Limits of sitemaps that are read at a time and of responses in memory, which they share with
# pages.
SITEMAPS_AT_ONCE = 1
KEPT_BYTES_MAX = 8 * 1024 * 1024
KEPT_MS = 600_000
# Longer or gzipped sitemaps are read in a thread, for up to some seconds.
INLINE_BYTES_MAX = 65_536
NEXT_PART_S = 1


@value_class
class _Kept:
    got: Read
    answer: Response | Failure
    at_ms: int


class Sitemaps:
    """Finds and reads sitemaps. Keeps the newest responses of which parts are unread."""

    def __init__(self, *, clock: Clock, settings: Settings) -> None:
        self._clock = clock
        self._settings = settings
        self._kept: dict[tuple[str, str], _Kept] = {}

    def robots_sitemaps(
        self,
        crawl: Crawl,
        robots: Robots,
        targets: Iterable[Target],
        outcome: Callable[[str], Outcome | None],
    ) -> FoundLinks:
        """Return the sitemaps that robots.txt names, once one of the host's seeds has ended.

        `outcome` returns the outcome of a URL of the pack, if it has one.
        """
        if not crawl.sitemaps or crawl.continuous:
            return FoundLinks()
        for target in targets:
            # If a seed redirects, its crawl starts at the redirect's target.
            ended = outcome(target.url)
            if (
                target.depth
                or target.kind is TargetKind.SITEMAP
                or ended in (None, Outcome.REDIRECTED)
            ):
                continue
            site = host_of(target.url)
            referrer = f"{site}/robots.txt"
            found: list[tuple[str, Target | Refusal]] = []
            for reference in robots.sitemaps:
                try:
                    url = canonicalize(reference, referrer, tracking=crawl.removed_parameters)
                    sitemap = admit_sitemap(
                        crawl,
                        url,
                        site=site,
                        referrer=referrer,
                        root=target.root,
                        local=target.local,
                    )
                except Exception as error:  # noqa: BLE001 - the other references remain
                    if not isinstance(error, ValueError):
                        _log.exception("sitemap.unreadable", extra={"crawl": crawl.id})
                    found.append((reference, Refusal.INVALID))
                    continue
                found.append((url, sitemap))
            return _found(found, {Refusal.CUT: robots.sitemaps_cut})
        return FoundLinks()

    async def go_on(self, context: PackContext, target: Target) -> PageResult | None:
        """Read the next part of a sitemap in memory. Return None if it must be requested."""
        kept = self._kept.pop((context.crawl.id, target.url), None) if target.first else None
        if kept is None or not 0 <= self._clock.now_ms() - kept.at_ms < KEPT_MS:
            return None
        return await self.read(context, target, kept.got, kept.answer, kept.at_ms)

    async def read(
        self,
        context: PackContext,
        target: Target,
        got: Read,
        answer: Response | Failure,
        at_ms: int,
    ) -> PageResult:
        """Read the next part of a sitemap. Return its links and outcome.

        If the sitemap has further parts, it is requeued and has no outcome yet.
        """
        crawl = context.crawl
        part = await self._part(context, target, got.body)
        judged = await self._judged(crawl, target, part)
        found = (_found(judged, part.dropped),)
        await turn_after(judged)
        if part.more:
            self._keep(context, target, _Kept(got=got, answer=answer, at_ms=at_ms))
            following = replace(target, first=part.listed, attempt=1, failed=None)
            return PageResult(end=Returning(target=following, delay_s=NEXT_PART_S), found=found)
        record = page_record(crawl.id, target, _end(part, got), at_ms, answer=answer)
        record, kept = replace(record, links=part.listed), None
        if crawl.links and part.usable:
            if target.first:  # earlier parts had no record to which links could be added
                whole = await self._part(context, replace(target, first=0), got.body, part.listed)
                judged = await self._judged(crawl, target, whole)
            kept = with_sitemap_links(crawl, record, judged)
        return PageResult(end=EndedPage(record=record, kept=kept), found=found)

    async def _judged(
        self, crawl: Crawl, target: Target, part: Sitemap
    ) -> list[tuple[str, Target | Refusal]]:
        hosts, bounds = hosts_for_sitemap(crawl, target), self._settings.bounds
        judged: list[tuple[str, Target | Refusal]] = []
        async for entries in slices(part.entries):
            judged += [(one.url, admit_entry(crawl, one, target, hosts, bounds)) for one in entries]
        async for children in slices(part.sitemaps):
            judged += [(one.url, admit_child(crawl, one, target, hosts)) for one in children]
        return judged

    async def _part(
        self, context: PackContext, target: Target, body: bytes, count: int | None = None
    ) -> Sitemap:
        reading = partial(
            read,
            body,
            target.url,
            first=target.first,
            count=count or self._settings.worker.links_per_page_max,
            tracking=context.crawl.removed_parameters,
        )
        if len(body) <= INLINE_BYTES_MAX and not body.startswith(b"\x1f\x8b"):
            return reading()
        return await asyncio.to_thread(reading)

    def _keep(self, context: PackContext, target: Target, kept: _Kept) -> None:
        """Keep a response in memory for its next part, and drop the oldest if memory is short."""
        self._kept[context.crawl.id, target.url] = kept
        while sum(len(each.got.body) for each in self._kept.values()) > KEPT_BYTES_MAX:
            # A dropped response is requested again. If it has changed, claims prevent that a URL is
            # fetched twice.
            del self._kept[next(iter(self._kept))]


def _found(
    judged: Iterable[tuple[str, Target | Refusal]], dropped: Mapping[Refusal, int]
) -> FoundLinks:
    admitted: list[Target] = []
    refused: defaultdict[Refusal, list[str]] = defaultdict(list)
    for url, one in judged:
        if isinstance(one, Target):
            admitted.append(one)
        else:
            refused[one].append(url)
    cut = [(refusal, count, ()) for refusal, count in dropped.items()]
    examples = [(why, len(urls), tuple(urls)) for why, urls in refused.items()]
    return FoundLinks(admitted=tuple(admitted), refused=(*cut, *examples))


def _end(part: Sitemap, got: Read) -> End:
    problem = part.problem
    if problem is None and got.reason is Reason.TRUNCATED:
        problem = "the body was cut"
    if part.usable:
        return End(outcome=Outcome.FETCHED, reason=Reason.SITEMAP, error=problem)
    return End(
        outcome=Outcome.FAILED, reason=Reason.SITEMAP_INVALID, error=problem or "it is empty"
    )
