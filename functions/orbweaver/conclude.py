"""What an answer means for its pack: a record, links, another attempt, a rest for the host.

Decided in `core/answer.py` (what an answer is), `core/page.py` (what a page says) and
`core/admission.py` (whether a link belongs); brought together and noted in the pack's draft here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, assert_never

from orbweaver.core import answer as answers
from orbweaver.core.admission import admit_link, admit_redirect, in_scope, widens
from orbweaver.core.crawl import Bodies
from orbweaver.core.exchange import Failure, Response
from orbweaver.core.harvest import harvest
from orbweaver.core.identity import identity_of
from orbweaver.core.missing import is_missing
from orbweaver.core.named import NO_ORIGINS
from orbweaver.core.outcome import Outcome, Reason, Refusal
from orbweaver.core.page import parse
from orbweaver.core.record import page_record, with_items
from orbweaver.core.recrawl import condition_of, still
from orbweaver.core.repeats import Repeats
from orbweaver.core.retry import backoff_s
from orbweaver.core.rules import depth_limits, said_of, said_of_target
from orbweaver.core.segment import kept_of
from orbweaver.core.target import Kind, Target, next_attempt
from orbweaver.core.url import canonicalize, host_of
from orbweaver.health import SILENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from collections.abc import Set as AbstractSet
    from random import Random

    from orbweaver.core.answer import Retry, Verdict
    from orbweaver.core.crawl import Crawl
    from orbweaver.core.draft import Draft
    from orbweaver.core.extraction import Extractor
    from orbweaver.core.item import Item
    from orbweaver.core.page import Page
    from orbweaver.core.record import PageRecord
    from orbweaver.core.segment import Kept
    from orbweaver.health import Health
    from orbweaver.pace import Turn
    from orbweaver.ports import Clock
    from orbweaver.settings import Settings
    from orbweaver.sitemaps import Sitemaps
    from orbweaver.treasury import Purses


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One pack's stay: its crawl, what it has come to, and when asking must be over.

    `before` holds the records of earlier runs, by URL; `seen` says which URLs the crawl is known
    to have claimed.
    """

    crawl: Crawl
    draft: Draft
    until_ms: int
    purses: Purses
    before: Mapping[str, PageRecord] = field(default_factory=dict)
    seen: Callable[[Iterable[str]], AbstractSet[str]] = frozenset().intersection
    # The origins that a person named, where a stack dials what is not public.
    named: frozenset[str] = NO_ORIGINS

    def end(self, target: Target, record: PageRecord, kept: Kept | None = None) -> None:
        """Note how a target ended; a rule may say that no record of it is kept."""
        recorded = said_of_target(self.crawl, target).record is not False
        self.draft.end(record, recorded=recorded)
        if kept is not None:
            self.draft.keep(kept)


class Concluder:
    """Notes in drafts what answers come to; blocks hosts that ask for it."""

    def __init__(
        self,
        *,
        health: Health,
        sitemaps: Sitemaps,
        clock: Clock,
        random: Random,
        settings: Settings,
        extractors: Mapping[str, Extractor] | None = None,
    ) -> None:
        """Take the ports and limits, who reads sitemaps, and extractors of the user's own."""
        self._extractors = extractors
        self._sitemaps = sitemaps
        self._clock = clock
        self._random = random
        self._settings = settings
        self._bounds = settings.bounds
        self._health = health
        self._repeats = Repeats()

    async def conclude(
        self,
        visit: Visit,
        target: Target,
        answer: Response | Failure,
        at_ms: int,
        turn: Turn,
    ) -> None:
        """Note what the answer to a request comes to, made at `at_ms`, in its turn."""
        host = host_of(target.url)
        now_ms = self._clock.now_ms()
        before = visit.before.get(target.url)
        verdict = answers.judge(
            answer,
            attempt=target.attempt,
            now_ms=now_ms,
            conditional=condition_of(visit.crawl, target, before) is not None,
            any_type=target.kind is Kind.SITEMAP,
            others_kept=visit.crawl.bodies is Bodies.ALL,
        )
        page: Page | None = None
        if isinstance(verdict, answers.Read) and target.kind is Kind.PAGE:
            page = self._parse(visit, target, verdict.body, answer)
            verdict = answers.unless_kept_out(verdict, answer, len(page.links))
        await self._note(host, answer, verdict, turn)
        if isinstance(verdict, answers.Retry):
            if verdict.block:
                await self._health.rebuffed(host, verdict.retry_after_s, at_ms)
            ended = answers.exhausted(verdict, target.attempt)
            if ended is None:
                await self._retry(visit, host, target, verdict)
                return
            verdict = ended
        match verdict:
            case answers.Read():
                if page is None:
                    await self._sitemaps.read(visit, target, verdict, answer, at_ms)
                    return
                end = self._read(visit, target, page, verdict)
            case answers.Lead(location=location):
                end = self._redirect(visit, target, location)
            case answers.End():
                end = verdict
            case _:
                assert_never(verdict)
        self._end(visit, target, end, answer, page, at_ms)

    def _end(
        self,
        visit: Visit,
        target: Target,
        end: answers.End,
        answer: Response | Failure,
        page: Page | None,
        at_ms: int,
    ) -> None:
        """Note how a URL ended, and what is stored of its page."""
        if end.outcome in (Outcome.SKIPPED, Outcome.FAILED):
            # What was looked at may not be the whole, and is nothing of the site's.
            answer, page = answers.bare(answer), None
        crawl, before = visit.crawl, visit.before.get(target.url)
        record = page_record(crawl.id, target, end, at_ms, answer=answer, page=page)
        if page is not None and crawl.items and end.outcome is Outcome.FETCHED:
            record = with_items(record, self._extracted(crawl, page, target.url))
        found = harvest(crawl, record, answer=answer, page=page)
        kept: Kept | None = None
        if isinstance(answer, Response):
            kept = kept_of(
                target.url, at_ms, answer=answer, body=found.body, document=found.document
            )
        record = found.record
        visit.end(target, record if before is None else still(record, before), kept)

    def _extracted(self, crawl: Crawl, page: Page, url: str) -> tuple[Item, ...] | None:
        # Most crawls have no items: what finds them is not for every cold start to import.
        from orbweaver.core.extraction import items_by, rules_for

        matching = rules_for(crawl.items, url)
        if not matching:
            return None
        return items_by(matching, page, url, tracking=crawl.stripped, custom=self._extractors)

    def _read(self, visit: Visit, target: Target, page: Page, read: answers.Read) -> answers.End:
        """Take over what a page says; also of one that leads on, so that nothing is lost."""
        end = self._onward(visit, target, page)
        host = host_of(target.url)
        if page.links and self._repeats.beyond(visit.crawl.id, host, read.body):
            visit.draft.refuse(Refusal.REPEATED, len(page.links), page.links)
            return end or answers.End(outcome=Outcome.FETCHED, reason=Reason.REPEATED)
        self._follow(visit, target, page)
        if end is not None:
            return end
        reason = Reason.SOFT_404 if is_missing(page) else read.reason
        return answers.End(
            outcome=Outcome.FETCHED, reason=Reason.NOINDEX if page.noindex else reason
        )

    def _onward(self, visit: Visit, target: Target, page: Page) -> answers.End | None:
        """End a page that wants another one to be taken, or none; None for most."""
        if page.refresh is not None:
            return self._redirect(visit, target, page.refresh, Reason.REFRESH)
        url = page.canonical
        if (
            visit.crawl.canonical_only
            and url is not None
            and url
            not in (
                target.url,
                target.referrer,  # which may have named this one in its turn
            )
        ):
            # A canonical URL never widens the scope.
            admitted = None
            if not widens(visit.crawl, url, target):
                admitted = admit_redirect(visit.crawl, url, target, self._bounds)
            if isinstance(admitted, Target):
                visit.draft.link(admitted)
                return answers.End(outcome=Outcome.SKIPPED, reason=Reason.CANONICAL, error=url)
        if visit.crawl.noindex_skipped and page.noindex:
            return answers.End(outcome=Outcome.SKIPPED, reason=Reason.NOINDEX)
        return None

    def _parse(self, visit: Visit, target: Target, body: bytes, answer: Response | Failure) -> Page:
        headers = answer.headers if isinstance(answer, Response) else {}
        return parse(
            body,
            target.url,
            headers.get("content-type"),
            robots_tag=headers.get("x-robots-tag"),
            refresh=headers.get("refresh"),
            links_per_page_max=self._settings.links_per_page_max,
            tracking=visit.crawl.stripped,
            agent=identity_of(visit.crawl, host_of(target.url), self._settings.user_agent).token,
        )

    def _follow(self, visit: Visit, target: Target, page: Page) -> None:
        crawl, draft = visit.crawl, visit.draft
        for refusal, count in (
            (Refusal.INVALID, page.links_invalid),
            (Refusal.NOFOLLOW, page.links_nofollow),
            (Refusal.CUT, page.links_cut),
        ):
            if count:
                draft.refuse(refusal, count)
        if said_of(crawl.rules, target.url).follow is False:
            draft.refuse(Refusal.UNFOLLOWED, len(page.links), page.links)
            return
        # Most links of a page are those of others, admitted then.
        goes_on = target.depth < depth_limits(crawl)[0]
        seen = visit.seen(page.links) if goes_on else ()
        for url in page.links:
            if goes_on and draft.links_to(url):
                continue
            if url in seen and in_scope(crawl, url, target.url, target.root):
                continue
            admitted = admit_link(crawl, url, target, self._bounds)
            if isinstance(admitted, Refusal):
                draft.refuse(admitted, urls=(url,))
            else:
                draft.link(admitted)

    def _redirect(
        self, visit: Visit, target: Target, location: str, reason: Reason = Reason.REDIRECT
    ) -> answers.End:
        try:
            url = canonicalize(location, target.url, tracking=visit.crawl.stripped)
        except ValueError as error:
            return answers.End(
                outcome=Outcome.FAILED, reason=Reason.REDIRECT_INVALID, error=str(error)
            )
        admitted = admit_redirect(visit.crawl, url, target, self._bounds)
        if admitted is Refusal.REDIRECTS:
            return answers.End(outcome=Outcome.FAILED, reason=Reason.REDIRECT_LIMIT, error=url)
        if isinstance(admitted, Refusal):
            visit.draft.refuse(admitted, urls=(url,))
        elif url != target.url:
            visit.draft.link(admitted)
            if widens(visit.crawl, url, target):
                reason = Reason.WIDENED
        return answers.End(outcome=Outcome.REDIRECTED, reason=reason, error=url)

    async def _retry(self, visit: Visit, host: str, target: Target, retry: Retry) -> None:
        delay_s = backoff_s(target.attempt, self._random, self._settings.retry_base_s)
        blocked_s = await self._health.blocked_s(host)
        delay_s = blocked_s if retry.block else max(delay_s, blocked_s)
        visit.draft.again(next_attempt(target), delay_s, why="retries")

    async def _note(
        self, host: str, answer: Response | Failure, verdict: Verdict, turn: Turn
    ) -> None:
        """Tell the host's health: silence and being kept out are trouble, an answer is none."""
        well = isinstance(answer, Response) and answer.status < answers.CLIENT_ERROR_MIN
        self._health.heard(host, answer.latency_ms, well=well)
        if isinstance(answer, Failure):
            if answer.reason in SILENCE:
                await self._health.suffered(host, probe=turn.probe)
        elif isinstance(verdict, answers.End) and verdict.reason is Reason.BLOCKED:
            await self._health.suffered(host, probe=turn.probe)
        elif turn.troubled:
            await self._health.answered(host)
