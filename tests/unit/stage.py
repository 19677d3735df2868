"""Helpers for tests of workers and other actors: a world in memory, a small web, a manual clock.

A `Stage` is one container over the world. `restart` makes a new container without the memory of the
old one. Time passes only by sleeps and by requests of the web.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Self

from orbweaver.adapters.local.reader import InPlaceReader
from orbweaver.budget.budget_rules import COUNTED
from orbweaver.control.crawl_control import Control, ControlPorts
from orbweaver.control.dead_letter_admin import DeadLetterAdmin
from orbweaver.diagnostics.explainer import Explainer
from orbweaver.frontier.messages import Pack, SeedsMessage, child_id, decode, encode
from orbweaver.model.crawl import Counts, Crawl
from orbweaver.model.errors import Transient
from orbweaver.model.http_exchange import Failure, Request, Response
from orbweaver.model.settings import Settings
from orbweaver.model.target import Target
from orbweaver.rendering.task import PageRenderer
from orbweaver.worker.batch import Worker
from orbweaver.worker.pack import Delivery
from orbweaver.worker.page_reading import PageReader
from tests.memory import (
    ManualClock,
    MemoryBacklog,
    MemoryBudgets,
    MemoryCrawls,
    MemoryDeadLetters,
    MemoryEvents,
    MemoryFiles,
    MemoryFrontier,
    MemoryHosts,
    MemoryMetrics,
    MemoryPacks,
    MemoryPages,
    MemoryQueue,
    MemorySecrets,
    Moment,
    World,
)
from tests.memory.world import Gate, ShardItem, open_gate

NOW_MS = 1_795_251_600_000  # 2026-11-21 09:00:00 UTC
SITE = "https://example.com"
REMAINING_MS = 60_000
_CONTAINERS = itertools.count(3)
# Ids of packs are hexadecimal: the counter shard of a pack follows from its id.
ROOT = child_id("root", 0)
# Polite by default, fast where a test is not about politeness.
CRAWL = Crawl(id="site-1", name="site", started_at_ms=NOW_MS, delay_ms=0, obey_robots=False)


def html(*links: str, title: str = "page", **headers: str) -> Response:
    anchors = "".join(f'<a href="{link}">x</a>' for link in links)
    body = f"<title>{title}</title>{anchors}".encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(status=200, headers={"content-type": "text/html", **named}, body=body)


def answer(status: int, body: bytes | None = b"", **headers: str) -> Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(status=status, headers=named, body=body)


class Killed(BaseException):
    """Simulates a killed process; no handler can catch it."""


async def survives(running: Awaitable[object]) -> bool:
    """Return False if the process is killed."""
    try:
        await running
    except Killed:
        return False
    except BaseExceptionGroup as group:
        if group.subgroup(Killed) is None:
            raise
        return False
    return True


def kill_at(number: int) -> Gate:
    """Return a gate that kills the process at its moment of this number, and at every later one."""
    passed = 0

    async def gate(_effect: str, _moment: Moment) -> None:
        nonlocal passed
        passed += 1
        if passed >= number:
            raise Killed

    return gate


def kill_on(effect: str, moment: Moment) -> Gate:
    """Return a gate that kills the process at an effect, and at every later one."""
    dead = False

    async def gate(passing: str, now: Moment) -> None:
        nonlocal dead
        dead = dead or (passing, now) == (effect, moment)
        if dead:
            raise Killed

    return gate


def call_on(effect: str, act: Callable[[], object], moment: Moment = Moment.BEFORE) -> Gate:
    """Return a gate that calls a function at an effect, before it or after it."""

    async def gate(passing: str, now: Moment) -> None:
        if (passing, now) == (effect, moment):
            act()

    return gate


def fail_on(
    effect: str,
    moment: Moment = Moment.BEFORE,
    times: int = 1,
    error: Callable[[str], Exception] = Transient,
) -> Gate:
    """Return a gate that fails an effect a number of times, before it or after it."""
    left = [error(effect)] * times

    def fail() -> None:
        if left:
            raise left.pop()

    return call_on(effect, fail, moment)


def noting(effects: list[str]) -> Gate:
    """Return a gate that records every effect as it begins."""

    async def gate(effect: str, moment: Moment) -> None:
        if moment is Moment.BEFORE:
            effects.append(effect)

    return gate


async def hand_over(_effect: str, _moment: Moment) -> None:
    await asyncio.sleep(0)


Answer = Response | Failure


async def fitted(request: Request, answer: Answer) -> Answer:
    """Truncate a body at its limit, or at the space that its request has left."""
    if isinstance(answer, Failure) or answer.body is None or request.room is None:
        return answer
    await request.room.grow(len(answer.body))
    size = min(request.body_bytes_max, request.room.bytes_max)
    cut = len(answer.body) > size
    return replace(answer, body=answer.body[:size], truncated=answer.truncated or cut)


class SmallWeb:
    """Answers by URL, in turn if there are several; unknown URLs get a 404."""

    def __init__(self, clock: ManualClock) -> None:
        self.answers: dict[str, list[Answer]] = {}
        self.asked: list[tuple[str, int]] = []
        self.requests: list[Request] = []
        self.takes_ms = 0
        self.before: Callable[[Request], None] = lambda _request: None
        self._clock = clock

    def put(self, url: str, *answers: Answer) -> None:
        """Set the answers of a URL; the last one is repeated."""
        self.answers[url] = list(answers)

    async def fetch(self, request: Request) -> Answer:
        self.asked.append((request.url, self._clock.now_ms()))
        self.requests.append(request)
        self.before(request)
        self._clock.at_ms += self.takes_ms
        known = self.answers.get(request.url)
        if known is None:
            return answer(404)
        return await fitted(request, known.pop(0) if len(known) > 1 else known[0])

    @property
    def urls(self) -> list[str]:
        return [url for url, _ in self.asked]


@dataclass
class Stage:
    """A container over memory adapters."""

    settings: Settings = field(default_factory=Settings)
    gate: Gate = open_gate
    world: World = field(default_factory=World)
    clock: ManualClock = field(default_factory=lambda: ManualClock(NOW_MS))
    reader: PageReader = field(default_factory=InPlaceReader)
    renderer: PageRenderer | None = None

    def __post_init__(self) -> None:
        self.web = SmallWeb(self.clock)
        self.restart(self.gate)

    def restart(self, gate: Gate = open_gate) -> None:
        world = self.world
        self.queue = MemoryQueue(world, gate)
        self.packs = MemoryPacks(world, gate)
        self.crawls = MemoryCrawls(world, gate)
        self.frontier = MemoryFrontier(world, gate)
        self.hosts = MemoryHosts(world, gate)
        self.pages = MemoryPages(world, gate)
        self.metrics = MemoryMetrics()
        self.events = MemoryEvents(world, gate)
        self.backlog = MemoryBacklog(world, gate)
        self.files = MemoryFiles(world, gate)
        self.budgets = MemoryBudgets(world, gate)
        self.secrets = MemorySecrets(world, gate)
        self.random, self.delivery_random = Random(1), Random(next(_CONTAINERS))
        self.worker = Worker(self, fetcher=self.web, metrics=self.metrics)
        self.applier, self.processor = self.worker.applier, self.worker.processor
        self.pack_fetcher = self.worker.pack_fetcher
        self.budget_keeper = self.processor.budget_keeper

    def begin(self, crawl: Crawl = CRAWL, *urls: str, pack: str = ROOT) -> Pack:
        """Add a crawl that has claimed these URLs and return the pack with them."""
        self.world.crawls[crawl.id] = crawl
        if urls:
            self.count(crawl, claimed=len(urls))
        return pack_of(*urls, crawl=crawl.id, pack=pack)

    def count(self, crawl: Crawl, **counts: int) -> None:
        shard = self.world.shards.setdefault((crawl.id, 0), ShardItem())
        for key, number in counts.items():
            shard.counts[key] = shard.counts.get(key, 0) + number

    def counts(self, crawl: Crawl = CRAWL) -> Counts:
        """Return the sums of a crawl's counters, without its costs."""
        total = self.world.total(crawl.id)
        return {key: number for key, number in total.items() if key not in COUNTED.values()}

    async def deliver(
        self,
        *messages: Pack | SeedsMessage | str,
        receives: int = 1,
        remaining_ms: int = REMAINING_MS,
        queue: str = "",
        since_ms: int | None = None,
    ) -> list[int]:
        """Process a batch; return the indexes of failed messages."""
        deliveries = [
            Delivery(
                id=str(place),
                body=message if isinstance(message, str) else encode(message),
                receives=receives,
                queue=queue,
                since_ms=since_ms,
                handle=str(place),
            )
            for place, message in enumerate(messages)
        ]
        failed = await self.worker.run(deliveries, self.clock.now_ms() + remaining_ms)
        return sorted(int(place) for place in failed)

    def serve(self, pages: Mapping[str, Answer | list[Answer]]) -> Self:
        """Set the answers of URLs, and of paths of SITE."""
        for url, given in pages.items():
            answers = given if isinstance(given, list) else [given]
            self.web.put(SITE + url if url.startswith("/") else url, *answers)
        return self

    async def crawl(self, crawl: Crawl, *urls: str) -> None:
        """Crawl from these URLs to the end; no delivery may fail."""
        assert await self.deliver(self.begin(crawl, *urls)) == []
        await self.drain()

    async def drain(self, rounds: int = 1_000) -> int:
        """Deliver each message when it is due, until the queue is empty. Return their number."""
        for delivered in range(rounds):
            if not self.world.sent:
                return delivered
            mail = min(self.world.sent, key=lambda mail: mail.delay_s)
            self.world.sent.remove(mail)
            self.clock.at_ms += mail.delay_s * 1000
            assert await self.deliver(mail.body, since_ms=mail.since_ms) == []
        message = f"not drained after {rounds} messages"
        raise AssertionError(message)

    def sent(self) -> list[Pack | SeedsMessage]:
        """Take all messages off the queue."""
        messages = [decode(mail.body) for mail in self.world.sent]
        self.world.sent.clear()
        return [message for message in messages if isinstance(message, Pack | SeedsMessage)]


def control_of(stage: Stage) -> Control:
    return Control(
        ControlPorts(
            queue=stage.queue,
            crawls=stage.crawls,
            packs=stage.packs,
            pages=stage.pages,
            hosts=stage.hosts,
            clock=stage.clock,
            settings=stage.settings,
        )
    )


def explainer_of(stage: Stage) -> Explainer:
    return Explainer(
        finder=control_of(stage),
        crawls=stage.crawls,
        frontier=stage.frontier,
        packs=stage.packs,
        backlog=MemoryBacklog(stage.world),
        history=stage.pages,
        hosts=stage.hosts,
        clock=stage.clock,
        settings=stage.settings,
        letters=DeadLetterAdmin(
            dead_letters=MemoryDeadLetters(stage.world, stage.gate, clock=stage.clock),
            queue=stage.queue,
            crawls=stage.crawls,
            packs=stage.packs,
            clock=stage.clock,
        ),
    )


def pack_of(*urls: str, crawl: str = CRAWL.id, pack: str = ROOT, failures: int = 0) -> Pack:
    targets = tuple(Target(url=url, depth=0) for url in urls)
    return Pack(id=pack, crawl=crawl, at_ms=NOW_MS, targets=targets, failures=failures)


def urls_of(messages: Sequence[Pack | SeedsMessage]) -> set[str]:
    return {target.url for pack in messages if isinstance(pack, Pack) for target in pack.targets}


def outcomes(world: World) -> Mapping[str, str]:
    """Return the outcome of each recorded URL as `outcome.reason`."""
    return {record.url: f"{record.outcome}.{record.reason}" for record in world.pages.values()}
