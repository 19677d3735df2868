"""Request the URLs of packs: robots.txt, slots, requests, responses.

A pack is a message with up to 25 URLs. A slot is the time at which a host may be requested. A URL
without a slot in this invocation is requeued. `worker/response_handling.py` decides on responses.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property, partial
from operator import attrgetter
from typing import TYPE_CHECKING, TypeAlias
from weakref import WeakValueDictionary

from orbweaver.budget.budget_rules import Refused, TryLater
from orbweaver.budget.reservation import AllowedSize
from orbweaver.fetching.conditional_get import condition_of
from orbweaver.frontier.pack_result import PackResult, PageResult, Returning, not_requested
from orbweaver.frontier.refetch import is_reusable
from orbweaver.frontier.resumption import REQUESTED_AGAIN
from orbweaver.model.crawl import Crawl, State
from orbweaver.model.crawl_rules import by_delay
from orbweaver.model.errors import Transient
from orbweaver.model.host_access import longest_s, timeout_of, with_referer
from orbweaver.model.http_exchange import Failure, Request, Response, received_of
from orbweaver.model.named_origins import named_origins_for
from orbweaver.model.outcome import Reason
from orbweaver.model.page_record import PageRecord
from orbweaver.model.render_rules import concurrency_of, slots_of
from orbweaver.model.request_url import sent_form
from orbweaver.model.target import Target, TargetKind
from orbweaver.model.url import host_of
from orbweaver.model.user_agent import Identity, identity_of
from orbweaver.politeness.host_health import EasedSemaphore, HostHealth
from orbweaver.politeness.host_schedule import delay_of, is_down
from orbweaver.politeness.pacer import LAPSES_MAX, HostRequests, Pacer
from orbweaver.politeness.robots_cache import Deferred, RobotsKeeper, RobotsUnreachable
from orbweaver.politeness.robots_txt import Robots
from orbweaver.worker import page_fault as faults
from orbweaver.worker.crawl_cache import RecentCrawls
from orbweaver.worker.host_visits import (
    HostPermit,
    HostPermits,
    HostVisit,
    LoginRefused,
    WaitingVisits,
)
from orbweaver.worker.kind_learning import KindLearning
from orbweaver.worker.pack_context import PackContext
from orbweaver.worker.page_fault import FaultedPages, result_or_fault, results_or_fault
from orbweaver.worker.page_outcome import asks_by_head, page_types
from orbweaver.worker.response_handling import ResponseHandler
from orbweaver.worker.shutdown import ShutdownSignal
from orbweaver.worker.sitemap_handling import SITEMAP_TYPES, SITEMAPS_AT_ONCE, Sitemaps
from orbweaver.worker.unvisited import Unvisited

if TYPE_CHECKING:
    from orbweaver.model.ports import Fetcher
    from orbweaver.worker.page_rendering import PageRendering
    from orbweaver.worker.ports import WorkerPorts
    from orbweaver.worker.render_lane import RenderLane
    from orbweaver.worker.sessions import SentAs, Sessions

_log = logging.getLogger(__name__)
# A response, and counts for the crawl.
_Answer: TypeAlias = tuple[Response | Failure, Mapping[str, int]]
HELD_MS = 2_000  # delay of URLs while packs with much content wait to be stored
TROUBLE_MS = 10_000  # delay of URLs after a table did not respond
# Number of URLs that are checked at a time against slow robots.txt rules (up to 1 ms each).
JUDGED_AT_ONCE = 4
# If one of these fields of a crawl changes, its URLs are requeued.
_LIMITS = attrgetter("delay_ms", "concurrency", "rules", "erased")


class PackFetcher:
    """Requests URLs of many packs and hosts concurrently. One instance per container."""

    def __init__(
        self,
        ports: WorkerPorts,
        *,
        fetcher: Fetcher,
        crawls: RecentCrawls,
        ending: ShutdownSignal,
    ) -> None:
        """`crawls` and `ending` are shared with the other parts of the worker."""
        clock, settings, hosts = ports.clock, ports.settings, ports.hosts
        self._ports, self._ending = ports, ending
        self._history = ports.pages
        self._crawls = crawls
        self._fetcher, self._hosts = fetcher, hosts
        self._clock, self._settings = clock, settings
        self.kinds = KindLearning(crawls=ports.crawls, files=ports.files, settings=settings)
        self._unvisited = Unvisited(
            kinds=self.kinds, clock=clock, random=ports.random, settings=settings
        )
        self._sitemaps = Sitemaps(clock=clock, settings=settings)
        self._health = HostHealth(hosts=hosts, clock=clock, random=ports.random)
        self._robots = RobotsKeeper(fetcher=fetcher, hosts=hosts, clock=clock, settings=settings)

        def open_rendering() -> PageRendering | None:
            if ports.renderer is None:
                return None
            # Only crawls with rendering need this import. It would slow down all other starts.
            from orbweaver.worker.page_rendering import PageRendering, ResourceServices

            given = (fetcher, hosts, self._robots, self._health, clock, settings)
            services = ResourceServices(*given, lambda: self._sessions)
            return PageRendering(ports.renderer, services, crawls)

        self._render_lane: RenderLane | None = None
        if settings.renders_elsewhere:
            from orbweaver.worker.render_lane import RenderLane

            self._render_lane = RenderLane(crawls, clock)
        self._handler = ResponseHandler(
            ports,
            health=self._health,
            sitemaps=self._sitemaps,
            kinds=self.kinds,
            open_rendering=open_rendering,
            open_sessions=lambda: self._sessions,
            render_lane=self._render_lane,
        )
        self._waiting_visits = WaitingVisits(settings)
        # An entry exists only while its host is being visited.
        self._asking: WeakValueDictionary[tuple[str, int, bool], asyncio.Semaphore] = (
            WeakValueDictionary()
        )
        self._requests: WeakValueDictionary[str, HostRequests] = WeakValueDictionary()
        self._everywhere = asyncio.Semaphore(settings.fetching.fetch_concurrency)
        self._large = asyncio.Semaphore(SITEMAPS_AT_ONCE)
        # Results of unfinished packs, with the content of their pages until it is stored.
        self._results: set[PackResult] = set()

    @contextmanager
    def holding(self, result: PackResult) -> Iterator[None]:
        """Open a context in which the content of a pack counts towards the memory limit."""
        self._results.add(result)
        try:
            yield
        finally:
            self._results.discard(result)

    async def fetch(
        self, context: PackContext, result: PackResult, targets: Sequence[Target]
    ) -> None:
        """Request URLs of a pack. Add the outcome or the requeue of each to `result`."""
        if self._render_lane is not None:
            targets = await self._render_lane.route_before_fetch(context.crawl, result, targets)
        waiting_s = max(0, context.until_ms - self._clock.now_ms()) / 1000
        visit_s = waiting_s + longest_s(context.crawl, self._settings.fetching.fetch_total_s)
        refused = await context.reservations.admit(targets, visit_s)
        if refused is not None:
            result.add(*(_refused(target, refused, Reason.DOLLARS) for target in targets))
            return
        priors = {target.url: target.prior for target in targets if target.prior is not None}
        if priors:
            records = await self._history.earlier_records(priors)
            context = replace(context, before=await self._reusable(context.crawl, records))
        hosts: defaultdict[str, list[Target]] = defaultdict(list)
        # Retries are last, so that a page that never responds does not delay the others each time.
        for target in sorted(targets, key=attrgetter("attempt")):
            work, now_ms = self._sitemaps.go_on(context, target), self._clock.now_ms()
            part = await result_or_fault(work, context.crawl, target, now_ms)
            # The result is added at once, so that errors of other URLs cannot lose a received
            # response.
            if part is not None:
                result.add(part)
            else:
                hosts[host_of(target.url)].append(target)
        async with asyncio.TaskGroup() as group:
            for host, queue in hosts.items():
                visit = HostVisit(host=host, context=context, result=result)
                group.create_task(self._visit_host(visit, queue))

    async def _visit_host(self, visit: HostVisit, targets: list[Target]) -> None:
        """Request the URLs of one host. Requeue them if the hosts table does not respond."""
        try:
            # If the worker must end, all remaining URLs are requeued at once.
            if await self._ending.run_until_end(self._fetch_logged_in(visit, targets)):
                self._defer(visit, _unended(visit, targets), self._clock.now_ms())
        except* Transient as trouble:
            left = _unended(visit, targets)
            told = {"host": visit.host, "urls": len(left), "error": str(trouble.exceptions[0])}
            _log.warning("host.out_of_reach", extra=told)
            self._defer(visit, left, self._clock.now_ms() + TROUBLE_MS)
        if visit.context.host_done is not None:
            await visit.context.host_done(visit.host)

    async def _fetch_logged_in(self, visit: HostVisit, targets: list[Target]) -> None:
        crawl = visit.context.crawl
        match await self._sessions.prepare(visit) if crawl.cookies or crawl.auth else None:
            case Deferred() as deferred:
                self._defer(visit, targets, deferred.return_at_ms)
            case LoginRefused(error=error):
                fail = partial(self._unvisited.end_login, visit.context, error=error)
                visit.result.add(*map(fail, targets))
            case None:
                await self._fetch_host(visit, targets)

    async def _fetch_host(self, visit: HostVisit, targets: list[Target]) -> None:
        context, result, host = visit.context, visit.result, visit.host
        state = await self._hosts.read_host(host)
        if is_down(state, self._clock.now_ms()):
            give_up = partial(self._unvisited.end_host_down, context, failures=state.failures)
            result.add(*map(give_up, targets))
            return
        robots: Robots | None = None
        if context.crawl.obey_robots:
            named = named_origins_for(context.named, *targets)
            work = self._robots.rules_for(host, context.crawl, context.until_ms, named=named)
            match await results_or_fault(work, context.crawl, targets, self._clock.now_ms()):
                case FaultedPages() as ended:
                    result.add(*ended.pages)
                    return
                case Deferred() as deferred:
                    self._defer(visit, targets, deferred.return_at_ms)
                    return
                case RobotsUnreachable() as unreachable:
                    retry = partial(self._unvisited.retry_robots, context, unreachable=unreachable)
                    result.add(*map(retry, targets))
                    return
                case rules:
                    robots = rules
        slow = robots is not None and robots.rules_of(self._identity(context, host).token).slow
        size = JUDGED_AT_ONCE if slow else len(targets)
        for first in range(0, len(targets), size):
            if first:
                await asyncio.sleep(0)  # checking the previous URLs may have blocked the event loop
            return_at_ms = await self._judge(visit, targets[first : first + size], robots)
            if return_at_ms is not None:
                self._defer(visit, targets[first + size :], return_at_ms)
                break
        if robots is not None:
            result.add_links(
                self._sitemaps.robots_sitemaps(
                    context.crawl, robots, targets, outcome=result.outcome
                )
            )

    async def _judge(
        self, visit: HostVisit, targets: Sequence[Target], robots: Robots | None
    ) -> int | None:
        """Request the URLs that robots.txt allows. Return a time to retry if slots ran out."""
        context, result, host = visit.context, visit.result, visit.host
        token = self._identity(context, host).token
        allowed: list[Target] = []
        for target in targets:
            try:
                rule = robots.rule_for(token, target.url) if robots is not None else None
            except Exception as error:  # noqa: BLE001 - a fault ends one page
                result.add(faults.unreadable(error, context.crawl, target, self._clock.now_ms()))
                continue
            if rule is None or rule.allow:
                allowed.append(target)
            else:
                result.add(self._unvisited.end_disallowed(context, target, rule))
        asked_s = robots.crawl_delay(token) if robots else None
        pace_ms = self._health.pace_ms(host) // context.crawl.concurrency
        counted, beyond = await context.reservations.count(host, allowed)
        result.add(*(not_requested(target, Reason.HOST_PAGES) for target in beyond))
        self.kinds.leave(context.crawl, beyond)
        return_at_ms: int | None = None
        for least_ms, group in by_delay(context.crawl, counted):
            delay_ms = delay_of(least_ms, asked_s, pace_ms)
            return_at_ms = await self._request_targets(visit, group, delay_ms) or return_at_ms
        return return_at_ms

    async def _request_targets(
        self, visit: HostVisit, targets: list[Target], delay_ms: int
    ) -> int | None:
        """Request URLs of a host, each in its slot. Return a time to retry if slots ran out."""
        crawl = visit.context.crawl
        requests = HostRequests(visit.host, self._hosts, self._clock)
        requests = self._requests.setdefault(visit.host, requests)
        pacer = Pacer(
            requests,
            delay_ms=delay_ms,
            until_ms=visit.context.until_ms,
            wait_limit_ms=self._waiting_visits.wait_limit_ms,
            lined=visit.context.lined,
        )
        permits = HostPermits(
            queue=deque(targets),
            pacer=pacer,
            semaphore=self._semaphore(
                visit.host, concurrency_of(crawl)[0], eased=not crawl.delay_ms
            ),
            next_slot=partial(self._next_slot, visit.context, pacer),
            reserving=requests.reserving if delay_ms else asyncio.Lock(),
        )
        with self._waiting_visits.joined():
            async with aclosing(permits), asyncio.TaskGroup() as group:
                for _ in targets:
                    group.create_task(self._request_next(visit, permits))
        self._defer(visit, permits.queue, permits.return_at_ms or self._clock.now_ms())
        return permits.return_at_ms

    async def _next_slot(self, context: PackContext, pacer: Pacer, urls: int) -> int | None:
        # A visit also ends if the crawl was paused, stopped or edited meanwhile.
        if self._ending.resting or not await self._goes_on(context):
            return self._clock.now_ms()
        # Packs with much content in memory must end and store it before more is requested.
        if sum(one.held_bytes for one in self._results) > self._settings.worker.held_bytes_max:
            return self._clock.now_ms() + HELD_MS
        return await pacer.wait_for_slot(slots_of(context.crawl, urls))

    async def _request_next(self, visit: HostVisit, permits: HostPermits) -> None:
        """Request the next URL of a visit. If it misses its turn, request another one."""
        for _ in range(LAPSES_MAX):
            async with permits.permit() as permit:
                if permit is None:
                    return
                page = await self._request(visit, permit)
                if page is not None:
                    faults.add_or_fault(visit.result, page, visit.context.crawl, permit.target)
                    break
                permits.queue.append(permit.target)
        await self.kinds.share(visit.context.crawl)

    async def _request(self, visit: HostVisit, permit: HostPermit) -> PageResult | None:
        """Request a URL, and process its response. Return None if its turn has passed."""
        # A sitemap keeps its memory permit until its response is processed. The connection and the
        # byte budget are kept until the response is received.
        async with self._large if permit.target.kind is TargetKind.SITEMAP else nullcontext():
            async with self._everywhere:
                page = await self._ask(visit.context, permit)
            if not isinstance(page, tuple):
                return page
            (answer, counts), at_ms, crawl = *page, visit.context.crawl
            await self.kinds.before_judging(crawl)
            # A repeated request is counted now.
            target = replace(permit.target, again=False)
            handling = self._handler.handle(visit.context, target, answer, at_ms, permit.turn)
            ended = await result_or_fault(handling, crawl, target, at_ms, answer)
            return replace(ended, counts={**ended.counts, **counts}) if counts else ended

    async def _ask(
        self, context: PackContext, permit: HostPermit
    ) -> tuple[_Answer, int] | PageResult | None:
        """Request a URL. Return the answer and the time of the request, or a result."""
        target = permit.target
        lost = context.crawl.auth and not self._sessions.is_usable(context.crawl, target.url)
        if lost or not await self._goes_on(context):
            return self._deferred(target, 0)
        async with context.reservations.room(target) as room:
            if not isinstance(room, AllowedSize):
                return _refused(target, room, Reason.BYTES)
            # Meanwhile, the host may have demanded a backoff, or the slot may have passed.
            is_blocked = self._health.is_blocked(host_of(target.url))
            if is_blocked or not permit.pacer.start_request(permit.turn):
                return None
            at_ms = self._clock.now_ms()
            work = self._fetch(context, permit, room)
            fetched = await result_or_fault(work, context.crawl, target, at_ms)
        if isinstance(fetched, PageResult):
            return fetched
        answer, _ = fetched
        if isinstance(answer, Failure) and answer.later_s is not None:
            return self._deferred(target, self._clock.now_ms() + round(answer.later_s * 1000))
        return fetched, at_ms

    async def _fetch(self, context: PackContext, permit: HostPermit, room: AllowedSize) -> _Answer:
        crawl, target, counts = context.crawl, permit.target, {}
        identity = self._identity(context, host_of(target.url))
        address, body, headers = sent_form(target.url, identity.headers)
        headers = with_referer(headers, crawl, address, target.referrer)
        sent_as: SentAs | None = None
        if crawl.cookies or crawl.auth:
            sent_as = await self._sessions.outgoing(crawl, address, headers)
            headers = sent_as.headers
        total_s, idle_s = timeout_of(
            crawl, host_of(target.url), self._settings.fetching.fetch_total_s
        )
        sitemap, paced = target.kind is TargetKind.SITEMAP, crawl.delay_ms > 0
        request = Request(
            url=address,
            user_agent=identity.agent,
            headers=headers,
            body=body,
            direct=not crawl.proxied,
            trust=identity.trust,
            head=asks_by_head(crawl, target),
            accept=SITEMAP_TYPES if sitemap else page_types(crawl, target),
            body_bytes_max=room.most,
            room=room if crawl.bytes_max is not None else None,
            total_s=total_s,
            idle_s=idle_s,
            condition=condition_of(crawl, target, context.before.get(target.url)),
            named=named_origins_for(context.named, target),
            # With a delay, the next request may start while the fetcher verifies the response.
            answered=permit.leave if paced and not sitemap else None,
            sent=permit.pacer.note_sent if paced else None,
            paced=paced,
        )
        context.asking()
        room.received = None  # unknown until the response is complete, so the maximum counts
        answer = await self._fetcher.fetch(request)
        room.received = received_of(answer)
        if target.again:
            counts[REQUESTED_AGAIN] = 1
        if isinstance(answer, Response):
            if answer.truncated and room.cut:
                counts[f"cut.{Reason.BYTES}"] = 1
            if sent_as is not None:
                counts |= await self._sessions.store(crawl, address, answer, sent_as)
        return answer, counts

    async def _reusable(
        self, crawl: Crawl, records: Mapping[str, PageRecord]
    ) -> dict[str, PageRecord]:
        """Return the records that an unchanged page can keep. Other pages are read in full."""
        named = {record.crawl for record in records.values()}
        runs = {run: await self._crawls.get(run) for run in sorted(named)}
        return {
            url: record
            for url, record in records.items()
            if (run := runs[record.crawl]) is not None and is_reusable(crawl, run, record)
        }

    @cached_property
    def _sessions(self) -> Sessions:
        # Only crawls that log in or keep cookies need this import.
        from orbweaver.worker.sessions import Sessions

        return Sessions(self._ports, self._fetcher)

    async def _goes_on(self, context: PackContext) -> bool:
        """Return False if the crawl was stopped or its limits were edited while a URL waited."""
        # A URL that is not requested is requeued at once. Its next delivery obeys the new state.
        then, now = context.crawl, await self._crawls.get(context.crawl.id)
        if now is then and now.state is State.RUNNING:
            return True  # most crawls are unchanged since the pack read them
        if now is None or now.state is not State.RUNNING:
            return False
        return _LIMITS(now) == _LIMITS(then)

    def _defer(self, visit: HostVisit, targets: Iterable[Target], return_at_ms: int) -> None:
        crawl = visit.context.crawl
        if crawl.status_only and return_at_ms > crawl.deadline_ms:
            visit.result.add(*(not_requested(target, Reason.DURATION) for target in targets))
            return
        at_ms = crawl.returns_at_ms(return_at_ms)
        visit.result.add(*(self._deferred(target, at_ms) for target in targets))

    def _deferred(self, target: Target, return_at_ms: int) -> PageResult:
        delay_s = max(0, return_at_ms - self._clock.now_ms()) / 1000
        return PageResult(end=Returning(target=target, delay_s=delay_s))

    def _identity(self, context: PackContext, host: str) -> Identity:
        return identity_of(context.crawl, host, self._settings.fetching.user_agent)

    def _semaphore(self, host: str, width: int, *, eased: bool = False) -> asyncio.Semaphore:
        """Return a host's semaphore of `width` permits. If `eased`, a slow host has fewer."""
        new = EasedSemaphore(self._health, host, width) if eased else asyncio.Semaphore(width)
        return self._asking.setdefault((host, width, eased), new)


def _refused(target: Target, refused: Refused, reason: Reason) -> PageResult:
    if isinstance(refused, TryLater):
        return PageResult(end=Returning(target=target, delay_s=refused.wait_s))
    return not_requested(target, reason)


def _unended(visit: HostVisit, targets: Sequence[Target]) -> list[Target]:
    """Return the targets that have no outcome yet and are not requeued."""
    left = [target for target in targets if not visit.result.knows(target.url)]
    return [visit.context.reservations.mark(target) for target in left]
