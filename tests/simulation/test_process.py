"""What ends in a simulation does so without a trace outside of it."""

from __future__ import annotations

import asyncio
import gc
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from tests.simulation import loop
from tests.simulation.process import Process
from tests.simulation.trace import Trace

if TYPE_CHECKING:
    from tests.simulation.cloud import Cloud

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


def test_what_is_left_behind_is_cancelled_to_its_end() -> None:
    """Also what waits for something else when it is cancelled; pytest fails on what does not."""

    async def main() -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(_ends_in_two_steps())
        await asyncio.sleep(1)
        return task

    assert loop.run(main()).cancelled()


def test_what_a_killed_process_ran_is_not_collected_before_the_end() -> None:
    """What it waits for when it is cancelled is nobody else's, so it would be."""

    async def main() -> int:
        process = Process(_cloud(), "a")
        asyncio.get_running_loop().call_later(1, process.kill)
        ended = await process.invoke(_ends_in_two_steps(), 5)
        assert ended == (False, None)
        process._task = None
        gc.collect()
        return len(asyncio.all_tasks())

    assert loop.run(main()) == 2
