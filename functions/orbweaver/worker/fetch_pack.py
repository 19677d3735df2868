"""Asking hosts for pages: robots, slots, requests, answers; one `PackFetcher` a container.

For every host of a pack, in this order: is it blocked, what does robots.txt say, which slots does
it give. A URL without a slot inside this invocation comes back later. `worker/response_handling.py`
decides on answers. URLs that robots.txt forbids, or whose host is down, end without a request.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from orbweaver.budget.reservation import Room
from orbweaver.fetching.conditional_get import condition_of
from orbweaver.fetching.response_verdict import End
from orbweaver.model.backoff import backoff_s
from orbweaver.model.crawl import State
from orbweaver.model.crawl_rules import by_delay
from orbweaver.model.crawl_settings import Bodies
from orbweaver.model.errors import Transient
from orbweaver.model.http_exchange import Failure, Request, Response, received_of
from orbweaver.model.outcome import ANSWERED, Outcome, Reason, robots_attempts_max
from orbweaver.model.ports import Clock, Fetcher
from orbweaver.model.redacted_names import named_for
from orbweaver.model.settings import Settings
from orbweaver.model.target import Target, TargetKind, next_attempt
from orbweaver.model.url import host_of
from orbweaver.model.user_agent import Identity, identity_of
from orbweaver.parsing.sniffing import ANY_TYPE, HTML_TYPES
from orbweaver.politeness.host_health import HostHealth
from orbweaver.politeness.host_schedule import delay_of, is_down
from orbweaver.politeness.pacer import Pacer, Turn
from orbweaver.politeness.robots_cache import Deferred, RobotsKeeper, RobotsUnreachable
from orbweaver.politeness.robots_rules import UNDECIDED
from orbweaver.politeness.robots_txt import Robots
from orbweaver.worker.crawl_cache import RecentCrawls
from orbweaver.worker.ending import Ending
from orbweaver.worker.pack_context import PackContext, page_record
from orbweaver.worker.page_reading import PageReader
from orbweaver.worker.response_handling import ResponseHandler
from orbweaver.worker.sitemap_handling import SITEMAP_TYPES, SITEMAPS_AT_ONCE, Sitemaps

if TYPE_CHECKING:
    from random import Random

    from orbweaver.frontier.ports import History
    from orbweaver.politeness.ports import Hosts
    from orbweaver.worker.cookies import Cookies


_log = logging.getLogger(__name__)
_ALL_TYPES = HTML_TYPES | {ANY_TYPE}
# How long URLs wait for a table that does not answer.
TROUBLE_MS = 10_000
# How many URLs are judged before slots are asked for, where a verdict may take a millisecond.
JUDGED_AT_ONCE = 4


class PackFetcher:
    """Asks for the URLs of packs, many packs and hosts at once."""

    def __init__(  # noqa: PLR0913 - it stands in the middle of the path
        self,
        *,
        fetcher: Fetcher,
        reader: PageReader,
        hosts: Hosts,
        history: History,
        crawls: RecentCrawls,
        clock: Clock,
        random: Random,
        settings: Settings,
        ending: Ending | None = None,
    ) -> None:
        """Take the ports and limits; queues for a host are made when it is first asked."""
        self._ending = ending or Ending()
        self._history = history
        self._crawls = crawls
        self._fetcher = fetcher
        self._hosts = hosts
        self._clock = clock
        self._random = random
        self._settings = settings
        self._unasked = Unasked(clock=clock, random=random, settings=settings)
        self._sitemaps = Sitemaps(clock=clock, settings=settings)
        self._health = HostHealth(hosts=hosts, clock=clock, random=random)
        self._handler = ResponseHandler(
            health=self._health,
            reader=reader,
            sitemaps=self._sitemaps,
            clock=clock,
            random=random,
            settings=settings,
        )
        self._cookies: Cookies | None = None
        self._robots = RobotsKeeper(fetcher=fetcher, hosts=hosts, clock=clock, settings=settings)
        # As long as a host is being asked, and no longer.
        self._asking: WeakValueDictionary[tuple[str, int], asyncio.Semaphore] = (
            WeakValueDictionary()
        )
        self._everywhere = asyncio.Semaphore(settings.fetch_concurrency)
        self._large = asyncio.Semaphore(SITEMAPS_AT_ONCE)

    async def fetch(self, context: PackContext, targets: Sequence[Target]) -> None:
        """Bring every target to an outcome, or to coming back; all hosts at once."""
        waiting_s = max(0, context.until_ms - self._clock.now_ms()) / 1000
        visit_s = waiting_s + self._settings.fetch_total_s
        if not await context.reservations.admit(context.result, targets, visit_s):
            return
        priors = {target.url: target.prior for target in targets if target.prior is not None}
        if priors:
            context = replace(context, before=await self._history.before(priors))
        hosts: defaultdict[str, list[Target]] = defaultdict(list)
        for target in targets:
            if not await self._sitemaps.go_on(context, target):
                hosts[host_of(target.url)].append(target)
        async with asyncio.TaskGroup() as group:
            for host, queue in hosts.items():
                group.create_task(self._fetch_or_defer(context, host, queue))

    async def _fetch_or_defer(self, context: PackContext, host: str, targets: list[Target]) -> None:
        """Visit a host; while its item cannot be read or written, its URLs come back later.

        The other hosts of the pack go on, and what was answered stands. Of a
        worker that is told to end, all of them come back at once.
        """
        try:
            if context.crawl.cookies:
                await self._jars().look(context.crawl.id, f"{host}/")
            if await self._ending.cut_short(self._fetch_host(context, host, targets)):
                self._defer(context, _unended(context, targets), self._clock.now_ms())
        except* Transient as trouble:
            left = _unended(context, targets)
            told = {"host": host, "urls": len(left), "error": str(trouble.exceptions[0])}
            _log.warning("host.out_of_reach", extra=told)
            self._defer(context, left, self._clock.now_ms() + TROUBLE_MS)

    async def _fetch_host(self, context: PackContext, host: str, targets: list[Target]) -> None:
        state = await self._hosts.look(host)
        if is_down(state, self._clock.now_ms()):
            self._unasked.give_up(context, targets, state.failures)
            return
        robots: Robots | None = None
        if context.crawl.obey_robots:
            named = named_for(context.named, *targets)
            match await self._robots.of(host, context.crawl, context.until_ms, named=named):
                case Deferred() as deferred:
                    self._defer(context, targets, deferred.return_at_ms)
                    return
                case RobotsUnreachable() as unreachable:
                    for target in targets:
                        self._unasked.retry(context, target, unreachable)
                    return
                case rules:
                    robots = rules
        slow = robots is not None and robots.rules_of(self._identity(context, host).token).slow
        size = JUDGED_AT_ONCE if slow else len(targets)
        for first in range(0, len(targets), size):
            if first:
                await asyncio.sleep(0)  # what was judged may have held the event loop
            return_at_ms = await self._judge(context, host, targets[first : first + size], robots)
            if return_at_ms is not None:
                self._defer(context, targets[first + size :], return_at_ms)
                break
        if robots is not None:
            self._sitemaps.name(context, robots.sitemaps, targets, robots.sitemaps_cut)

    async def _judge(
        self, context: PackContext, host: str, targets: Sequence[Target], robots: Robots | None
    ) -> int | None:
        """Ask for those of one host's targets that may be asked for.

        When to come back, if there were not slots enough.
        """
        token = self._identity(context, host).token
        allowed = [
            target for target in targets if self._unasked.allowed(context, target, robots, token)
        ]
        asked_s = robots.crawl_delay(token) if robots else None
        pace_ms = self._health.pace_ms(host) // context.crawl.concurrency
        counted = await context.reservations.count(context.result, host, allowed)
        return_at_ms: int | None = None
        for least_ms, group in by_delay(context.crawl, counted):
            delay_ms = delay_of(least_ms, asked_s, pace_ms)
            return_at_ms = await self._walk(context, host, group, delay_ms) or return_at_ms
        return return_at_ms

    async def _walk(
        self, context: PackContext, host: str, targets: list[Target], delay_ms: int
    ) -> int | None:
        """Ask for one host's targets in turn, each in its slot; when those return that get none."""
        pacer = Pacer(
            hosts=self._hosts,
            clock=self._clock,
            host=host,
            delay_ms=delay_ms,
            until_ms=context.until_ms,
        )
        places = self._places(host, context.crawl.concurrency)
        async with asyncio.TaskGroup() as group:
            for place, target in enumerate(targets):
                with ExitStack() as permits:
                    await places.acquire()
                    permits.callback(places.release)
                    return_at_ms = await pacer.take(len(targets) - place)
                    if return_at_ms is not None:
                        self._defer(context, targets[place:], return_at_ms)
                        return return_at_ms
                    kept = permits.pop_all()
                visit = group.create_task(self._visit(context, target, pacer, pacer.turn, kept))
                # One that is cancelled before its first step gives nothing back by itself.
                visit.add_done_callback(partial(_close, kept))
        return None

    async def _visit(
        self, context: PackContext, target: Target, pacer: Pacer, turn: Turn, permits: ExitStack
    ) -> None:
        """Visit a URL that has its place at the host, and its slot.

        It keeps its place, and a sitemap its memory, until the answer is dealt with; a connection,
        and room for the body, until the answer is there.
        """
        async with AsyncExitStack() as taken:
            taken.enter_context(permits)
            if target.kind is TargetKind.SITEMAP:
                await taken.enter_async_context(self._large)
            async with self._everywhere:
                asked = await self._ask(context, target, pacer, turn)
            if asked is not None:
                answer, at_ms = asked
                await self._handler.handle(context, target, answer, at_ms, turn)

    async def _ask(
        self, context: PackContext, target: Target, pacer: Pacer, turn: Turn
    ) -> tuple[Response | Failure, int] | None:
        """Ask for a URL; the answer, and when it was asked for. None if it returns or has ended."""
        if not await self._goes_on(context):
            self._defer(context, [target], 0)
            return None
        async with context.reservations.room(context.result, target) as room:
            if room is None:
                return None
            if not pacer.on_time(turn.slot_ms):  # held up between the slot and here
                self._defer(context, [target], turn.slot_ms)
                return None
            at_ms = self._clock.now_ms()
            answer = await self._fetch(context, target, room)
        if isinstance(answer, Failure) and answer.later_s is not None:
            self._defer(context, [target], self._clock.now_ms() + round(answer.later_s * 1000))
            return None
        return answer, at_ms

    async def _fetch(self, context: PackContext, target: Target, room: Room) -> Response | Failure:
        """Ask, and note what was received; of a body that broke off, the most it may have been."""
        request = self._request(context, target, room.bytes_max)
        if context.crawl.cookies:
            jars, crawl_id = self._jars(), context.crawl.id
            headers = await jars.headers(crawl_id, request.url, request.headers)
            request = replace(request, headers=headers)
        room.received = room.bytes_max
        answer = await self._fetcher.fetch(request)
        room.received = received_of(answer)
        if isinstance(answer, Response) and answer.truncated:
            context.reservations.cut(context.result, target, room.bytes_max)
        if context.crawl.cookies and isinstance(answer, Response) and answer.cookies:
            refused = await self._jars().take(context.crawl.id, target.url, answer.cookies)
            if refused:
                context.result.count("cookies.refused", refused)
        return answer

    def _jars(self) -> Cookies:
        if self._cookies is None:
            # For crawls that keep cookies.
            from orbweaver.worker.cookies import Cookies

            self._cookies = Cookies(hosts=self._hosts, clock=self._clock)
        return self._cookies

    async def _goes_on(self, context: PackContext) -> bool:
        """Whether a crawl is still to be asked for, and as often; slots are waited for.

        What is not asked comes back at once, and is set aside, ended, or asked for as it is now.
        """
        then, now = context.crawl, await self._crawls.get(context.crawl.id)
        if now is then and now.state is State.RUNNING:
            return True  # most are as they were read for the pack
        if now is None or now.state is not State.RUNNING:
            return False
        return (now.delay_ms, now.concurrency, now.rules) == (
            then.delay_ms,
            then.concurrency,
            then.rules,
        )

    def _defer(self, context: PackContext, targets: Sequence[Target], return_at_ms: int) -> None:
        delay_s = max(0, return_at_ms - self._clock.now_ms()) / 1000
        for target in targets:
            context.result.requeue(target, delay_s, why="deferrals")

    def _request(self, context: PackContext, target: Target, room_bytes: int) -> Request:
        identity = self._identity(context, host_of(target.url))
        accept = _ALL_TYPES if context.crawl.bodies is Bodies.ALL else HTML_TYPES
        return Request(
            url=target.url,
            user_agent=identity.agent,
            headers=identity.headers,
            direct=not context.crawl.proxied,
            accept=SITEMAP_TYPES if target.kind is TargetKind.SITEMAP else accept,
            body_bytes_max=room_bytes,
            total_s=self._settings.fetch_total_s,
            condition=condition_of(context.crawl, target, context.before.get(target.url)),
            named=named_for(context.named, target),
        )

    def _identity(self, context: PackContext, host: str) -> Identity:
        return identity_of(context.crawl, host, self._settings.user_agent)

    def _places(self, host: str, width: int) -> asyncio.Semaphore:
        return self._asking.setdefault((host, width), asyncio.Semaphore(width))


def _close(permits: ExitStack, _ended: asyncio.Task[None]) -> None:
    permits.close()


def _unended(context: PackContext, targets: Sequence[Target]) -> list[Target]:
    """List the targets that neither ended nor return yet."""
    left = [target for target in targets if not context.result.knows(target.url)]
    return [context.reservations.mark(target) for target in left]


class Unasked:
    """Ends URLs without a request, or lets them return for another attempt."""

    def __init__(self, *, clock: Clock, random: Random, settings: Settings) -> None:
        """Take the clock, and how long retries wait."""
        self._clock = clock
        self._random = random
        self._settings = settings

    def allowed(
        self, context: PackContext, target: Target, robots: Robots | None, token: str
    ) -> bool:
        """Whether robots.txt lets a URL be asked for; it ends here if not."""
        rule = robots.rule_for(token, target.url) if robots is not None else None
        if rule is None or rule.allow:
            return True
        error = None
        if rule is UNDECIDED:
            error = f"robots.txt: {UNDECIDED.pattern}"
            context.result.count("robots.undecided")
        self._end(context, target, End(outcome=Outcome.SKIPPED, reason=Reason.ROBOTS, error=error))
        return False

    def retry(self, context: PackContext, target: Target, unreachable: RobotsUnreachable) -> None:
        """Let a URL return whose robots.txt could not be read; the last attempt ends it."""
        if target.attempt >= robots_attempts_max(unreachable.reason):
            end = End(
                outcome=Outcome.SKIPPED,
                reason=Reason.ROBOTS_UNREACHABLE,
                error=f"robots.txt could not be had: {unreachable.detail}",
            )
            context.result.count(f"{Reason.ROBOTS_UNREACHABLE}.{unreachable.reason or ANSWERED}")
            self._end(context, target, end)
            return
        wait_s = (unreachable.return_at_ms - self._clock.now_ms()) / 1000
        pause_s = backoff_s(target.attempt, self._random, self._settings.retry_base_s)
        delay_s = max(wait_s, 0) + pause_s
        context.result.requeue(next_attempt(target), delay_s, why="retries")

    def give_up(self, context: PackContext, targets: Sequence[Target], failures: int) -> None:
        """End the URLs of a host that is down."""
        end = End(
            outcome=Outcome.FAILED,
            reason=Reason.HOST_DOWN,
            error=f"the host did not answer {failures} times in a row",
        )
        for target in targets:
            self._end(context, target, end)

    def _end(self, context: PackContext, target: Target, end: End) -> None:
        context.end(target, page_record(context.crawl.id, target, end, self._clock.now_ms()))
