"""Ended processes of a simulation leave no trace outside it."""

from __future__ import annotations

import asyncio
import gc
from contextlib import suppress
from random import Random
from types import SimpleNamespace
from typing import cast

import pytest

from tests.simulation import loop
from tests.simulation.cloud import Cloud
from tests.simulation.process import Process
from tests.simulation.trace import Trace

pytestmark = pytest.mark.simulation


def _cloud() -> Cloud:
    faults = SimpleNamespace(skew_ms=0)
    world = SimpleNamespace(journals=())
    cloud = SimpleNamespace(seed=1, faults=faults, start_ms=0, random=Random(2), world=world)
    cloud.trace, cloud.never, cloud.edits, cloud.now_s = Trace(), [], [], 0.0
    return cast("Cloud", cloud)


async def _ends_in_two_steps() -> None:
    try:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await asyncio.get_running_loop().create_future()
    finally:
        await asyncio.sleep(1)


def test_tasks_polling_clock_reach_their_time() -> None:
    """Holds if a timer runs slightly early while another task is always ready."""
    looks = 0

    async def wait(until_s: float, steps: int) -> None:
        nonlocal looks
        running = asyncio.get_running_loop()
        while running.time() < until_s:
            looks += 1
            assert looks < 10_000
            if looks > 3:
                for _ in range(steps):
                    await asyncio.sleep(0)
                steps = 0
            with suppress(TimeoutError):
                async with asyncio.timeout(until_s - running.time()):
                    await asyncio.Event().wait()

    async def main() -> None:
        moments = Random(1)
        for _ in range(100):
            now_s = asyncio.get_running_loop().time()
            until_s = now_s + moments.random()
            asyncio.get_running_loop().call_at(until_s - 1e-13, lambda: None)
            await asyncio.gather(*(wait(until_s, steps) for steps in range(3)))

    loop.run(main())


def test_remaining_tasks_are_cancelled_completely() -> None:
    """Includes tasks that wait again after their cancellation; pytest fails on remaining ones."""

    async def main() -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(_ends_in_two_steps())
        await asyncio.sleep(1)
        return task

    assert loop.run(main()).cancelled()


def test_killed_process_is_not_collected_before_end() -> None:
    """Only the process refers to the object that its cancelled task awaits."""

    async def main() -> int:
        process = Process(_cloud(), "a")
        asyncio.get_running_loop().call_later(1, process.kill)
        ended = await process.invoke(_ends_in_two_steps(), 5)
        assert ended == (False, None)
        process._task = None
        gc.collect()
        return len(asyncio.all_tasks())

    assert loop.run(main()) == 2
