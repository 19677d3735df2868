"""The exporter as a Lambda function, invoked by events and by a queue, also concurrently.

Lambda retries an event until a run of it ends, at most three times. SQS redelivers an order (a
message that continues an export) at most five times. Either can be delivered twice, at once or long
after the first was processed (case 27).
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

from orbweaver.exporting.run_state import decode_order, identity_of
from orbweaver.model.errors import Transient
from tests.simulation.exports import Run, Watch, days_wanted
from tests.simulation.process import ExporterProcess

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from tests.simulation.cloud import Cloud
    from tests.simulation.scenario import ExporterPlan

# infra/exporter.py: two retries after the first run; maximum receives of an order.
TRIES, RECEIVES = 3, 5
RETRY_S = 60.0
# An undeleted order becomes visible once its invocation must have ended.
HIDDEN_S = 60.0
TROUBLED_RUNS_MAX = 150


class ExportFunction:
    """The exporter's function and its order queue."""

    def __init__(self, cloud: Cloud, plan: ExporterPlan) -> None:
        self._cloud = cloud
        self._plan = plan
        self._waiting = 0
        self._idle = asyncio.Event()
        self._events = 0
        self._asked: set[str] = set()
        # Exporter faults; they are independent of the workers' faults.
        self.chances = Random(f"{cloud.seed}/exports")
        self._room = asyncio.Semaphore(self.chances.randint(1, 4))
        # Invocations that exceeded their time limit but are alive.
        self._zombies: list[ExporterProcess] = []
        self.watch = Watch(cloud.world, cloud.trace)

    @property
    def busy(self) -> bool:
        return self._waiting > 0

    def accept(self, event: Mapping[str, Any]) -> None:
        """Accept an event; it is delivered at least once."""
        self._events += 1
        identity = f"request-{self._events}"
        days = days_wanted(event, self._plan.span)
        known = identity_of(dict(event), identity)
        for day in days:
            # In hourly exports, an unfinished day waits for a current run. A repeated event
            # requests nothing more.
            waits = "day" not in event and self._plan.span == "hour" and day == days[-1]
            if not waits and known not in self._asked:
                self.watch.ask(day)
        self._asked.add(known)

        async def begin(process: ExporterProcess, _deadline_ms: int) -> None:
            await process.exporter.begin(event, identity)

        for _ in range(self._copies("event doubled")):
            self._keep(self._deliver(begin, days, 0, tries=TRIES, hidden_s=RETRY_S), days)

    def collect(self, hops: int) -> None:
        orders, self._cloud.world.ordered = self._cloud.world.ordered, []
        for mail in orders:
            day = decode_order(mail.body).scope.day
            if hops > self.watch.rounds_max(day):
                self.watch.found.append(f"{day}: continued {hops} times, and no end in sight")
                return
            self.watch.ordered(day, mail.body)
            for _ in range(self._copies("order doubled")):
                self._order(mail.body, day, hops)

    def _order(self, body: str, day: str, hops: int) -> None:
        plan = self._plan

        async def work(process: ExporterProcess, deadline_ms: int) -> None:
            if await process.exporter.handle(body, deadline_ms) is not None:
                self._cloud.trace.counts["export completed"] += 1

        hidden_s = plan.timeout_s + HIDDEN_S
        delivery = self._deliver(work, (day,), hops, tries=RECEIVES, hidden_s=hidden_s)
        self._keep(delivery, (day,))

    def _copies(self, kind: str) -> int:
        doubled = self.chances.random() < self._cloud.faults.doubled
        self._cloud.trace.counts[kind] += doubled
        return 1 + doubled

    def _keep(self, delivery: Awaitable[None], days: tuple[str, ...]) -> None:
        self._waiting += 1
        self._idle.clear()
        for day in days:
            self.watch.expect(day)

        async def deliver() -> None:
            try:
                await delivery
            finally:
                self._waiting -= 1
                if not self._waiting:
                    self._idle.set()
                for day in days:
                    self.watch.expect(day, -1)
                self._cloud.wake()

        task = asyncio.get_running_loop().create_task(deliver())
        task.add_done_callback(lambda done: done.result())

    async def _deliver(
        self,
        work: Callable[[ExporterProcess, int], Awaitable[None]],
        days: tuple[str, ...],
        hops: int,
        *,
        tries: int,
        hidden_s: float,
    ) -> None:
        counts = self._cloud.trace.counts
        await asyncio.sleep(self.chances.random() * self.chances.choice((0.1, 0.1, 90)))
        done = False
        for attempt in range(1, tries + 1):
            async with self._room:
                done = await self._run(work, days, hops)
            if done and self.chances.random() >= self._cloud.faults.ack_lost:
                return
            if not done:
                counts["export repeated"] += 1
            await asyncio.sleep(attempt * hidden_s)
        if not done:
            counts["export given up"] += 1
            for day in days:
                self.watch.give_up(day)

    async def _run(
        self,
        work: Callable[[ExporterProcess, int], Awaitable[None]],
        days: tuple[str, ...],
        hops: int,
    ) -> bool:
        cloud, plan = self._cloud, self._plan
        # The number of faults is bounded, otherwise a day could take forever.
        calm = cloud.trace.counts["export run"] >= TROUBLED_RUNS_MAX
        process = ExporterProcess(cloud, cloud.name("e"), plan, calm=calm)
        if not calm and self.chances.random() < cloud.faults.killed:
            process.kill_in = self.chances.randint(1, self.chances.choice((20, 60, 200)))
        process.hops = hops
        cloud.trace.note(f"{cloud.now_s:.6f} {process.name} exports {days}")
        cloud.trace.counts["export run"] += 1
        runs = [self.watch.begin(day) for day in days]
        deadline_ms = process.clock.now_ms() + round(plan.timeout_s * 1000)
        ended, done = await process.invoke(
            self._work(process, work, deadline_ms, runs), plan.timeout_s
        )
        if not ended and not process.dead:
            self._zombies.append(process)
            # A frozen process can write a file after it wakes, and die without a trace. Lambda ends
            # such processes too.
            for day in days:
                self.watch.give_up(day)
        return bool(ended and done)

    async def _work(
        self,
        process: ExporterProcess,
        work: Callable[[ExporterProcess, int], Awaitable[None]],
        deadline_ms: int,
        runs: list[Run],
    ) -> bool:
        """Run the work to its end even without a caller, so that resumed processes are watched."""
        try:
            await work(process, deadline_ms)
        except Transient:
            return False
        else:
            return True
        finally:
            for run in runs:
                self.watch.end(run)

    async def settle(self) -> None:
        """Export every day twice after faults have stopped."""
        cloud = self._cloud
        for process in self._zombies:
            process.kill()
        # Both exports see the same records, in one run.
        self._plan = replace(self._plan, reserve_ms=1_000)
        for day in self.watch.days():
            files: list[dict[str, bytes]] = []
            for _ in range(2):
                self.accept({"day": day})
                await self._idle.wait()
                written = cloud.world.files.items()
                # A frozen worker can still write bodies of a finished pack.
                files.append({key: body for key, body in written if key.startswith("exports/")})
            self.watch.settled(day, *files)
