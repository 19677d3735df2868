"""Preview a crawl: request its first seed once, and decide which links of the page it follows.

The request follows the rules of a worker: robots.txt, a slot (request time) of the host, allowed
addresses. The preview claims and records no URL. The host's new state (robots.txt, slots, a block)
is stored for all crawls, because the request is real.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from orbweaver.diagnostics.host_status import why_blocked
from orbweaver.diagnostics.rule_texts import (
    never_requested_reason,
    rules_words,
    scope_rule,
    trap_rule,
)
from orbweaver.fetching import response_verdict as answers
from orbweaver.frontier.admission import admit_link, admit_redirect, admit_seed
from orbweaver.frontier.crawl_scope import admit_name
from orbweaver.model.crawl import Crawl
from orbweaver.model.crawl_rules import depth_limit
from orbweaver.model.host_access import timeout_of
from orbweaver.model.http_exchange import Request, Response
from orbweaver.model.named_origins import origins_of
from orbweaver.model.outcome import Reason, Refusal, known
from orbweaver.model.request_url import sent_form
from orbweaver.model.target import Target
from orbweaver.model.url import canonicalize, host_of
from orbweaver.model.url_patterns import first_match
from orbweaver.model.url_rules import combined_rule, deciding
from orbweaver.model.user_agent import identity_of
from orbweaver.model.value import positional_value_class, value_class
from orbweaver.politeness.host_schedule import delay_of
from orbweaver.politeness.pacer import HostRequests, Pacer
from orbweaver.politeness.robots_cache import Deferred, RobotsKeeper, RobotsUnreachable
from orbweaver.politeness.robots_txt import Robots
from orbweaver.worker.page_outcome import page_types
from orbweaver.worker.page_reading import PageReading, ReaderBusy, job_of, wants_json

if TYPE_CHECKING:
    from orbweaver.model.ports import Clock, Fetcher
    from orbweaver.model.settings import Settings
    from orbweaver.parsing.page import Page
    from orbweaver.politeness.host_health import HostHealth
    from orbweaver.politeness.ports import Hosts
    from orbweaver.worker.page_reading import PageReader

# Maximum wait for slots of a host.
WAIT_MS = 20_000
LINKS_SHOWN, LINKS_AT_ONCE = 300, 250
TAKEN = "taken"
BODY_BYTES_MAX = 5 * 1024 * 1024


@value_class
class JudgedLink:
    """A link of a page: whether the crawl would follow it, and the rule that decides.

    `refused` is None if the crawl would follow and request the link. It is a Refusal if the crawl
    would not follow the link. It is a Reason if the crawl would follow the link, but not request
    it.
    """

    url: str
    refused: Refusal | Reason | None
    rule: str


@value_class
class SeedPreview:
    """Preview of a crawl's first seed and of its page. `why` is the reason if there is no page."""

    seed: str | None
    url: str | None
    redirects: tuple[str, ...] = ()
    status: int | None = None
    title: str | None = None
    robots: str | None = None
    why: str | None = None
    counts: Mapping[str, int]
    links: tuple[JudgedLink, ...] = ()
    more: int = 0


@value_class
class SeedReading:
    """The page of a crawl's first seed, parsed as by a worker.

    If `reading` is None, `preview.why` has the reason in words. `reason` is the reason that a
    worker would record, if it would record one.
    """

    preview: SeedPreview
    reason: Reason | None = None
    target: Target | None = None
    reading: PageReading | None = None
    robots: Robots | None = None


@value_class
class _Asked:
    answer: Response
    robots: Robots | None
    said: str


@positional_value_class
class _NoPage:
    why: str
    reason: Reason | None = None


@value_class
class _Onward:
    location: str


class SeedPreviewer:
    """Requests a crawl's first seed, and decides which links of the page the crawl follows."""

    def __init__(
        self,
        *,
        fetcher: Fetcher,
        reader: PageReader,
        hosts: Hosts,
        health: HostHealth,
        clock: Clock,
        settings: Settings,
    ) -> None:
        self._fetcher = fetcher
        self._reader = reader
        self._hosts = hosts
        self._health = health
        self._clock = clock
        self._settings = settings
        self._robots = RobotsKeeper(fetcher=fetcher, hosts=hosts, clock=clock, settings=settings)

    async def preview(self, crawl: Crawl) -> SeedPreview:
        # Items and texts are not extracted, because a preview does not show them.
        found = await self.read(replace(crawl, items=(), texts=False))
        if found.reading is None or found.reading.page is None or found.target is None:
            return found.preview
        page = found.reading.page
        return await self._judged(crawl, found.target, page, found.robots, found.preview)

    async def read(self, crawl: Crawl) -> SeedReading:
        """Request the first seed, follow redirects, and read the page as a worker does."""
        if not crawl.seeds:
            why = "it starts at sitemaps only: there is no first page to show"
            return SeedReading(preview=SeedPreview(seed=None, url=None, why=why, counts={}))
        seed = crawl.seeds[0]
        target = admit_seed(crawl, seed)
        redirects: list[str] = []
        until_ms = self._clock.now_ms() + WAIT_MS
        found = SeedPreview(seed=seed, url=seed, counts={})
        while isinstance(target, Target):
            found = replace(found, url=target.url, redirects=tuple(redirects))
            asked = await self._ask(crawl, target, until_ms)
            if isinstance(asked, _NoPage):
                return SeedReading(preview=replace(found, why=asked.why), reason=asked.reason)
            found = replace(found, status=asked.answer.status, robots=asked.said)
            read = await self._page(crawl, target, asked.answer)
            if isinstance(read, _NoPage):
                return SeedReading(preview=replace(found, why=read.why), reason=read.reason)
            if not isinstance(read, _Onward):
                return SeedReading(preview=found, target=target, reading=read, robots=asked.robots)
            redirects.append(target.url)
            target = self._led(crawl, target, read.location)
        why = f"it leads to a URL that is refused: {target.means}"
        return SeedReading(preview=replace(found, why=why))

    def _led(self, crawl: Crawl, target: Target, location: str) -> Target | Refusal:
        try:
            url = canonicalize(location, target.url, tracking=crawl.removed_parameters)
        except ValueError:
            return Refusal.INVALID
        return admit_redirect(crawl, url, target, self._settings.bounds)

    # --- one request ------------------------------------------------------------------------------

    async def _ask(self, crawl: Crawl, target: Target, until_ms: int) -> _Asked | _NoPage:
        """Request a URL as a worker does, or return why robots.txt or the host forbids it."""
        host, named = host_of(target.url), origins_of(crawl)
        identity = identity_of(crawl, host, self._settings.fetching.user_agent)
        robots: Robots | None = None
        said, crawl_delay_s = "it is not asked (politeness.robots = false)", None
        if crawl.obey_robots:
            match await self._robots.rules_for(host, crawl, until_ms, named=named):
                case Deferred() as deferred:
                    return await self._later(host, deferred.return_at_ms)
                case RobotsUnreachable() as unreachable:
                    why = f"robots.txt could not be fetched: {unreachable.detail}"
                    return _NoPage(why, known(Reason, unreachable.reason))
                case None:
                    said = "there is none, so everything is allowed"
                case Robots() as robots:
                    decided = robots.decide(identity.token, target.url)
                    said = decided.why or "no rule matches"
                    crawl_delay_s = robots.crawl_delay(identity.token)
                    if not decided.allowed:
                        return _NoPage(f"robots.txt forbids it: {decided.why}", Reason.ROBOTS)
        pacer = Pacer(
            HostRequests(host, self._hosts, self._clock),
            delay_ms=delay_of(crawl.delay_ms, crawl_delay_s, 0),
            until_ms=until_ms,
        )
        if (return_at_ms := await pacer.wait_for_slot(1)) is not None:
            return await self._later(host, return_at_ms)
        total_s, idle_s = timeout_of(crawl, host, self._settings.fetching.fetch_total_s)
        at_ms = self._clock.now_ms()
        address, body, headers = sent_form(target.url, identity.headers)
        answer = await self._fetcher.fetch(
            Request(
                url=address,
                user_agent=identity.agent,
                headers=headers,
                body=body,
                direct=not crawl.proxied,
                trust=identity.trust,
                accept=page_types(crawl, target),
                body_bytes_max=BODY_BYTES_MAX,
                total_s=total_s,
                idle_s=idle_s,
                named=named,
                sent=pacer.note_sent,
            )
        )
        await pacer.release(if_late=True)
        verdict = answers.judge(
            answer,
            attempt=1,
            now_ms=self._clock.now_ms(),
            json=wants_json(crawl, target.url),
        )
        if isinstance(verdict, answers.Retry) and verdict.block:
            await self._health.back_off(host, verdict.retry_after_s, at_ms)
        if not isinstance(answer, Response):
            why = f"{answer.reason.short or answer.reason}: {answer.detail}"
            return _NoPage(why, answer.reason)
        return _Asked(answer=answer, robots=robots, said=said)

    async def _later(self, name: str, return_at_ms: int) -> _NoPage:
        host, now_ms = await self._hosts.read_host(name), self._clock.now_ms()
        wait_s = max(0, return_at_ms - now_ms) // 1000
        why = "crawls have reserved these slots, also crawls that are paused now"
        if host.blocked_until_ms > now_ms:
            why = why_blocked(host, now_ms)
        said = f"its host accepts no request for {wait_s:,} s more: {why}; no request was sent"
        return _NoPage(said)

    async def _page(
        self, crawl: Crawl, target: Target, answer: Response
    ) -> PageReading | _Onward | _NoPage:
        verdict = answers.judge(
            answer,
            attempt=1,
            now_ms=self._clock.now_ms(),
            json=wants_json(crawl, target.url),
        )
        match verdict:
            case answers.Redirect(location=location):
                return _Onward(location=location)
            case answers.Retry(reason=reason, error=error):
                return _NoPage(error, reason)
            case answers.End(reason=reason, error=error):
                why = error or f"{reason.short or reason}: HTTP {answer.status}"
                return _NoPage(why, reason)
            case answers.Read():
                return await self._read(crawl, target, answer, verdict)

    async def _read(
        self, crawl: Crawl, target: Target, answer: Response, verdict: answers.Read
    ) -> PageReading | _Onward | _NoPage:
        now_ms = self._clock.now_ms()
        host = host_of(target.url)
        job = job_of(
            crawl,
            target.url,
            answer,
            now_ms,
            html=True,
            agent=identity_of(crawl, host, self._settings.fetching.user_agent).token,
            links_max=self._settings.worker.links_per_page_max,
        )
        read = await self._reader.read(job, host, now_ms + WAIT_MS)
        if isinstance(read, ReaderBusy):
            return _NoPage("too many pages are being read just now: try again")
        if isinstance(read, PageReading) and read.unfit is not None:
            return _NoPage(read.unfit, Reason.JSON_INVALID)
        if not isinstance(read, PageReading) or read.page is None:
            return _NoPage(f"it takes too much to be read: {read.why}", Reason.COSTLY)
        if read.json:
            return read
        kept_out = answers.page_or_block(verdict, answer, len(read.page.links))
        if isinstance(kept_out, answers.End):
            return _NoPage(f"it keeps crawlers out: {kept_out.error}", kept_out.reason)
        refresh = read.page.refresh
        return read if refresh is None else _Onward(location=refresh)

    # --- links ------------------------------------------------------------------------------------

    async def _judged(
        self, crawl: Crawl, target: Target, page: Page, robots: Robots | None, found: SeedPreview
    ) -> SeedPreview:
        counts: Counter[str] = Counter()
        shown: list[JudgedLink] = []
        for place, url in enumerate(page.links):
            if place % LINKS_AT_ONCE == LINKS_AT_ONCE - 1:
                await asyncio.sleep(0)
            link = self._judge(crawl, url, target, robots)
            counts[link.refused or TAKEN] += 1
            if len(shown) < LINKS_SHOWN:
                shown.append(link)
        for refusal, number in (
            (Refusal.INVALID, page.links_invalid),
            (Refusal.NOFOLLOW, page.links_nofollow),
            (Refusal.CUT, page.links_cut),
        ):
            if number:
                counts[refusal] += number
        return replace(
            found,
            title=page.title,
            counts=dict(counts.most_common()),
            links=tuple(shown),
            more=len(page.links) - len(shown),
        )

    def _judge(self, crawl: Crawl, url: str, page: Target, robots: Robots | None) -> JudgedLink:
        admitted: Target | Refusal = Refusal.UNFOLLOWED
        if combined_rule(crawl.rules, page.url).follow is not False:
            admitted = admit_link(crawl, url, page, self._settings.bounds)
        if isinstance(admitted, Refusal):
            rule = refusal_rule(crawl, url, page, admitted, self._settings)
            return JudgedLink(url=url, refused=admitted, rule=rule)
        if (reason := admit_name(crawl, url)) is not None:
            rule = f"its name says that it is no page ({url.rpartition('/')[2]})"
            return JudgedLink(url=url, refused=reason, rule=rule)
        if robots is not None and host_of(url) == host_of(page.url):
            token = identity_of(crawl, host_of(url), self._settings.fetching.user_agent).token
            decided = robots.decide(token, url)
            if not decided.allowed:
                rule = f"robots.txt, {decided.why}"
                return JudgedLink(url=url, refused=Reason.ROBOTS, rule=rule)
        closed = never_requested_reason(url, self._settings.fetching.allowed, origins_of(crawl))
        if closed is not None:
            return JudgedLink(url=url, refused=Reason.ADDRESS, rule=closed)
        rules = (f"rules[{place}]: {words}" for place, words in rules_words(crawl.rules, url))
        rule = "; ".join((scope_rule(crawl, url, page.url), *rules))
        return JudgedLink(url=url, refused=None, rule=rule)


def refusal_rule(crawl: Crawl, url: str, page: Target, refusal: Refusal, settings: Settings) -> str:
    match refusal:
        case Refusal.SCOPE:
            return scope_rule(crawl, url, page.url)
        case Refusal.EXCLUDE:
            return f"scope.exclude: {first_match(crawl.exclude, url)} is found in it"
        case Refusal.INCLUDE:
            return "scope.include: none of its patterns is found in it"
        case Refusal.DEPTH:
            said = combined_rule(crawl.rules, url)
            if said.depth_max is None:
                return f"limits.depth = {depth_limit(crawl, said)}"
            return f"rules[{deciding(crawl.rules, url)['depth_max']}]: depth {said.depth_max}"
        case _:
            return trap_rule(refusal, settings.bounds) or refusal.means
