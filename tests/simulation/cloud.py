"""Lambda's event source mapping under faults: delivers queue messages to workers.

A pack is the message for a batch of URLs.

Acknowledgements get lost. An invocation can be killed before or after any effect, reach its time
limit, freeze and resume after its timeout, or run twice at once. Containers are warm or new, and
their clocks differ.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from orbweaver.frontier.messages import Loose, Pack, SeedsMessage, encode
from orbweaver.model.crawl_settings import RenderMode
from orbweaver.model.settings import Settings
from orbweaver.worker.pack import Delivery
from tests.simulation.exporting import ExportFunction
from tests.simulation.process import WorkerProcess
from tests.simulation.rendering import QUEUE
from tests.simulation.sqs import Message, Sqs, decoded
from tests.simulation.trace import Endless

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.memory import World
    from tests.simulation.faults import Faults
    from tests.simulation.scenario import Scenario
    from tests.simulation.trace import Trace
    from tests.simulation.web import SimWeb

MIDNIGHT_MS = 1_790_035_200_000  # 2026-09-22T00:00:00Z
FUNCTION_TIMEOUT_S = 60
VISIBILITY_S = 6 * FUNCTION_TIMEOUT_S
# RecursiveLoop=Allow. With Terminate it would be 16: Lambda takes a longer chain of invocations for
# a loop (case 22).
HOPS_MAX: int | None = None


class Cloud:
    """Queues, functions and tables of one account."""

    def __init__(self, scenario: Scenario, world: World, web: SimWeb, trace: Trace) -> None:
        self.seed = scenario.seed
        self.start_ms = MIDNIGHT_MS - round(scenario.before_midnight_s * 1000)
        self.random = Random(f"{self.seed}/cloud")
        self.world = world
        self.web = web
        self.faults = replace(scenario.faults)
        self.trace = trace
        self.sqs = Sqs(world, trace, self.random, self.faults)
        self.exports = ExportFunction(self, scenario.exporter)
        self.late_seeds = 0
        # Awaited by dead processes.
        self.never: list[asyncio.Future[None]] = []
        # Deliveries of a crawl's URL to workers; each delivery may have caused a request.
        self.handed: Counter[tuple[str, str]] = Counter()
        # Packs and seeds at which a worker died, or that it returned. Their URLs may stay open.
        self.scarred: set[str] = set()
        # User actions per crawl, and their time.
        self.steered: list[tuple[str, str, float]] = []
        # User edits made when a worker dies, so that its successor sees them.
        self.edits: list[Callable[[], None]] = []
        # The page that a user erased, and the time and the crawls that existed then.
        self.erased_url, self.erased_s = "", 0.0
        self.erased_in: frozenset[str] = frozenset()
        # Exceptions that escaped a worker: must stay empty (case 9).
        self.raised: list[str] = []
        # Maximum wait of a worker for slots (a slot is a host's next permitted request time).
        self.wait_s_max = scenario.wait_s_max
        # Maximum wait of a worker for other packs' pages before it stores a file.
        self.segment_wait_s = Settings().worker.segment_wait_s
        self.waits_billed = "yes"
        self.claims_travel = scenario.claims_travel
        # Decides which workers get SIGTERM; a separate generator leaves the rest of the seed
        # unchanged.
        self._tellings = Random(f"{self.seed}/told")
        self._concurrency = self.random.randint(1, 4)
        # True if some workers have a browser, and a queue of their own.
        self.renders = any(crawl.render is not RenderMode.NEVER for crawl in scenario.crawls)
        # Workers by whether they have a browser.
        self._warm: dict[bool, list[WorkerProcess]] = {True: [], False: []}
        self._names = 0
        self._running = 0
        self._changed = asyncio.Event()

    @property
    def now_s(self) -> float:
        return asyncio.get_running_loop().time()

    @property
    def idle(self) -> bool:
        return not self.sqs.messages and not self._running and not self.exports.busy

    @property
    def dead_letters(self) -> list[tuple[str, str | None]]:
        return self.sqs.dead_letters

    def calm(self) -> None:
        self.faults = self.sqs.faults = self.faults.calmed()

    def wake(self) -> None:
        self._changed.set()

    def drop(self, body: str, delay_s: float = 0) -> None:
        self.sqs.drop(body, self.now_s, delay_s=delay_s)
        self.wake()

    def collect(self, hops: int = 0) -> None:
        """Put the messages that adapters sent on the queue."""
        self.sqs.collect(self.now_s, hops)
        self.wake()

    def drop_late_seeds(self) -> None:
        """Send one more seed to every running crawl just before it may end."""
        self.late_seeds += 1
        self.trace.counts["late seeds"] += 1
        for crawl in self.world.crawls.values():
            if crawl.live and not crawl.continuous and crawl.seeds:
                url = f"{crawl.seeds[0]}extra/late{self.late_seeds}"
                self.drop(encode(Loose(crawl=crawl.id, references=(url,))))

    def redrive(self) -> int:
        return self.sqs.redrive(self.now_s)

    def name(self, kind: str) -> str:
        self._names += 1
        return f"{kind}{self._names}"

    def person(self) -> WorkerProcess:
        return WorkerProcess(self, self.name("person"), calm=True)

    async def run(self, until_s: float, *, stop_when_idle: bool) -> bool:
        """Deliver messages until a time or until idle; return whether it became idle."""
        while self.now_s < until_s:
            if self.trace.endless:
                raise Endless
            if self.idle and stop_when_idle:
                return True
            batch: list[Message] = []
            if self._running < self._concurrency:
                batch = self.sqs.receive(self.now_s, VISIBILITY_S, HOPS_MAX)
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
        now_s = self.now_s
        next_s = until_s
        if self._running < self._concurrency:
            # Take the visible messages. SQS has already moved those over the receive count to dead
            # letters.
            next_s = min([until_s, *(message.visible_s for message in self.sqs.messages)])
        try:
            await asyncio.wait_for(self._changed.wait(), max(0.001, next_s - now_s))
        except TimeoutError:
            return

    def _start(self, batch: list[Message]) -> None:
        self._running += 1
        task = asyncio.get_running_loop().create_task(self._invoke(list(batch)))
        task.add_done_callback(lambda done: done.result())

    async def _invoke(self, batch: list[Message]) -> None:
        faults = self.faults  # Use the faults of this moment: they may be off at the end.
        process = self._process(renders=batch[0].queue == QUEUE)
        if self.random.random() < faults.killed:
            process.kill_in = self.random.randint(1, self.random.choice((8, 30, 120)))
        self._plan_end(process)
        process.hops = max(message.hops for message in batch)
        process.clock.begin()
        for message in batch:
            self.trace.note(
                f"{self.now_s:.6f} {process.name} receives {message.id} x{message.receives}"
            )
        packs = self._hand_out(batch)
        deliveries = [
            Delivery(
                id=message.id,
                body=message.body,
                receives=message.receives,
                queue=message.queue,
                since_ms=message.since_ms,
                handle=message.id,
            )
            for message in batch
        ]
        deadline_ms = process.clock.now_ms() + FUNCTION_TIMEOUT_S * 1000
        failed: Sequence[str] | None = None
        try:
            work = process.worker.run(deliveries, deadline_ms)
            ended, failed = await process.invoke(work, FUNCTION_TIMEOUT_S)
            if ended:
                self.sqs.retry(self.now_s)
                self._check_requeued(process, faults, failed or ())
                self._acknowledge(batch, failed or ())
                process.kill_in = process.told_in = 0
                self._warm[process.renders].append(process)
        except Exception as error:  # noqa: BLE001 - a worker deals with its own failures
            self.raised.append(repr(error))
        finally:
            self.scarred |= {
                pack for pack, message in packs if failed is None or message.id in failed
            }
            if failed is None:
                self.scarred |= process.worker.taken
            process.worker.taken = set()
            self._running -= 1
            self._changed.set()

    def _plan_end(self, process: WorkerProcess) -> None:
        """Send SIGTERM to some workers at a random time; most are killed soon afterwards."""
        chances = self._tellings
        if chances.random() < self.faults.told:
            process.told_in = chances.randint(1, chances.choice((8, 30, 120)))
            process.grace_s = chances.choice((0.1, 2.0, 2.0, None))

    def _check_requeued(
        self, process: WorkerProcess, faults: Faults, failed: Sequence[str]
    ) -> None:
        """Check that a worker that ended after SIGTERM left no message invisible."""
        if process.ending.is_announced:
            self.trace.counts["ended as told"] += 1
            if failed and not (faults.throttled or faults.unknown):
                self.raised.append(f"told to end, it left {len(failed)} messages to wait")

    def _hand_out(self, batch: Sequence[Message]) -> list[tuple[str, Message]]:
        """Record a batch's packs and the URLs that it permits to request."""
        packs = []
        for message in batch:
            body = decoded(message.body)
            if isinstance(body, Pack | SeedsMessage):
                packs.append((body.id, message))
            if isinstance(body, Pack):
                self.handed.update((body.crawl, target.url) for target in body.targets)
        return packs

    def _acknowledge(self, batch: list[Message], failed: Sequence[str]) -> None:
        if self.random.random() < self.faults.ack_lost:
            self.trace.counts["ack lost"] += 1
            return
        self.trace.note(f"{self.now_s:.6f} done but for {sorted(failed)}")
        self.sqs.delete([message for message in batch if message.id not in failed])

    def _process(self, *, renders: bool) -> WorkerProcess:
        warm = self._warm[renders]
        if warm and self.random.random() < 0.8:
            return warm.pop(self.random.randrange(len(warm)))
        return WorkerProcess(self, self.name("r" if renders else "c"), renders=renders)
