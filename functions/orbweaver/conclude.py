"""What an answer means for its pack: a record, links, another attempt, a rest for the host.

Decided in `core/answer.py` (what an answer is), `core/page.py` (what a page says) and
`core/admission.py` (whether a link belongs); brought together and noted in the pack's draft here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from orbweaver.core import answer as answers
from orbweaver.core.admission import admit_link, admit_redirect
from orbweaver.core.exchange import Response
from orbweaver.core.message import next_attempt
from orbweaver.core.outcome import Outcome, Reason, Refusal
from orbweaver.core.page import parse
from orbweaver.core.politeness import block_until_ms
from orbweaver.core.record import page_record
from orbweaver.core.retry import backoff_s
from orbweaver.core.url import canonicalize, host_of

if TYPE_CHECKING:
    from random import Random

    from orbweaver.core.answer import Retry
    from orbweaver.core.crawl import Crawl
    from orbweaver.core.exchange import Failure
    from orbweaver.core.journal import Draft
    from orbweaver.core.message import Target
    from orbweaver.core.page import Page
    from orbweaver.ports import Clock, Hosts
    from orbweaver.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One pack's stay: its crawl, what it has come to, and when asking must be over."""

    crawl: Crawl
    draft: Draft
    until_ms: int


class Concluder:
    """Notes in drafts what answers come to; blocks hosts that ask for it."""

    def __init__(self, *, hosts: Hosts, clock: Clock, random: Random, settings: Settings) -> None:
        """Take the ports and limits."""
        self._hosts = hosts
        self._clock = clock
        self._random = random
        self._settings = settings

    async def conclude(
        self, visit: Visit, target: Target, answer: Response | Failure, at_ms: int
    ) -> None:
        """Note what the answer to a request made at `at_ms` comes to."""
        host = host_of(target.url)
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
        visit.draft.again(next_attempt(target), delay_s, why="retries")

    async def _block(self, host: str, retry: Retry, now_ms: int) -> None:
        state = await self._hosts.look(host)
        until_ms, strikes = block_until_ms(state, now_ms, retry.retry_after_s, self._random)
        await self._hosts.block(host, until_ms, strikes, now_ms)
