"""Limits of time for requests: what runs out is ended, whoever else is looked after."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from aiohttp.base_protocol import BaseProtocol

from orbweaver.adapters.web import deadline as http_deadline
from orbweaver.adapters.web.address_guard import Permit
from orbweaver.adapters.web.deadline import Deadline, Deadlines
from orbweaver.adapters.web.pooled_request import Attempt

LONG_S, IDLE_S, SHORT_S = 60.0, 0.3, 0.02


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_deadline, "TICK_S", 0.005)


async def test_the_total_time_ends() -> None:
    """What takes longer than it may is a TimeoutError, and its task goes on."""
    deadline = Deadlines(LONG_S).within(SHORT_S)
    with pytest.raises(TimeoutError), deadline:
        await asyncio.sleep(LONG_S)
    assert deadline.expired
    task = asyncio.current_task()
    assert task is not None
    assert not task.cancelling()


async def test_it_is_ended_once() -> None:
    """A clean-up that outlasts ticks of the timer comes to its end, and it is a TimeoutError."""
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


async def test_the_head_of_an_answer_is_heard() -> None:
    """The limit of silence begins anew with the body."""
    loop = asyncio.get_running_loop()
    with Deadlines(IDLE_S).within(LONG_S) as deadline:
        assert not deadline.is_over(loop.time() + IDLE_S, IDLE_S)  # nothing is sent yet
        body = aiohttp.StreamReader(BaseProtocol(loop), 1, loop=loop)
        Attempt(deadline, Permit()).watch(body)
        assert deadline.is_over(loop.time() + IDLE_S, IDLE_S)


@pytest.mark.thorough
async def test_silence_ends_it_too() -> None:
    """From when something was heard, and not before; each word begins it anew."""
    loop = asyncio.get_running_loop()
    since_s = 0.0

    async def work() -> None:
        nonlocal since_s
        with Deadlines(IDLE_S).within(LONG_S) as deadline:
            await asyncio.sleep(1.5 * IDLE_S)
            for _ in range(15):
                deadline.heard()
                await asyncio.sleep(IDLE_S / 10)
            since_s = loop.time()
            deadline.heard()
            await asyncio.sleep(LONG_S)

    with pytest.raises(TimeoutError):
        await work()
    assert since_s
    assert loop.time() >= since_s + IDLE_S


async def test_what_is_released_takes_as_long_as_it_takes() -> None:
    """Neither limit holds any more."""
    with Deadlines(SHORT_S).within(SHORT_S) as deadline:
        deadline.heard()
        deadline.release()
        await asyncio.sleep(3 * SHORT_S)
    assert not deadline.expired


async def test_each_ends_for_itself() -> None:
    """Some run out of time beside others that do not."""
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


async def test_who_cancels_from_outside_is_heard() -> None:
    """A task that is cancelled stays that, even where its time is over as well."""
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


async def test_one_timer_looks_after_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many requests there are, and none where there is none."""
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
            deadline.heard()
    assert made == 1
    await asyncio.sleep(3 * SHORT_S)
    assert made == 2  # the sleep's: the other one has ended


def test_another_loop_has_its_own_timer() -> None:
    """A timer that a loop took along when it ended is replaced."""
    deadlines = Deadlines(LONG_S)

    async def brief() -> None:
        with deadlines.within(LONG_S):
            pass

    async def late() -> None:
        with deadlines.within(SHORT_S):
            await asyncio.sleep(LONG_S)

    asyncio.run(brief())
    with pytest.raises(TimeoutError):
        asyncio.run(late())
