"""Lambda execution environments: the product's own code over adapters that inject faults.

Before and after every effect (one call to AWS or to the web), a gate can delay, refuse, freeze or
end the process.
"""

from __future__ import annotations

import asyncio
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from orbweaver.adapters.local.reader import InPlaceReader
from orbweaver.exporting.exporter import ExporterParts
from orbweaver.model.errors import Transient
from orbweaver.model.settings import Settings
from orbweaver.worker.batch import Worker
from orbweaver.worker.host_claims import ClaimFiles
from tests.memory import (
    MemoryBacklog,
    MemoryBudgets,
    MemoryCrawls,
    MemoryEvents,
    MemoryFiles,
    MemoryFrontier,
    MemoryMetrics,
    MemoryPacks,
    Moment,
)
from tests.simulation.budgets import BODY_BYTES_MAX
from tests.simulation.clock import ERROR_MS_MAX, SimClock
from tests.simulation.rendering import BROWSER, QUEUE, SimRenderer
from tests.simulation.sqs import RECEIVE_MAX, SimQueue
from tests.simulation.tables import SimFiles, SimHosts, SimOrders, SimPages, SimWorkspace, fault_of

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from orbweaver.frontier.messages import Pack
    from orbweaver.model.http_exchange import Failure, Request, Response
    from orbweaver.worker.batch import Result
    from orbweaver.worker.ports import WorkerPorts
    from orbweaver.worker.rounds import Round
    from tests.simulation.cloud import Cloud
    from tests.simulation.scenario import ExporterPlan


# A worker defers a message of a newer version twice. Then it becomes a dead letter.
NEWER_WAIT_S = 1_200
ALWAYS_MS = 10**9
# After these effects, messages recorded in the table must be sent.
_BEFORE_SENDING = frozenset({"backlog.begin", "backlog.note_sent", "packs.commit"})


class Process:
    """One execution environment; `calm` ones belong to users and have no faults."""

    def __init__(self, cloud: Cloud, name: str, *, calm: bool = False) -> None:
        self.cloud = cloud
        self.name = name
        self.dead = False
        self.kill_in = 0
        # Effects until SIGTERM, and the delay until SIGKILL (None: not killed).
        self.told_in = 0
        self.grace_s: float | None = None
        # Number of invocations in the chain that led to this one.
        self.hops = 0
        self.slow_s = 0.0
        # Times of freezes, clock jumps, and the end.
        self.stops_s: list[float] = []
        # Number of journals at the start of the invocation.
        self.journals = 0
        self.random = Random(f"{cloud.seed}/{name}")
        skew_ms = cloud.faults.skew_ms
        ahead_ms = self.random.randint(-skew_ms, skew_ms) if skew_ms else 0
        self.clock = SimClock(cloud.start_ms, ahead_ms)
        # Its faults. Each process has its own random generator.
        self.chances = cloud.random
        self._calm = calm
        self._task: asyncio.Task[Any] | None = None

    async def invoke(self, work: Coroutine[Any, Any, Any], timeout_s: float) -> tuple[bool, Any]:
        trace = self.cloud.trace
        self.journals = len(self.cloud.world.journals)
        self._task = asyncio.get_running_loop().create_task(work)
        done, _ = await asyncio.wait({self._task}, timeout=timeout_s)
        if not done:
            self.cloud.never.append(self._task)  # Keeps the task from garbage collection.
            trace.counts["time-out"] += 1
            # Half of them are killed, half run on without a caller.
            if self.chances.random() < 0.5:
                self.kill()
            return False, None
        if self.dead or self._task.cancelled():
            return False, None
        return True, self._task.result()

    async def gate(self, effect: str, moment: Moment) -> None:
        """Delay, fail, freeze or die around an effect."""
        if self._calm:
            return
        cloud, faults = self.cloud, self.cloud.faults
        random = self.chances
        await self._alive()
        if moment is Moment.BEFORE:
            slow_s = faults.counters_s if effect == "crawls.shard" else self.slow_s
            if effect.startswith("backlog") and random.random() < faults.held_up:
                slow_s += 40.0
            await asyncio.sleep(random.random() * (faults.latency_s + slow_s))
            if effect == "crawls.seal" and cloud.late_seeds < faults.late_seeds:
                cloud.drop_late_seeds()
                await asyncio.sleep(random.random() * 20)
            await self._alive()
        await self._die_at(effect, moment)
        self._count_down()
        if self.kill_in:
            self.kill_in -= 1
            if not self.kill_in:
                await self._die("kill")
        chance = random.random()
        cloud.trace.note(f"{cloud.now_s:.6f} {self.name} {moment} {effect}")
        if moment is Moment.BEFORE and chance < faults.throttled:
            cloud.trace.counts[fault_of(effect, "throttle")] += 1
            raise Transient(effect)
        if moment is Moment.AFTER and chance < faults.unknown:
            cloud.trace.counts[fault_of(effect, "unknown outcome")] += 1
            raise Transient(effect)
        await self._linger(chance)

    async def _die_at(self, effect: str, moment: Moment) -> None:
        """Die where a crash does most harm."""
        cloud, faults, random = self.cloud, self.cloud.faults, self.chances
        if moment is Moment.BEFORE:
            # For rule changes: some messages of an outbox are sent, and no table records it yet.
            if effect == "packs.sent" and cloud.edits and random.random() < faults.killed:
                await self._die("kill before it is known as sent")
        elif effect == "crawls.seal" and random.random() < faults.killed_sealing:
            await self._die("kill after the seal")
        elif effect in _BEFORE_SENDING and random.random() < faults.killed / 4:
            await self._die("kill before what was taken is sent")

    async def _linger(self, chance: float) -> None:
        """Freeze for a while, or change the clock meanwhile."""
        cloud, faults = self.cloud, self.cloud.faults
        if chance > 1 - faults.frozen:
            cloud.trace.counts["freeze"] += 1
            self.stops_s.append(cloud.now_s)
            await asyncio.sleep(self.chances.choice((30, 400, 4_000, 90_000)))
            await self._alive()
        elif chance > 1 - faults.frozen - faults.jumps:
            cloud.trace.counts["clock jump"] += 1
            self.stops_s.append(cloud.now_s)
            self.clock.jump(self.chances.randint(-ERROR_MS_MAX, ERROR_MS_MAX))

    async def _alive(self) -> None:
        # A process in an endless loop is stopped too, so that the mapping sees it (I4).
        if self.dead or self.cloud.trace.endless:
            never = asyncio.get_running_loop().create_future()
            # Otherwise Python collects it together with the tasks that wait for it.
            self.cloud.never.append(never)
            await never

    def _count_down(self) -> None:
        if self.told_in:
            self.told_in -= 1
            if not self.told_in:
                self._tell()

    def _tell(self) -> None:
        """Send SIGTERM, again a little later, and make sure that the process ends."""
        cloud, loop = self.cloud, asyncio.get_running_loop()
        cloud.trace.counts["told to end"] += 1
        self.end()
        loop.call_later(0.1, self.end)
        if self.grace_s is not None:
            loop.call_later(self.grace_s, self._kill_told)

    def end(self) -> None: ...

    def _kill_told(self) -> None:
        if not self.dead:
            self.cloud.trace.counts["killed after being told"] += 1
            self.kill()

    async def _die(self, how: str) -> None:
        self.cloud.trace.counts[how] += 1
        self.kill()
        await self._alive()

    def kill(self) -> None:
        self.dead = True
        self.stops_s.append(self.cloud.now_s)
        for edit in self.cloud.edits:
            edit()
        if self._task is not None:
            self._task.cancel()


class _Worker(Worker):
    """A worker that reports packs (batches of URLs) that it takes before their messages."""

    def __init__(self, cloud: Cloud, ports: WorkerPorts, **parts: Any) -> None:
        super().__init__(ports, **parts)
        self._cloud = cloud
        # In this invocation.
        self.taken: set[str] = set()

    async def take_on(self, pack: Pack, round_: Round) -> Result:
        self._cloud.trace.counts["taken on"] += 1
        self.taken.add(pack.id)
        self._cloud.handed.update((pack.crawl, target.url) for target in pack.targets)
        return await super().take_on(pack, round_)


class WorkerProcess(Process):
    """A worker and its ports; users' commands also use a worker's ports."""

    def __init__(
        self, cloud: Cloud, name: str, *, calm: bool = False, renders: bool = False
    ) -> None:
        super().__init__(cloud, name, calm=calm)
        self.renders = renders
        settings = Settings.of(
            receive_max=RECEIVE_MAX,
            body_bytes_max=BODY_BYTES_MAX,
            wait_s_max=cloud.wait_s_max,
            segment_wait_s=cloud.segment_wait_s,
            waits_billed=cloud.waits_billed,
            newer_wait_s=NEWER_WAIT_S,
            render_queue_url=QUEUE if cloud.renders else "",
            browser=BROWSER if renders else "",
            claims_travel="yes" if cloud.claims_travel else "no",
        )
        world = cloud.world
        ports = SimpleNamespace(
            settings=settings,
            clock=self.clock,
            random=self.random,
            delivery_random=Random(f"{cloud.seed}/{name}/deliveries"),
            queue=SimQueue(world, self.gate, self._arrive),
            packs=MemoryPacks(world, self.gate),
            crawls=MemoryCrawls(world, self.gate),
            events=MemoryEvents(world, self.gate),
            frontier=MemoryFrontier(world, self.gate),
            pages=SimPages(world, self.gate),
            backlog=MemoryBacklog(world, self.gate),
            hosts=SimHosts(world, self.gate, cloud.web),
            budgets=MemoryBudgets(world, self.gate),
            files=MemoryFiles(world, self.gate),
            reader=InPlaceReader(),
            renderer=SimRenderer(self) if renders else None,
        )
        self.queue, self.packs, self.crawls = ports.queue, ports.packs, ports.crawls
        self.worker = _Worker(cloud, ports, fetcher=self, metrics=MemoryMetrics())
        self.ending = self.worker.ending
        # Sites are small and rounds long, so one new claim is enough to write the file of claims.
        self.worker.processor.claim_files = ClaimFiles(
            self.worker.processor._seen,
            files=ports.files,
            clock=self.clock,
            settings=settings,
            new_least=1,
            last_ms=ALWAYS_MS,
        )

    def end(self) -> None:
        self.worker.end()

    def _arrive(self) -> None:
        self.cloud.collect(self.hops + 1)

    async def fetch(self, request: Request) -> Response | Failure:
        await self._alive()
        self.cloud.trace.note(f"{self.cloud.now_s:.6f} {self.name} ask {request.url}")
        answer = await self.cloud.web.fetch(request, self)
        await self._alive()
        return answer


class ExporterProcess(Process):
    """An exporter and its ports."""

    def __init__(self, cloud: Cloud, name: str, plan: ExporterPlan, *, calm: bool = False) -> None:
        super().__init__(cloud, name, calm=calm)
        world = cloud.world
        self.chances = cloud.exports.chances
        self.slow_s = plan.slow_s
        self.exporter = ExporterParts(
            pages=SimPages(world, self.gate),
            crawls=MemoryCrawls(world, self.gate),
            files=SimFiles(world, self.gate, cloud.exports.watch.look),
            orders=SimOrders(world, self.gate, self._arrive),
            events=MemoryEvents(world, self.gate),
            clock=self.clock,
            random=self.random,
            formats=plan.formats,
            part_rows_max=plan.part_rows,
            part_bytes_max=plan.part_bytes,
            workspace=SimWorkspace(),
            span=plan.span,
            read_ahead_rows=plan.read_ahead_rows,
            reserve_ms=plan.reserve_ms,
        ).exporter()

    def _arrive(self) -> None:
        self.cloud.exports.collect(self.hops + 1)
