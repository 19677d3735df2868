"""SQS and Lambda as they behave on a bad day, around the real worker.

Messages are delivered more than once, in any order and late; a batch's acknowledgement may be
lost; an invocation may be killed before or after any effect, may run into its time limit, may
freeze and come back when nobody waits for it any more, may run twice at once; containers are
warm or new, and their clocks differ.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from hashlib import blake2b
from random import Random
from typing import TYPE_CHECKING

from orbweaver.adapters.memory import (
    MemoryCrawls,
    MemoryEvents,
    MemoryFrontier,
    MemoryHosts,
    MemoryMetrics,
    MemoryPacks,
    MemoryPages,
    MemoryQueue,
    Moment,
    World,
)
from orbweaver.advance import Advancer, Delivery
from orbweaver.core.message import Loose, encode
from orbweaver.ingest import Ingester
from orbweaver.ports import Transient
from orbweaver.settings import Settings
from orbweaver.settle import Settler
from orbweaver.visit import Visitor
from orbweaver.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orbweaver.core.exchange import Failure, Request, Response
    from orbweaver.core.journal import Letter
    from orbweaver.core.message import Seeds
    from tests.simulation.scenario import Scenario
    from tests.simulation.web import SimWeb

MIDNIGHT_MS = 1_790_035_200_000  # 2026-09-22T00:00:00Z
FUNCTION_TIMEOUT_S = 60
VISIBILITY_S = 6 * FUNCTION_TIMEOUT_S
RECEIVE_MAX = 5
BATCH = 10
# A scenario takes a few thousand steps.
STEPS_MAX = 100_000


@dataclass(slots=True)
class Message:
    """One copy on the queue."""

    id: str
    body: str
    visible_s: float
    receives: int = 0
    gone: bool = False


@dataclass(slots=True)
class Trace:
    """What happened, as a running hash and as counts."""

    digest: object = field(default_factory=lambda: blake2b(digest_size=16))
    counts: Counter[str] = field(default_factory=Counter)
    lines: list[str] | None = None
    steps: int = 0

    def note(self, line: str) -> None:
        """Add a step."""
        self.steps += 1
        self.digest.update(line.encode())  # type: ignore[attr-defined]
        if self.lines is not None:
            self.lines.append(line)

    @property
    def hash(self) -> str:
        """The hash of all steps so far."""
        return self.digest.hexdigest()  # type: ignore[attr-defined,no-any-return]


class Endless(Exception):
    """So many steps were taken that no end is in sight."""


class SimClock:
    """A container's own idea of the time."""

    def __init__(self, start_ms: int) -> None:
        self._start_ms = start_ms

    def now_ms(self) -> int:
        """Milliseconds, as wrong as this container's clock is."""
        return self._start_ms + round(asyncio.get_running_loop().time() * 1000)

    async def sleep(self, seconds: float) -> None:
        """Wait in virtual time."""
        await asyncio.sleep(seconds)


class Container:
    """One Lambda execution environment: a worker over adapters that pass its gate."""

    def __init__(self, cloud: Cloud, name: str, *, calm: bool = False) -> None:
        self.name = name
        self._calm = calm
        self.cloud = cloud
        self.dead = False
        self.kill_in = 0
        self.task: asyncio.Task[tuple[str, ...]] | None = None
        random = Random(f"{cloud.seed}/{name}")
        skew = cloud.faults.skew_ms
        self.clock = SimClock(cloud.start_ms + (random.randint(-skew, skew) if skew else 0))
        settings = Settings(receive_max=RECEIVE_MAX)
        world = cloud.world
        hosts = MemoryHosts(world, self.gate)
        packs = self.packs = MemoryPacks(world, self.gate)
        crawls = self.crawls = MemoryCrawls(world, self.gate)
        frontier = MemoryFrontier(world, self.gate)
        queue = self.queue = SimQueue(cloud, world, self.gate)
        settler = Settler(
            queue=queue,
            packs=packs,
            crawls=crawls,
            events=MemoryEvents(world, self.gate),
            frontier=frontier,
            pages=MemoryPages(world, self.gate),
            clock=self.clock,
        )
        visitor = Visitor(
            fetcher=self, hosts=hosts, clock=self.clock, random=random, settings=settings
        )
        metrics = MemoryMetrics()
        advancer = Advancer(
            packs=packs,
            crawls=crawls,
            frontier=frontier,
            visitor=visitor,
            settler=settler,
            clock=self.clock,
            metrics=metrics,
            settings=settings,
        )
        self.worker = Worker(
            queue=queue,
            packs=packs,
            ingester=Ingester(queue=queue, crawls=crawls, clock=self.clock),
            advancer=advancer,
            settler=settler,
            metrics=metrics,
        )

    async def gate(self, effect: str, moment: Moment) -> None:
        """Delay, fail, freeze or die around an effect."""
        if self._calm:
            return
        cloud, faults = self.cloud, self.cloud.faults
        random = cloud.random
        await self._alive()
        if moment is Moment.BEFORE:
            await asyncio.sleep(random.random() * faults.latency_s)
            if effect == "crawls.seal" and cloud.late_seeds < faults.late_seeds:
                cloud.drop_late_seeds()
                await asyncio.sleep(random.random() * 5)
            await self._alive()
        if self.kill_in:
            self.kill_in -= 1
            if not self.kill_in:
                cloud.trace.counts["kill"] += 1
                self.kill()
                await self._alive()
        chance = random.random()
        cloud.trace.note(f"{cloud.now_s:.6f} {self.name} {moment} {effect}")
        if moment is Moment.BEFORE and chance < faults.throttled:
            cloud.trace.counts["throttle"] += 1
            raise Transient(effect)
        if moment is Moment.AFTER and chance < faults.unknown:
            cloud.trace.counts["unknown outcome"] += 1
            raise Transient(effect)
        if chance > 1 - faults.frozen:
            cloud.trace.counts["freeze"] += 1
            await asyncio.sleep(random.choice((30, 400, 4_000, 90_000)))
            await self._alive()

    async def _alive(self) -> None:
        if self.dead:
            await asyncio.get_running_loop().create_future()

    def kill(self) -> None:
        """End the process between two instructions."""
        self.dead = True
        if self.task is not None:
            self.task.cancel()

    async def fetch(self, request: Request) -> Response | Failure:
        """The `Fetcher` port of this container."""
        await self._alive()
        self.cloud.trace.note(f"{self.cloud.now_s:.6f} {self.name} ask {request.url}")
        answer = await self.cloud.web.fetch(request, self.kill)
        await self._alive()
        return answer


class SimQueue(MemoryQueue):
    """The queue as containers and people see it: what is sent arrives in the cloud."""

    def __init__(self, cloud: Cloud, world: World, gate: object) -> None:
        super().__init__(world, gate)  # type: ignore[arg-type]
        self._cloud = cloud

    async def send(self, letters: Sequence[Letter], *, express: bool) -> None:
        """Send, then let the cloud collect."""
        try:
            await super().send(letters, express=express)
        finally:
            self._cloud.collect()

    async def send_seeds(self, seeds: Sequence[Seeds], *, express: bool) -> None:
        """Send, then let the cloud collect."""
        try:
            await super().send_seeds(seeds, express=express)
        finally:
            self._cloud.collect()


class Cloud:
    """The event source mapping: messages to containers, over and over."""

    def __init__(self, scenario: Scenario, world: World, web: SimWeb, trace: Trace) -> None:
        seed, faults = scenario.seed, scenario.faults
        self.seed = seed
        self.start_ms = MIDNIGHT_MS - round(scenario.before_midnight_s * 1000)
        self.random = Random(f"{seed}/cloud")
        self.world = world
        self.web = web
        self.faults = faults
        self.trace = trace
        self.messages: list[Message] = []
        self.dead_letters: list[tuple[str, str | None]] = []
        self.late_seeds = 0
        self.concurrency = self.random.randint(1, 4)
        self._warm: list[Container] = []
        self._names = 0
        self._ids = 0
        self._running = 0
        self._changed = asyncio.Event()

    @property
    def now_s(self) -> float:
        """True time."""
        return asyncio.get_running_loop().time()

    @property
    def idle(self) -> bool:
        """Whether nothing is queued, hidden, delayed or running."""
        return not self.messages and not self._running

    def drop(self, body: str, delay_s: float = 0) -> None:
        """Put a message on the queue."""
        self._ids += 1
        self.messages.append(Message(f"m{self._ids}", body, self.now_s + delay_s))
        self.trace.note(f"{self.now_s:.6f} m{self._ids} in {delay_s}: {body}")
        self._changed.set()

    def collect(self) -> None:
        """Take over what adapters sent."""
        for mail in self.world.sent:
            self.drop(mail.body, mail.delay_s)
        self.world.sent.clear()
        for mail in self.world.buried:
            self.dead_letters.append((mail.body, mail.reason))
        self.world.buried.clear()

    def drop_late_seeds(self) -> None:
        """Drop one more seed on every crawl that runs, at the worst moment."""
        self.late_seeds += 1
        self.trace.counts["late seeds"] += 1
        for crawl in self.world.crawls.values():
            if crawl.live and not crawl.continuous:
                url = f"{crawl.seeds[0]}extra/late{self.late_seeds}"
                self.drop(encode(Loose(crawl=crawl.id, references=(url,))))

    def redrive(self) -> int:
        """Move dead letters back, as new messages; what can never succeed stays where it is."""
        self.collect()
        letters, self.dead_letters = self.dead_letters, []
        for body, reason in letters:
            if reason is None or reason.startswith(("failed", "crashed")):
                self.drop(body)
            else:
                self.dead_letters.append((body, reason))
        return len(letters) - len(self.dead_letters)

    def person(self) -> Container:
        """A container whose ports a person's commands go through; faults do not touch it."""
        self._names += 1
        return Container(self, f"person{self._names}", calm=True)

    async def run(self, until_s: float, *, stop_when_idle: bool) -> bool:
        """Deliver messages until a moment, or until there are none; whether it went idle."""
        while self.now_s < until_s:
            self.collect()
            if self.trace.steps > STEPS_MAX:
                raise Endless
            if self.idle and stop_when_idle:
                return True
            batch = self._receive() if self._running < self.concurrency else []
            if batch:
                self._start(batch)
                if self.random.random() < self.faults.doubled:
                    self.trace.counts["doubled"] += 1
                    self._start(batch)
                continue
            await self._wait(until_s)
        return self.idle

    async def _wait(self, until_s: float) -> None:
        self._changed.clear()
        due = [message.visible_s for message in self.messages if message.visible_s > self.now_s]
        next_s = min([*due, until_s])
        if self._running >= self.concurrency:
            next_s = until_s
        try:
            await asyncio.wait_for(self._changed.wait(), max(0.001, next_s - self.now_s))
        except TimeoutError:
            return

    def _receive(self) -> list[Message]:
        visible = [message for message in self.messages if message.visible_s <= self.now_s]
        self.random.shuffle(visible)
        batch = visible[: self.random.randint(1, BATCH)]
        taken = []
        for message in batch:
            message.receives += 1
            if message.receives > RECEIVE_MAX:
                self.messages.remove(message)
                self.dead_letters.append((message.body, None))
                continue
            early = self.random.random() < self.faults.early
            message.visible_s = self.now_s + (1 if early else VISIBILITY_S)
            taken.append(message)
        return taken

    def _start(self, batch: list[Message]) -> None:
        self._running += 1
        task = asyncio.get_running_loop().create_task(self._invoke(list(batch)))
        task.add_done_callback(lambda done: done.result())

    async def _invoke(self, batch: list[Message]) -> None:
        container = self._container()
        if self.random.random() < self.faults.killed:
            container.kill_in = self.random.randint(1, 120)
        deliveries = [
            Delivery(id=message.id, body=message.body, receives=message.receives)
            for message in batch
        ]
        deadline_ms = container.clock.now_ms() + FUNCTION_TIMEOUT_S * 1000
        container.task = asyncio.get_running_loop().create_task(
            container.worker.run(deliveries, deadline_ms)
        )
        for message in batch:
            self.trace.note(
                f"{self.now_s:.6f} {container.name} receives {message.id} x{message.receives}"
            )
        try:
            done, _ = await asyncio.wait({container.task}, timeout=FUNCTION_TIMEOUT_S)
            if done and not container.task.cancelled() and not container.dead:
                self._acknowledge(batch, container.task.result())
                container.kill_in = 0
                self._warm.append(container)
            elif not done:
                self.trace.counts["time-out"] += 1
                # Half of them are killed, half go on as zombies that nobody listens to.
                if self.random.random() < 0.5:
                    container.kill()
        finally:
            self._running -= 1
            self._changed.set()

    def _acknowledge(self, batch: list[Message], failed: tuple[str, ...]) -> None:
        if self.random.random() < self.faults.ack_lost:
            self.trace.counts["ack lost"] += 1
            return
        self.trace.note(f"{self.now_s:.6f} done but for {sorted(failed)}")
        for message in batch:
            if message.id not in failed and message in self.messages:
                self.messages.remove(message)

    def _container(self) -> Container:
        if self._warm and self.random.random() < 0.8:
            return self._warm.pop(self.random.randrange(len(self._warm)))
        self._names += 1
        return Container(self, f"c{self._names}")
