"""Models a pack's visit (requests for a batch of URLs): the steps of `worker.fetch_pack`.

The steps have the same order, without bodies. Pacer, host health, verdicts on responses, retries
and results are the product's.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from bench.scale.kernel import Gate, Group
from bench.scale.services import View
from orbweaver.budget.billing_units import Stage, Term
from orbweaver.fetching import response_verdict as answers
from orbweaver.frontier.known_claims import DIGEST_BYTES, DIGESTS_MAX
from orbweaver.frontier.pack_result import FoundLinks, PackResult, PageResult, Returning
from orbweaver.model.backoff import ATTEMPTS_MAX, backoff_s
from orbweaver.model.http_exchange import Failure, Response
from orbweaver.model.target import Target, next_attempt
from orbweaver.model.url import host_of
from orbweaver.politeness.host_health import HostHealth
from orbweaver.politeness.host_schedule import RobotsEntry, delay_of, is_down
from orbweaver.politeness.pacer import LAPSES_MAX, HostRequests, Pacer
from orbweaver.politeness.robots_cache import FRESH_MS, UNREACHABLE_FRESH_MS
from orbweaver.worker.host_claims import is_worth_saving
from orbweaver.worker.host_visits import WaitingVisits
from orbweaver.worker.seen_store import (
    GENERATION_MS,
    GENERATION_URLS_MAX,
    HOST_BYTES,
    HOSTS_BYTES_MAX,
    IN_USE_MS,
    Novelty,
)
from orbweaver.worker.succession import place_of_message

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from bench.scale.kernel import Kernel
    from bench.scale.state import State
    from bench.scale.web import Host
    from orbweaver.frontier.messages import Pack
    from orbweaver.politeness.pacer import Turn
    from orbweaver.worker.succession import PackPlace

CPU_FULL_MB = 1_769
# Assumed: duration of a GET and a PUT of S3.
GET_MS, PUT_MS = 30, 60
# Measured on a whole CPU: reading and merging a digest, hashing and looking up a link.
MERGED_CPU_MS, SOUGHT_CPU_MS = 0.00015, 0.004


class Container:
    """An execution environment: its memory, CPU and open requests."""

    def __init__(self, model: State) -> None:
        self.model = model
        kernel, settings = model.kernel, model.settings
        self.view = View(model.table)
        self.health = HostHealth(hosts=self.view, clock=kernel, random=model.random)
        self.everywhere = Gate(kernel, settings.fetching.fetch_concurrency)
        self.waiting_visits = WaitingVisits(settings)
        self.asking: dict[str, Gate] = {}
        self.turns: dict[str, Gate] = {}
        self.robots: dict[str, Gate] = {}
        self.cpu_free_ms = 0.0
        self.slower = CPU_FULL_MB / model.scenario.fleet.memory_mb
        self.crawl_read_ms = -(10**9)
        self.seen = Seen(kernel)
        self.host_claims = HostClaims(model, self)
        self.novelty = Novelty()

    async def think(self, cpu_ms: float) -> None:
        """Use the CPU. Coroutines get it one after the other."""
        kernel = self.model.kernel
        self.cpu_free_ms = max(self.cpu_free_ms, float(kernel.time_ms)) + cpu_ms * self.slower
        await kernel.until(round(self.cpu_free_ms))


class Seen:
    """Numbers of cached claims in a container, per host: models `SeenUrls`."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        # Known URLs are not looked up again, so no URL is in both generations.
        self._newer: Counter[str] = Counter()
        self._older: Counter[str] = Counter()
        self._newer_urls = 0
        self._since_ms = 0

    def of(self, host: Host) -> int:
        if self._kernel.time_ms - self._since_ms >= 2 * GENERATION_MS:
            return 0
        return min(host.found, self._newer[host.name] + self._older[host.name])

    def add(self, host: Host, urls: int) -> None:
        now_ms = self._kernel.time_ms
        age_ms = now_ms - self._since_ms
        if self._newer_urls >= GENERATION_URLS_MAX or age_ms >= GENERATION_MS:
            self._older = self._newer if age_ms < 2 * GENERATION_MS else Counter()
            self._newer, self._newer_urls, self._since_ms = Counter(), 0, now_ms
        self._newer[host.name] += urls
        self._newer_urls += urls


@dataclass(slots=True)
class _Entry:
    known: float = 0.0
    new: float = 0.0
    visited_ms: int = 0
    loaded_until_ms: int = 0
    saving: bool = False

    @property
    def size_bytes(self) -> float:
        return HOST_BYTES + DIGEST_BYTES * self.known


class HostClaims:
    """Numbers of cached claims of queued URLs in a container, per host: `worker.host_claims`.

    Each URL is equally likely. Times of reads and writes, the size of a container's memory, and
    evictions follow the worker.
    """

    def __init__(self, model: State, container: Container) -> None:
        self._model = model
        self._container = container
        self._used = model.settings.function.shares_claims
        self._entries: dict[str, _Entry] = {}
        self._held = 0.0

    def visit(self, host: Host, pack: Pack, until_ms: int, *, early: bool) -> Callable[[], None]:
        """Begin a visit, and return a function to call before each request."""
        kernel = self._model.kernel
        if not (self._used and pack.place and self._model.scenario.delay_ms):
            return _ignore
        entry = self._entries.pop(host.name, None)
        if entry is None:
            if not self._room(HOST_BYTES):
                return _ignore
            entry = _Entry()
            self._held += entry.size_bytes
        self._entries[host.name] = entry
        entry.visited_ms = kernel.time_ms

        def asking() -> None:
            if not early and entry.loaded_until_ms != until_ms:
                entry.loaded_until_ms = until_ms
                kernel.ready(self._load(host, entry))
            left_ms = until_ms - kernel.time_ms
            if is_worth_saving(int(entry.new), left_ms) and not entry.saving:
                entry.saving = True
                kernel.ready(self._save(host, entry))

        return asking

    def known(self, host: Host) -> float:
        """Return the number of a host's URLs that are known to be claimed."""
        entry = self._entries.get(host.name)
        return 0.0 if entry is None else min(host.found, entry.known)

    def learn(self, host: Host, urls: float) -> None:
        entry = self._entries.get(host.name)
        if entry is not None and self._room(DIGEST_BYTES * urls):
            entry.new += self._grow(entry, min(host.found, entry.known + urls))

    async def _load(self, host: Host, entry: _Entry) -> None:
        books, kernel = self._model.books, self._model.kernel
        books.use(Term.S3_GET, Stage.BODIES, 1)
        books.count("claims read")
        await kernel.until(kernel.time_ms + GET_MS)
        stored = self._model.claim_files.get(host.name, 0.0)
        if not stored or self._entries.get(host.name) is not entry:
            return
        await self._container.think(MERGED_CPU_MS * (stored + entry.known))
        if self._room(DIGEST_BYTES * max(0.0, stored - entry.known)):
            # Other containers may have found the new URLs since.
            new = entry.new * (1 - stored / host.found)
            self._grow(entry, min(host.found, stored + new))
            entry.new = new

    async def _save(self, host: Host, entry: _Entry) -> None:
        books, kernel = self._model.books, self._model.kernel
        known, new = entry.known, entry.new
        books.use(Term.S3_PUT, Stage.BODIES, 1)
        books.count("claims written")
        await kernel.until(kernel.time_ms + PUT_MS)
        self._model.claim_files[host.name] = known
        entry.new = max(0.0, entry.new - new)
        entry.saving = False

    def _grow(self, entry: _Entry, known: float) -> float:
        known = min(DIGESTS_MAX, max(known, entry.known))
        more = known - entry.known
        entry.known = known
        self._held += DIGEST_BYTES * more
        return more

    def _room(self, more_bytes: float) -> bool:
        in_use_ms = self._model.kernel.time_ms - IN_USE_MS
        while self._held + more_bytes > HOSTS_BYTES_MAX:
            name, entry = next(iter(self._entries.items()), ("", None))
            if entry is None or entry.visited_ms >= in_use_ms:
                return False
            self._held -= entry.size_bytes
            del self._entries[name]
        return True


def _ignore() -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Walk:
    """URLs of one host in a pack that the visit still has to request."""

    host: Host
    queue: deque[Target]
    pacer: Pacer
    asking: Gate
    delay_ms: int


class Visit:
    """The visit of one pack: all requests for a batch of URLs."""

    def __init__(
        self, container: Container, pack: Pack, until_ms: int, *, early: bool = False
    ) -> None:
        self.container = container
        self.model = container.model
        self.pack = pack
        self.until_ms = until_ms
        self.early = early
        self.result = PackResult(pack.crawl)
        self.ends: list[tuple[Host, Target, str]] = []
        self.recorded = 0
        self.body_bytes = 0
        self.links_read = 0.0
        # Claims to learn once the pack is committed, and links that were looked up.
        self.learned: defaultdict[str, float] = defaultdict(float)
        self.sought = 0.0
        self._asking: Callable[[], None] = _ignore

    @property
    def standing(self) -> PackPlace:
        return place_of_message(self.pack)

    async def go(self) -> None:
        """Request or defer every URL, at all hosts concurrently."""
        hosts: defaultdict[str, list[Target]] = defaultdict(list)
        for target in self.pack.targets:
            hosts[host_of(target.url)].append(target)
        first = self.model.web.hosts[next(iter(hosts))]
        self._asking = self.container.host_claims.visit(
            first, self.pack, self.until_ms, early=self.early
        )
        group = Group(self.model.kernel)
        for name, targets in hosts.items():
            group.start(self._visit_host(self.model.web.hosts[name], targets))
        began_ms = self.model.kernel.time_ms
        await group.done()
        took_ms = self.model.kernel.time_ms - began_ms
        self.model.books.waits_ms["visits"] += took_ms * len(hosts)

    async def _visit_host(self, host: Host, targets: list[Target]) -> None:
        container, kernel = self.container, self.model.kernel
        state = await container.view.read_host(host.name)
        if is_down(state, kernel.time_ms):
            for target in targets:
                self._end(host, target, "host_down")
            return
        lock = container.robots.setdefault(host.name, Gate(kernel, 1))
        await lock.enter()
        entry = await self._robots(host)
        lock.leave()
        if isinstance(entry, int):
            self._defer(targets, entry)
        elif entry.verdict == "unreachable":
            for target in targets:
                self._retry_robots(host, target, entry)
        else:
            pace_ms = container.health.pace_ms(host.name)
            delay_ms = delay_of(self.model.scenario.delay_ms, None, pace_ms)
            await self._walk(host, targets, delay_ms)

    async def _robots(self, host: Host) -> RobotsEntry | int:
        """Return the robots.txt of a host, or the time until which its URLs are deferred."""
        kernel, view = self.model.kernel, self.container.view
        state = await view.read_host(host.name)
        if state.blocked_until_ms > kernel.time_ms:
            return state.blocked_until_ms
        entry = state.robots
        if entry is not None:
            fresh_ms = UNREACHABLE_FRESH_MS if entry.verdict == "unreachable" else FRESH_MS
            if kernel.time_ms - entry.fetched_at_ms < fresh_ms:
                return entry
        return_at_ms = await self._pacer(host, self.model.scenario.delay_ms).wait_for_slot(1)
        if return_at_ms is not None:
            return return_at_ms
        answer = await self._request(host, self.model.scenario.delay_ms)
        self.model.books.count("robots asked")
        gone = isinstance(answer, Failure) or answer.status >= answers.SERVER_ERROR_MIN
        verdict = "unreachable" if gone else "allow"
        entry = RobotsEntry(fetched_at_ms=kernel.time_ms, verdict=verdict)
        await view.keep_robots(host.name, entry)
        return entry

    async def _walk(self, host: Host, targets: list[Target], delay_ms: int) -> None:
        """Request the URLs of one host in turn, each in its slot."""
        container, kernel = self.container, self.model.kernel
        asking = container.asking.setdefault(host.name, Gate(kernel, 1))
        more = {
            "wait_limit_ms": container.waiting_visits.wait_limit_ms,
            "lined": not self.pack.place,
        }
        pacer = self._pacer(host, delay_ms, **more)
        walk = _Walk(host=host, queue=deque(targets), pacer=pacer, asking=asking, delay_ms=delay_ms)
        return_at_ms: int | None = None
        with container.waiting_visits.joined():
            for _ in range(LAPSES_MAX):
                return_at_ms = await self._ask_in_turn(walk)
                if return_at_ms is not None or not walk.queue:
                    break
        self._defer(walk.queue, return_at_ms or kernel.time_ms)

    async def _ask_in_turn(self, walk: _Walk) -> int | None:
        """Request the queue. If slots run out, return the time until which the rest is deferred."""
        # URLs that missed their slots are in the queue again.
        container = self.container
        kernel, waits_ms = self.model.kernel, self.model.books.waits_ms
        queue, pacer = walk.queue, walk.pacer
        turns = container.turns.setdefault(walk.host.name, Gate(kernel, 1))
        group = Group(kernel)
        turn = False
        return_at_ms: int | None = None
        while queue:
            began_ms = kernel.time_ms
            if walk.delay_ms and pacer.turn.is_last:
                if turn:
                    turns.leave()
                await turns.enter()
                turn = True
            await walk.asking.enter()
            waits_ms["for the request before"] += kernel.time_ms - began_ms
            began_ms = kernel.time_ms
            return_at_ms = await pacer.wait_for_slot(len(queue))
            waits_ms["for slots"] += kernel.time_ms - began_ms
            if return_at_ms is not None:
                walk.asking.leave()
                break
            group.start(self._ask(walk, queue.popleft(), pacer.turn))
        if turn:
            turns.leave()
        await group.done()
        return return_at_ms

    async def _ask(self, walk: _Walk, target: Target, turn: Turn) -> None:
        container, kernel, host = self.container, self.model.kernel, walk.host
        await container.everywhere.enter()
        if not walk.pacer.start_request(turn):
            container.everywhere.leave()
            self.model.books.count("slots forfeited for room")
            walk.queue.append(target)
        else:
            at_ms = kernel.time_ms
            self._asking()
            answer = await self._request(host, walk.delay_ms)
            container.everywhere.leave()
            await self._conclude(host, target, answer, at_ms, turn)
        walk.asking.leave()

    async def _request(self, host: Host, delay_ms: int) -> Response | Failure:
        model = self.model
        total_ms = round(model.settings.fetching.fetch_total_s * 1000)
        least_ms = min(delay_ms, model.scenario.delay_ms)
        answer, took_ms = model.web.ask(host, model.kernel.time_ms, least_ms, total_ms)
        model.requested()
        await model.kernel.until(model.kernel.time_ms + took_ms)
        return answer

    async def _conclude(
        self, host: Host, target: Target, answer: Response | Failure, at_ms: int, turn: Turn
    ) -> None:
        health, model = self.container.health, self.model
        await self.container.think(model.scenario.fleet.page_cpu_ms)
        well = isinstance(answer, Response) and answer.status < answers.CLIENT_ERROR_MIN
        silent = isinstance(answer, Failure)
        health.note_latency(host.name, answer.latency_ms, well=well, silent=silent)
        if isinstance(answer, Failure):
            if answer.reason.silence:
                await health.note_failure(host.name, probe=turn.probe)
        else:
            await health.note_answer(host.name, troubled=turn.troubled)
        verdict: Any = answers.judge(answer, attempt=target.attempt, now_ms=model.kernel.time_ms)
        if target.attempt == 1:
            health.tried(host.name, failed=isinstance(verdict, answers.Retry))
        if well:
            self._read(host, target, answer)
            return
        if isinstance(verdict, answers.Retry):
            if verdict.block:
                await health.back_off(host.name, verdict.retry_after_s, at_ms)
            ended = answers.exhausted(verdict, target.attempt)
            if ended is None:
                base_s = model.settings.fetching.retry_base_s
                delay_s = health.backoff_s(host.name, verdict.reason, target.attempt, base_s)
                blocked_s = await health.blocked_s(host.name)
                delay_s = blocked_s if verdict.block else max(delay_s, blocked_s)
                self._return(next_attempt(target), delay_s, why="retries")
                model.books.count("retries")
                return
            verdict = ended
        self._end(host, target, str(verdict.reason))

    def _read(self, host: Host, target: Target, answer: Response | Failure) -> None:
        """Process the links of a page. Links that were known before may need a look-up."""
        web = self.model.web
        self.body_bytes += answer.received
        new = web.links_from(host)
        self.result.add_links(
            FoundLinks(
                admitted=tuple(
                    Target(url=f"{host.name}/{place}", depth=target.depth + 1, referrer=target.url)
                    for place in new
                )
            )
        )
        # A container knows the old links that it has seen itself or read from a file.
        seen = self.container.seen.of(host)
        known = max(seen, self.container.host_claims.known(host))
        old = max(0, min(host.found, web.plan.links) - len(new))
        if not known:
            self.links_read += min(host.pages, web.plan.links_everywhere)
        self.links_read += old * max(0.0, 1 - known / host.found)
        self.container.seen.add(host, round(len(new) + old * (1 - seen / host.found)))
        self.learned[host.name] += len(new) + old * (1 - known / host.found)
        self.sought += old * (1 - seen / host.found)
        self._end(host, target, "ok")

    def _end(self, host: Host, target: Target, reason: str) -> None:
        self.recorded += 1
        self.ends.append((host, target, reason))

    def _retry_robots(self, host: Host, target: Target, entry: RobotsEntry) -> None:
        if target.attempt >= ATTEMPTS_MAX:
            self._end(host, target, "robots_unreachable")
            return
        wait_s = (entry.fetched_at_ms + UNREACHABLE_FRESH_MS - self.model.kernel.time_ms) / 1000
        base_s = self.model.settings.fetching.retry_base_s
        pause_s = backoff_s(target.attempt, self.model.random, base_s)
        self._return(next_attempt(target), max(wait_s, 0) + pause_s, why="retries")

    def _defer(self, targets: Collection[Target], return_at_ms: int) -> None:
        delay_s = max(0, return_at_ms - self.model.kernel.time_ms) / 1000
        for target in targets:
            self._return(target, delay_s, why="deferrals")
        self.model.books.count("deferrals", len(targets))

    def _return(self, target: Target, delay_s: float, why: Literal["retries", "deferrals"]) -> None:
        self.result.add(PageResult(end=Returning(target=target, delay_s=delay_s, why=why)))

    def _pacer(self, host: Host, delay_ms: int, **more: Any) -> Pacer:
        requests = HostRequests(host.name, self.container.view, self.model.kernel)
        return Pacer(requests, delay_ms=delay_ms, until_ms=self.until_ms, **more)
