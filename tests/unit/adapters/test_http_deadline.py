"""Time limits of requests."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from aiohttp.base_protocol import BaseProtocol

from orbweaver.adapters.web import deadline as http_deadline
from orbweaver.adapters.web.address_guard import Permit
from orbweaver.adapters.web.deadline import Deadline, Deadlines
from orbweaver.adapters.web.pooled_request import Attempt
from tests.simulation.loop import in_virtual_time, run

LONG_S, IDLE_S, SHORT_S = 60.0, 0.3, 0.02


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_deadline, "TICK_S", 0.005)


@in_virtual_time
async def test_deadline_ends_after_total_time() -> None:
    deadline = Deadlines(LONG_S).within(SHORT_S)
    with pytest.raises(TimeoutError), deadline:
        await asyncio.sleep(LONG_S)
    assert deadline.expired
    task = asyncio.current_task()
    assert task is not None
    assert not task.cancelling()


@in_virtual_time
async def test_deadline_cancels_task_once() -> None:
    cleaned = False

    async def work() -> None:
        nonlocal cleaned
        try:
            await asyncio.sleep(LONG_S)
        finally:
            await asyncio.sleep(10 * http_deadline.TICK_S)
            cleaned = True

    with pytest.raises(TimeoutError), Deadlines(LONG_S).within(SHORT_S):
        await work()
    assert cleaned


@in_virtual_time
async def test_response_head_restarts_idle_limit() -> None:
    loop = asyncio.get_running_loop()
    with Deadlines(IDLE_S).within(LONG_S) as deadline:
        assert not deadline.is_over(loop.time() + IDLE_S)  # before the request is sent
        body = aiohttp.StreamReader(BaseProtocol(loop), 1, loop=loop)
        Attempt(deadline, Permit()).watch(body)
        assert deadline.is_over(loop.time() + IDLE_S)


@in_virtual_time
async def test_deadline_ends_after_silence() -> None:
    loop = asyncio.get_running_loop()
    since_s = 0.0

    async def work() -> None:
        nonlocal since_s
        with Deadlines(IDLE_S).within(LONG_S) as deadline:
            await asyncio.sleep(1.5 * IDLE_S)
            for _ in range(15):
                deadline.note_activity()
                await asyncio.sleep(IDLE_S / 10)
            since_s = loop.time()
            deadline.note_activity()
            await asyncio.sleep(LONG_S)

    with pytest.raises(TimeoutError):
        await work()
    assert since_s
    assert loop.time() >= since_s + IDLE_S


@in_virtual_time
async def test_released_deadline_has_no_limit() -> None:
    with Deadlines(SHORT_S).within(SHORT_S) as deadline:
        deadline.note_activity()
        deadline.release()
        await asyncio.sleep(3 * SHORT_S)
    assert not deadline.expired


@in_virtual_time
async def test_each_deadline_expires_independently() -> None:
    deadlines = Deadlines(LONG_S)

    async def ended(total_s: float) -> bool:
        try:
            with deadlines.within(total_s):
                await asyncio.sleep(3 * SHORT_S)
        except TimeoutError:
            return True
        return False

    asked = (SHORT_S, LONG_S) * 20
    assert await asyncio.gather(*map(ended, asked)) == [total_s == SHORT_S for total_s in asked]


@in_virtual_time
async def test_outside_cancellation_is_not_a_timeout() -> None:
    begun: list[Deadline] = []

    async def work() -> None:
        with Deadlines(LONG_S).within(LONG_S) as deadline:
            begun.append(deadline)
            await asyncio.sleep(LONG_S)

    for over in (False, True):
        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        if over:
            begun[-1].cancel()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


@in_virtual_time
async def test_all_deadlines_share_one_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, made = asyncio.get_running_loop(), 0
    call_at = loop.call_at

    def counted(*args: object, **options: object) -> asyncio.TimerHandle:
        nonlocal made
        made += 1
        return call_at(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(http_deadline, "TICK_S", SHORT_S)
    monkeypatch.setattr(loop, "call_at", counted)
    deadlines = Deadlines(LONG_S)
    for _ in range(1_000):
        with deadlines.within(LONG_S) as deadline:
            deadline.note_activity()
    assert made == 1
    await asyncio.sleep(3 * SHORT_S)
    assert made == 2  # the timer of `sleep`: the other one has ended


def test_new_event_loop_gets_new_timer() -> None:
    deadlines = Deadlines(LONG_S)

    async def brief() -> None:
        with deadlines.within(LONG_S):
            pass

    async def late() -> None:
        with deadlines.within(SHORT_S):
            await asyncio.sleep(LONG_S)

    run(brief())
    with pytest.raises(TimeoutError):
        run(late())
