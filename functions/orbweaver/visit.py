"""Asking hosts for pages: robots, slots, requests, answers; one `Visitor` a container.

For every host of a pack, in this order: is it blocked, what does robots.txt say, which slots does
it give. A URL without a slot inside this invocation comes back later. What an answer means is
decided in `core/answer.py`; whether a link belongs, in `core/admission.py`.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, assert_never
from weakref import WeakValueDictionary

from orbweaver.core import answer as answers
from orbweaver.core.admission import admit_link, admit_redirect
from orbweaver.core.exchange import Request, Response
from orbweaver.core.outcome import Outcome, Reason, Refusal
from orbweaver.core.page import parse
from orbweaver.core.politeness import block_until_ms, delay_of
from orbweaver.core.record import page_record
from orbweaver.core.retry import ATTEMPTS_MAX, backoff_s
from orbweaver.core.url import canonicalize, host_of
from orbweaver.pace import Pacer
from orbweaver.robots import Deferred, RobotsKeeper, Unreachable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from orbweaver.core.answer import Retry
    from orbweaver.core.crawl import Crawl
    from orbweaver.core.exchange import Failure
    from orbweaver.core.journal import Draft
    from orbweaver.core.message import Target
    from orbweaver.core.page import Page
    from orbweaver.core.robots import Robots
    from orbweaver.ports import Clock, Fetcher, Hosts
    from orbweaver.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One pack's stay: its crawl, what it has come to, and when asking must be over."""

    crawl: Crawl
    draft: Draft
    until_ms: int


class Visitor:
    """Asks for the URLs of packs, many packs and hosts at once."""

    def __init__(
        self, *, fetcher: Fetcher, hosts: Hosts, clock: Clock, random: Random, settings: Settings
    ) -> None:
        """Take the ports and limits; queues for a host are made when it is first asked."""
        self._fetcher = fetcher
        self._hosts = hosts
        self._clock = clock
        self._random = random
        self._settings = settings
        self._robots = RobotsKeeper(fetcher=fetcher, hosts=hosts, clock=clock, settings=settings)
        # As long as a host is being asked, and no longer.
        self._asking: WeakValueDictionary[tuple[str, int], asyncio.Semaphore] = (
            WeakValueDictionary()
        )
        self._everywhere = asyncio.Semaphore(settings.fetch_concurrency)

    async def visit(self, visit: Visit, targets: Sequence[Target]) -> None:
        """Bring every target to an outcome, or to coming back; all hosts at once."""
        hosts: defaultdict[str, list[Target]] = defaultdict(list)
        for target in targets:
            hosts[host_of(target.url)].append(target)
        async with asyncio.TaskGroup() as group:
            for host, queue in hosts.items():
                group.create_task(self._visit_host(visit, host, queue))

    async def _visit_host(self, visit: Visit, host: str, targets: list[Target]) -> None:
        robots: Robots | None = None
        if visit.crawl.obey_robots:
            match await self._robots.of(host, visit.crawl, visit.until_ms):
                case Deferred() as deferred:
                    self._defer(visit, targets, deferred.return_at_ms)
                    return
                case Unreachable() as unreachable:
                    for target in targets:
                        self._retry_robots(visit, target, unreachable)
                    return
                case rules:
                    robots = rules
        allowed = [target for target in targets if self._allowed(visit, target, robots)]
        agent = self._agent(visit.crawl)
        asked_s = robots.crawl_delay(agent) if robots else None
        await self._walk(visit, host, allowed, delay_of(visit.crawl.delay_ms, asked_s))

    async def _walk(self, visit: Visit, host: str, targets: list[Target], delay_ms: int) -> None:
        """Ask for one host's targets in turn, each in its slot."""
        pacer = Pacer(
            hosts=self._hosts,
            clock=self._clock,
            host=host,
            delay_ms=delay_ms,
            until_ms=visit.until_ms,
        )
        asking = self._semaphore(host, visit.crawl.concurrency)
        async with asyncio.TaskGroup() as group:
            for place, target in enumerate(targets):
                await asking.acquire()
                try:
                    return_at_ms = await pacer.take(len(targets) - place)
                except BaseException:
                    asking.release()
                    raise
                if return_at_ms is not None:
                    asking.release()
                    self._defer(visit, targets[place:], return_at_ms)
                    return
                group.create_task(self._ask(visit, target, pacer, pacer.slot_ms, asking))

    async def _ask(
        self, visit: Visit, target: Target, pacer: Pacer, slot_ms: int, asking: asyncio.Semaphore
    ) -> None:
        try:
            async with self._everywhere:
                if not pacer.on_time(slot_ms):  # held up between the slot and here
                    self._defer(visit, [target], slot_ms)
                    return
                at_ms = self._clock.now_ms()
                answer = await self._fetcher.fetch(self._request(visit.crawl, target.url))
            await self._conclude(visit, host_of(target.url), target, answer, at_ms)
        finally:
            asking.release()

    async def _conclude(
        self, visit: Visit, host: str, target: Target, answer: Response | Failure, at_ms: int
    ) -> None:
        now_ms = self._clock.now_ms()
        verdict = answers.judge(answer, attempt=target.attempt, now_ms=now_ms)
        if isinstance(verdict, answers.Retry):
            if verdict.block:
                await self._block(host, verdict, now_ms)
            ended = answers.exhausted(verdict, target.attempt)
            if ended is None:
                await self._retry(visit, host, target, verdict)
                return
            verdict = ended
        page: Page | None = None
        match verdict:
            case answers.Read(body=body):
                page = self._parse(target, body, answer)
                self._follow(visit, target, page)
                end = answers.End(outcome=Outcome.FETCHED, reason=verdict.reason)
            case answers.Lead(location=location):
                end = self._redirect(visit, target, location)
            case answers.End():
                end = verdict
            case _:
                assert_never(verdict)
        visit.draft.end(page_record(visit.crawl.id, target, end, at_ms, answer=answer, page=page))

    def _parse(self, target: Target, body: bytes, answer: Response | Failure) -> Page:
        headers = answer.headers if isinstance(answer, Response) else {}
        return parse(
            body,
            target.url,
            headers.get("content-type"),
            robots_tag=headers.get("x-robots-tag"),
            links_per_page_max=self._settings.links_per_page_max,
        )

    def _follow(self, visit: Visit, target: Target, page: Page) -> None:
        draft = visit.draft
        draft.refuse(Refusal.INVALID, page.links_invalid)
        draft.refuse(Refusal.NOFOLLOW, page.links_nofollow)
        draft.refuse(Refusal.CUT, page.links_cut)
        for url in page.links:
            admitted = admit_link(visit.crawl, url, target)
            if isinstance(admitted, Refusal):
                draft.refuse(admitted)
            else:
                draft.link(admitted)

    def _redirect(self, visit: Visit, target: Target, location: str) -> answers.End:
        try:
            url = canonicalize(location, target.url)
        except ValueError as error:
            return answers.End(
                outcome=Outcome.FAILED, reason=Reason.REDIRECT_INVALID, error=str(error)
            )
        admitted = admit_redirect(visit.crawl, url, target)
        if admitted is Refusal.REDIRECTS:
            return answers.End(outcome=Outcome.FAILED, reason=Reason.REDIRECT_LIMIT, error=url)
        if isinstance(admitted, Refusal):
            visit.draft.refuse(admitted)
        elif url != target.url:
            visit.draft.link(admitted)
        return answers.End(outcome=Outcome.REDIRECTED, reason=Reason.REDIRECT, error=url)

    async def _retry(self, visit: Visit, host: str, target: Target, retry: Retry) -> None:
        delay_s = backoff_s(target.attempt, self._random)
        if retry.block:
            state = await self._hosts.look(host)
            delay_s = max(0.0, state.blocked_until_ms - self._clock.now_ms()) / 1000
        visit.draft.again(_next_attempt(target), delay_s, why="retries")

    def _retry_robots(self, visit: Visit, target: Target, unreachable: Unreachable) -> None:
        if target.attempt >= ATTEMPTS_MAX:
            end = answers.End(
                outcome=Outcome.SKIPPED,
                reason=Reason.ROBOTS_UNREACHABLE,
                error=f"robots.txt: {unreachable.detail}",
            )
            now_ms = self._clock.now_ms()
            visit.draft.end(page_record(visit.crawl.id, target, end, now_ms))
            return
        wait_s = (unreachable.return_at_ms - self._clock.now_ms()) / 1000
        delay_s = max(wait_s, 0) + backoff_s(target.attempt, self._random)
        visit.draft.again(_next_attempt(target), delay_s, why="retries")

    async def _block(self, host: str, retry: Retry, now_ms: int) -> None:
        state = await self._hosts.look(host)
        until_ms, strikes = block_until_ms(state, now_ms, retry.retry_after_s, self._random)
        await self._hosts.block(host, until_ms, strikes, now_ms)

    def _allowed(self, visit: Visit, target: Target, robots: Robots | None) -> bool:
        if robots is None or robots.allows(self._agent(visit.crawl), target.url):
            return True
        end = answers.End(outcome=Outcome.SKIPPED, reason=Reason.ROBOTS)
        visit.draft.end(page_record(visit.crawl.id, target, end, self._clock.now_ms()))
        return False

    def _defer(self, visit: Visit, targets: Sequence[Target], return_at_ms: int) -> None:
        delay_s = max(0, return_at_ms - self._clock.now_ms()) / 1000
        for target in targets:
            visit.draft.again(target, delay_s, why="deferrals")

    def _request(self, crawl: Crawl, url: str) -> Request:
        return Request(
            url=url,
            user_agent=self._agent(crawl),
            accept=answers.HTML_TYPES,
            body_bytes_max=self._settings.body_bytes_max,
            total_s=self._settings.fetch_total_s,
        )

    def _agent(self, crawl: Crawl) -> str:
        return crawl.user_agent or self._settings.user_agent

    def _semaphore(self, host: str, width: int) -> asyncio.Semaphore:
        return self._asking.setdefault((host, width), asyncio.Semaphore(width))


def _next_attempt(target: Target) -> Target:
    return replace(target, attempt=target.attempt + 1)
