"""The exporter as a function that is invoked by events: more than once, at once, and again.

Lambda keeps an event until a run of it comes to its end, and gives up after the third. An event
may be delivered twice, at once or after the first has long been dealt with (case 27).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from orbweaver.exporter import Exported
from orbweaver.ports import Transient
from tests.simulation.exports import Run, Watch, day_meant
from tests.simulation.process import ExporterProcess

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.simulation.cloud import Cloud
    from tests.simulation.scenario import ExporterPlan

# infra/exporter.py: two more after the first.
TRIES = 3
RETRY_S = 60.0
TROUBLED_RUNS_MAX = 100


class ExportFunction:
    """The exporter's function."""

    def __init__(self, cloud: Cloud, plan: ExporterPlan) -> None:
        self._cloud = cloud
        self._plan = plan
        self._events = 0
        # Past their time limit, and not dead yet.
        self._zombies: list[ExporterProcess] = []
        self.watch = Watch(cloud.world, cloud.trace)

    @property
    def busy(self) -> bool:
        """Whether an event is not yet dealt with."""
        return self._events > 0

    def accept(self, event: Mapping[str, Any], *, hops: int = 0) -> None:
        """Take an event; it is delivered at least once."""
        day = day_meant(event)
        if hops > self.watch.rounds_max(day):
            self.watch.found.append(f"{day}: continued {hops} times, and no end in sight")
            return
        self._keep(event, hops)
        cloud = self._cloud
        if cloud.random.random() < cloud.faults.doubled:
            cloud.trace.counts["event doubled"] += 1
            self._keep(event, hops)

    def _keep(self, event: Mapping[str, Any], hops: int) -> None:
        self._events += 1
        day = day_meant(event)
        self.watch.expect(day)
        task = asyncio.get_running_loop().create_task(self._deliver(event, day, hops))
        task.add_done_callback(lambda done: done.result())

    async def _deliver(self, event: Mapping[str, Any], day: str, hops: int) -> None:
        cloud = self._cloud
        try:
            await asyncio.sleep(cloud.random.random() * cloud.random.choice((0.1, 0.1, 90)))
            for attempt in range(1, TRIES + 1):
                if await self._run(event, day, hops):
                    return
                cloud.trace.counts["export repeated"] += 1
                await asyncio.sleep(attempt * RETRY_S)
            cloud.trace.counts["export given up"] += 1
            self.watch.give_up(day)
        finally:
            self._events -= 1
            self.watch.expect(day, -1)
            cloud.wake()

    async def _run(self, event: Mapping[str, Any], day: str, hops: int) -> bool:
        cloud, plan = self._cloud, self._plan
        # Each run that dies after it had the day continued doubles the runs there are: the
        # adversary tires after so many, or there would be no end of them.
        calm = cloud.trace.counts["export run"] >= TROUBLED_RUNS_MAX
        process = ExporterProcess(cloud, cloud.name("e"), plan, calm=calm)
        if not calm and cloud.random.random() < cloud.faults.killed:
            process.kill_in = cloud.random.randint(1, cloud.random.choice((20, 60, 200)))
        process.hops = hops
        cloud.trace.note(f"{cloud.now_s:.6f} {process.name} exports {day}")
        cloud.trace.counts["export run"] += 1
        run = self.watch.begin(day)
        deadline_ms = process.clock.now_ms() + round(plan.timeout_s * 1000)
        work = self._work(process, event, deadline_ms, run)
        ended, completed = await process.invoke(work, plan.timeout_s)
        if not ended and not process.dead:
            self._zombies.append(process)
            # It may find others' parts when it wakes, and withdraw the manifest; nobody hears that
            # it failed. Safe, but the day has to be exported again. Lambda itself ends its like.
            self.watch.give_up(day)
        return bool(ended and completed)

    async def _work(
        self, process: ExporterProcess, event: Mapping[str, Any], deadline_ms: int, run: Run
    ) -> bool:
        """Run to the end, whoever still waits for it: a zombie that wakes is watched, too."""
        counts = self._cloud.trace.counts
        try:
            result = await process.exporter.run(
                event, deadline_ms=deadline_ms, continuation=process
            )
        except Transient:
            return False
        except asyncio.CancelledError:
            self.watch.died(day=run.day)
            raise
        else:
            if isinstance(result, Exported):
                counts["export completed"] += 1
                self.watch.completed(run, result.manifest.day)
            else:
                counts["export continued"] += 1
            return True
        finally:
            self.watch.end(run)

    async def settle(self) -> None:
        """Have a person export every day twice, when nothing goes wrong any more."""
        cloud = self._cloud
        for process in self._zombies:
            process.kill()
        for day in self.watch.days():
            files: list[dict[str, bytes]] = []
            for _ in range(2):
                process = ExporterProcess(cloud, cloud.name("e"), self._plan, calm=True)
                run = self.watch.begin(day)
                await process.exporter.export(day)
                self.watch.end(run)
                files.append(dict(cloud.world.files))
            self.watch.settled(day, *files)
