"""Turn a response into a result: a record, links or another attempt.

It combines the verdict on a response (`fetching/response_verdict.py`) and the content of a page
(`worker/page_reading.py`). It also decides which links belong to the crawl
(`frontier/admission.py`).
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from orbweaver.fetching import response_verdict as answers
from orbweaver.fetching.conditional_get import complete_unchanged, condition_of
from orbweaver.fetching.response_verdict import Retry, Verdict
from orbweaver.frontier.admission import (
    LIFTABLE,
    admit_link,
    in_scope,
    link_target,
    scope_prefixes,
)
from orbweaver.frontier.body_file import Kept, with_screenshot
from orbweaver.frontier.pack_result import SAMPLES_MAX, FoundLinks, PageResult, Returning
from orbweaver.frontier.stored_content import redacted
from orbweaver.model.api_source import api_of
from orbweaver.model.crawl_settings import Bodies
from orbweaver.model.host_access import longest_s, retries_of
from orbweaver.model.http_exchange import Failure, Response
from orbweaver.model.outcome import Outcome, Reason, Refusal
from orbweaver.model.page_record import PageRecord, with_items
from orbweaver.model.render_rules import RenderWhy, renders
from orbweaver.model.target import Target, TargetKind, next_attempt
from orbweaver.model.turns import slices, turn_after
from orbweaver.model.url import Bounds, host_of
from orbweaver.model.url_rules import combined_rule
from orbweaver.model.user_agent import identity_of
from orbweaver.parsing.page import Page
from orbweaver.parsing.text_digest import Repeats
from orbweaver.politeness.host_health import HostHealth
from orbweaver.politeness.pacer import Turn
from orbweaver.worker.kind_learning import KindLearning
from orbweaver.worker.pack_context import PackContext, page_record
from orbweaver.worker.page_links import with_page_links
from orbweaver.worker.page_outcome import Answered, UrlEnd, outcome_of
from orbweaver.worker.page_reading import Costly, PageReading, Read, ReaderBusy, job_of, wants_json
from orbweaver.worker.shutdown import to_its_end
from orbweaver.worker.sitemap_handling import Sitemaps

if TYPE_CHECKING:
    from orbweaver.model.crawl import Crawl
    from orbweaver.worker.page_rendering import PageRendering
    from orbweaver.worker.ports import WorkerPorts
    from orbweaver.worker.render_lane import RenderLane
    from orbweaver.worker.sessions import Sessions

# Delay in seconds after which a page is requested again if the reader or renderer is busy.
READER_BUSY_S = RENDERER_BUSY_S = 5.0


class ResponseHandler:
    """Turns responses into results. Blocks hosts that demand a backoff."""

    def __init__(
        self,
        ports: WorkerPorts,
        *,
        health: HostHealth,
        sitemaps: Sitemaps,
        kinds: KindLearning,
        open_rendering: Callable[[], PageRendering | None],
        open_sessions: Callable[[], Sessions],
        render_lane: RenderLane | None = None,
    ) -> None:
        self._reader = ports.reader
        self._rendering = cache(open_rendering)
        self._sessions = open_sessions
        if (
            ports.settings.function.browser
        ):  # this worker renders most pages, so it does not wait for one
            self._rendering()
        self._render_lane = render_lane
        self._kinds = kinds
        self._sitemaps = sitemaps
        self._clock = ports.clock
        self._settings = ports.settings
        self._bounds = ports.settings.bounds
        self._health = health
        self._repeats = Repeats()

    async def handle(
        self,
        context: PackContext,
        target: Target,
        answer: Response | Failure,
        at_ms: int,
        turn: Turn,
    ) -> PageResult:
        """Turn a response into a result. `at_ms` is the time of the request, `turn` its slot."""
        host = host_of(target.url)
        before = context.before.get(target.url)
        verdict = answers.judge(
            answer,
            attempt=target.attempt,
            now_ms=self._clock.now_ms(),
            conditional=condition_of(context.crawl, target, before) is not None,
            any_type=target.kind is TargetKind.SITEMAP or target.api is not None,
            json=wants_json(context.crawl, target.url),
            others_kept=context.crawl.bodies is Bodies.ALL,
            status_only=context.crawl.status_only,
            retries=retries_of(context.crawl, target.url),
        )
        if isinstance(verdict, answers.Retry) and verdict.block:
            # The block comes first and is never interrupted: other workers need it even if this
            # worker ends.
            await to_its_end(self._health.back_off(host, verdict.retry_after_s, at_ms))
        given: Answered | PageResult = Answered(answer, verdict)
        if isinstance(answer, Response) and _is_to_be_read(verdict, target, answer):
            given = await self._given(context, target, verdict, answer, at_ms)
        if isinstance(given, PageResult):
            await self._note(target, answer, verdict, turn)
            return given
        await self._note(target, given.answer, given.verdict, turn)
        if context.crawl.auth:
            judged = await self._sessions().judge(context.crawl, target, given, at_ms)
            if isinstance(judged, PageResult):
                return judged
            given = judged
        return await self._result(context, target, given, at_ms)

    async def _result(
        self, context: PackContext, target: Target, given: Answered, at_ms: int
    ) -> PageResult:
        repeated = self._is_repeated(context, target, given)
        match outcome_of(context.crawl, target, given, repeated=repeated, bounds=self._bounds):
            case Returning() as again:
                return PageResult(end=again)
            case answers.Retry() as retry:
                again = await self._retry(target, retry, given.answer)
                now_ms = self._clock.now_ms()
                if not _is_too_late(context.crawl, again, now_ms):
                    at_ms = context.crawl.returns_at_ms(now_ms + round(again.delay_s * 1000))
                    return PageResult(end=replace(again, delay_s=(at_ms - now_ms) / 1000))
                end = answers.End(outcome=Outcome.FAILED, reason=retry.reason, error=retry.error)
                return await self._end(context, target, UrlEnd(end=end), given, at_ms)
            case answers.Read() as read:
                return await self._sitemaps.read(context, target, read, given.answer, at_ms)
            case UrlEnd() as ended:
                ended = _with_next_page(context, target, ended, given)
                return await self._end(context, target, ended, given, at_ms)

    def _is_repeated(self, context: PackContext, target: Target, given: Answered) -> bool:
        """Count the body of a page with links. Return True if too many pages have this body."""
        page, verdict = given.page, given.verdict
        if page is None or not page.links or not isinstance(verdict, answers.Read):
            return False
        return self._repeats.beyond(context.crawl.id, host_of(target.url), verdict.body)

    async def _given(
        self, context: PackContext, target: Target, verdict: Verdict, answer: Response, at_ms: int
    ) -> Answered | PageResult:
        """Read a response and run its scripts, or return a result that requests it again."""
        read = await self._make_reading(context, target, verdict, answer, at_ms)
        if isinstance(read, ReaderBusy):
            return PageResult(end=Returning(target=target, delay_s=READER_BUSY_S))
        verdict, reading = _as_read(verdict, answer, read)
        given = Answered(answer, verdict, reading)
        page = given.page
        # JSON has no scripts.
        unrendered = page is None or page.refresh is not None or given.is_json
        if page is None or unrendered or not isinstance(verdict, answers.Read):
            return given
        if self._render_lane is not None and renders(context.crawl):
            sent = await self._render_lane.route_after_fetch(context.crawl, target, page, answer)
            return sent if isinstance(sent, PageResult) else given._replace(why=sent.why)
        rendering = self._rendering() if renders(context.crawl) else None
        if rendering is None:
            return given
        waiting = asyncio.timeout(rendering.wait_s(context))
        try:
            async with waiting:
                return await self._as_rendered(rendering, context, target, given, at_ms, waiting)
        except TimeoutError:
            if not waiting.expired():
                raise
        return _busy(target)

    async def _as_rendered(
        self,
        rendering: PageRendering,
        context: PackContext,
        target: Target,
        given: Answered,
        at_ms: int,
        waiting: asyncio.Timeout,
    ) -> Answered | PageResult:
        """Run the scripts of a page, and return the rendered page if it gained content.

        Pages that are not chosen for rendering are returned as `given`. `waiting` limits the time
        before rendering starts.
        """
        match given:
            case Answered(
                answer=Response() as fetched,
                verdict=answers.Read() as verdict,
                reading=PageReading(page=Page() as page) as reading,
            ):
                pass
            case _:
                return given
        async with rendering.chosen(context.crawl, target, page, fetched) as choice:
            waiting.reschedule(None)
            if not choice.render:
                return given._replace(why=choice.why)
            shown = await rendering.render(context, target, fetched)
            if shown is None:  # other pages used up the time
                return _busy(target)
            answer, counts = shown
            shown_s = rendering.page_s_max
            made = await self._read_again(context, target, verdict, answer, at_ms, shown_s)
            if made is None or made.reading is None:
                return given._replace(counts={**counts, **choice.fail()}, why=RenderWhy.FAILED)
            gained = True
            if choice.compared:
                both = ((fetched, reading), (answer, made.reading))
                gained = rendering.has_gained(context, target, *both)
                counts = {**counts, "render.compared": 1, **choice.learn(gained=gained)}
            # The rendered version of a page that looked empty without scripts is kept in any case.
            kept = made if gained or choice.marked else given
            return kept._replace(
                counts=counts, why=choice.why if kept is made else RenderWhy.NO_GAIN
            )

    async def _read_again(
        self,
        context: PackContext,
        target: Target,
        verdict: answers.Read,
        answer: Response,
        at_ms: int,
        shown_s: float,
    ) -> Answered | None:
        """Read a rendered page. Return None if its scripts did not run or reading failed."""
        if not answer.rendered:
            return None
        verdict = replace(verdict, body=answer.body or b"")
        read_of = replace(answer, screenshot=None)
        read = await self._make_reading(context, target, verdict, read_of, at_ms, shown_s)
        if not isinstance(read, PageReading):
            return None
        return Answered(answer, answers.page_or_block(verdict, answer, _links(read)), read)

    async def _make_reading(
        self,
        context: PackContext,
        target: Target,
        verdict: Verdict,
        answer: Response,
        at_ms: int,
        later_s: float = 0.0,
    ) -> Read:
        """Read a response. `later_s` extends the time by which reading must start."""
        host, settings = host_of(target.url), self._settings
        job = job_of(
            context.crawl,
            target.url,
            answers.bare_of_cookies(answer, stored=not context.crawl.cookies),
            at_ms,
            html=isinstance(verdict, answers.Read),
            agent=identity_of(context.crawl, host, settings.fetching.user_agent).token,
            links_max=settings.worker.links_per_page_max,
            digested=self._kinds.wants_digest(context.crawl, target.url),
            apart=context.suspected,
            api=api_of(context.crawl.apis, target.api),
            page=target.page,
        )
        request_s = longest_s(context.crawl, settings.fetching.fetch_total_s)
        until_ms = context.until_ms + round((request_s + later_s) * 1000)
        return await self._reader.read(job, host, until_ms)

    async def _end(
        self, context: PackContext, target: Target, ended: UrlEnd, given: Answered, at_ms: int
    ) -> PageResult:
        """Record a URL that has ended, and decide on the links of its page."""
        found, page = ended.found, given.page
        if ended.follows and page is not None:
            onward = [one for part in found for one in part.admitted]
            found = (*found, await follow(context, target, page, self._bounds, onward))
        record, kept = _recorded(context, target, ended.end, given, at_ms, found)
        digest = None if given.reading is None else given.reading.digest
        await turn_after(() if page is None else page.links)
        self._kinds.learn(context.crawl, record, digest)
        return context.ended(target, record, kept, found, given.counts)

    async def _retry(self, target: Target, retry: Retry, answer: Response | Failure) -> Returning:
        host = host_of(target.url)
        base_s = self._settings.fetching.retry_base_s
        delay_s = self._health.backoff_s(host, retry.reason, target.attempt, base_s)
        blocked_s = await self._health.blocked_s(host)
        delay_s = blocked_s if retry.block else max(delay_s, blocked_s)
        again = next_attempt(target, answers.failure_of(answer))
        return Returning(target=again, delay_s=delay_s, why="retries")

    async def _note(
        self, target: Target, answer: Response | Failure, verdict: Verdict, turn: Turn
    ) -> None:
        """Record in the host's health: failures and block pages, or the recovery of the host."""
        host = host_of(target.url)
        if target.attempt == 1:
            self._health.tried(host, failed=isinstance(verdict, answers.Retry))
        well = isinstance(answer, Response) and answer.status < answers.CLIENT_ERROR_MIN
        silent = isinstance(answer, Failure)
        self._health.note_latency(host, answer.latency_ms, well=well, silent=silent)
        if isinstance(answer, Failure):
            if answer.reason.silence:
                await self._health.note_failure(host, probe=turn.probe)
        elif isinstance(verdict, answers.End) and verdict.reason is Reason.BLOCKED:
            await self._health.note_failure(host, probe=turn.probe)
        else:
            await self._health.note_answer(host, troubled=turn.troubled)


def _with_next_page(context: PackContext, target: Target, ended: UrlEnd, given: Answered) -> UrlEnd:
    """Add the next page of an API to the links of a page of it."""
    api, facts = api_of(context.crawl.apis, target.api), given.reading and given.reading.paging
    if api is None or not facts or ended.end.outcome is Outcome.FAILED:
        return ended
    # Only crawls of APIs need this import.
    from orbweaver.frontier.api_paging import step_of

    step = step_of(context.crawl, api, target, facts, given.headers, context.seen)
    if step.problem is not None:
        # The request after the correction adds the items and links, so each counts once.
        end = answers.End(outcome=Outcome.FAILED, reason=Reason.PAGING, error=step.problem)
        return UrlEnd(end=end)
    return replace(ended, found=(*ended.found, step.found))


def _links(read: PageReading) -> int:
    return 0 if read.page is None else len(read.page.links)


def _is_to_be_read(verdict: Verdict, target: Target, answer: Response) -> bool:
    if answer.body is None:
        return False
    if isinstance(verdict, answers.Read):
        return target.kind is TargetKind.PAGE
    return isinstance(verdict, answers.End) and verdict.outcome is Outcome.FETCHED


def _is_too_late(crawl: Crawl, again: Returning, now_ms: int) -> bool:
    """Return whether a retry would begin after the end of a crawl that only needs the status."""
    return crawl.status_only and now_ms + again.delay_s * 1000 > crawl.deadline_ms


def _busy(target: Target) -> PageResult:
    end = Returning(target=target, delay_s=RENDERER_BUSY_S)
    return PageResult(end=end, counts={"render.busy": 1})


def _as_read(
    verdict: Verdict, answer: Response, read: PageReading | Costly
) -> tuple[Verdict, PageReading | None]:
    if isinstance(read, Costly):
        end = answers.End(outcome=Outcome.FAILED, reason=Reason.COSTLY, error=read.why)
        return end, None
    if read.unfit is not None:
        return answers.End(
            outcome=Outcome.FAILED, reason=Reason.JSON_INVALID, error=read.unfit
        ), None
    if isinstance(verdict, answers.Read) and read.page is not None and not read.json:
        verdict = answers.page_or_block(verdict, answer, len(read.page.links))
    return verdict, read


def _recorded(
    context: PackContext,
    target: Target,
    end: answers.End,
    given: Answered,
    at_ms: int,
    found: Sequence[FoundLinks],
) -> tuple[PageRecord, Kept | None]:
    answer, reading, why = given.answer, given.reading, given.why
    if end.outcome in (Outcome.SKIPPED, Outcome.FAILED):
        # No content is recorded, because it may be incomplete, or not the site's own.
        answer, reading, why = answers.bare(answer), None, None
    crawl, before = context.crawl, context.before.get(target.url)
    page, cut = (None, ()) if reading is None else (reading.page, reading.cut)
    record = page_record(
        crawl.id,
        target,
        end,
        at_ms,
        answer=answer,
        page=page,
        cut=cut,
        render_why=why,
        body_sha256=None if reading is None or reading.kept is None else reading.kept.sha256,
    )
    if crawl.redacted:
        record = redacted(record, crawl.redacted)
    kept: Kept | None = None
    if reading is not None and end.outcome is Outcome.FETCHED:
        record = with_items(record, reading.items)
        picture = answer.screenshot if isinstance(answer, Response) else None
        kept = with_screenshot(reading.kept, target.url, at_ms, picture)
        kept = with_page_links(crawl, kept, record, page, found)
    return record if before is None else complete_unchanged(record, before), kept


async def follow(
    context: PackContext, target: Target, page: Page, bounds: Bounds, onward: Sequence[Target]
) -> FoundLinks:
    """Decide on the links of a page. `onward` are URLs that the page names as its replacement."""
    if combined_rule(context.crawl.rules, target.url).follow is False:
        judged = FoundLinks(refused=((Refusal.UNFOLLOWED, len(page.links), page.links),))
    else:
        judged = await _judged(context, target, page, bounds, {one.url for one in onward})
    # A crawl ends if links on its seed are not followed, so this has a separate refusal.
    at_seed = target.depth == 0 and not page.links
    withdrawn = Refusal.SEED_NOFOLLOW if at_seed else Refusal.NOFOLLOW
    whole = (
        (Refusal.INVALID, page.links_invalid, ()),
        (withdrawn, page.links_nofollow, page.withdrawn),
        (Refusal.CUT, page.links_cut, ()),
    )
    return replace(judged, refused=(*whole, *judged.refused))


async def _judged(
    context: PackContext, target: Target, page: Page, bounds: Bounds, onward: AbstractSet[str]
) -> FoundLinks:
    # Most links of a page are also on other pages, and were decided on there.
    admitted: list[Target] = []
    refused: defaultdict[Refusal, list[str]] = defaultdict(list)
    left: list[Target] = []
    # A page can have thousands of long links, and a crawl many patterns. So links are checked in
    # slices, and other tasks run in between.
    inside = scope_prefixes(context.crawl, target.url, target.root)
    async for links in slices(page.links):
        # A claimed link is not refused, even if it is too deep on this page.
        seen = context.seen(links)
        for url in links:
            if url in seen and (
                url.startswith(inside) or in_scope(context.crawl, url, target.url, target.root)
            ):
                continue
            if url in onward or context.linked(url, target.depth + 1):
                continue
            one = admit_link(context.crawl, url, target, bounds)
            if isinstance(one, Target):
                admitted.append(one)
                continue
            refused[one].append(url)
            if one in LIFTABLE:
                left.append(link_target(target, url, target.depth + 1))
    # The table of links needs the reason of each link. Counters need only examples.
    named = None if context.crawl.links else SAMPLES_MAX
    return FoundLinks(
        admitted=tuple(admitted),
        refused=tuple((why, len(urls), tuple(urls[:named])) for why, urls in refused.items()),
        left=tuple(left),
    )
