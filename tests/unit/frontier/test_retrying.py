"""Retries of port calls, reading on after an error, and limited concurrency."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from random import Random

import pytest

from orbweaver.frontier.retrying import RetryPolicy, all_of, closing, happens
from orbweaver.model.backoff import ATTEMPTS_MAX
from orbweaver.model.errors import Permanent, Transient
from orbweaver.model.page_record import PageRecord, page_key
from tests.memory import ManualClock, MemoryPages, World
from tests.unit.export_stage import CRAWL, DAY, NOON_MS, pages_of

TRIES = range(ATTEMPTS_MAX)


class Waits(ManualClock):
    """A clock that records how long it was slept on."""

    def __init__(self) -> None:
        super().__init__(NOON_MS)
        self.slept_s: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept_s.append(seconds)


class Calls:
    """A port call that raises the given faults and then returns; `made` counts calls."""

    def __init__(self, *faults: Exception) -> None:
        self.faults = list(faults)
        self.made = 0

    async def __call__(self) -> str:
        self.made += 1
        if self.faults:
            raise self.faults.pop(0)
        return "done"


class Faulty(MemoryPages):
    """Pages of one shard whose reads fail after the given numbers of rows.

    `open` counts open reads.
    """

    def __init__(self, rows: Sequence[int], count: int = 6) -> None:
        self.left = list(rows)
        self.open = 0
        self.asked: list[str | None] = []
        world = World()
        super().__init__(world, shards=1)
        world.pages.update({page_key(record, 1): record for record in pages_of(range(count))})

    async def read_shard(
        self, day: str, shard: int, *, after: str | None = None, crawl: str | None = None
    ) -> AsyncGenerator[tuple[str, PageRecord], None]:
        self.asked.append(after)
        stop = self.left.pop(0) if self.left else None
        self.open += 1
        try:
            place = 0
            async for row in super().read_shard(day, shard, after=after, crawl=crawl):
                if place == stop:
                    raise Transient("busy")
                place += 1
                yield row
        finally:
            self.open -= 1


def patience(clock: ManualClock, base_s: float = 2.0) -> RetryPolicy:
    return RetryPolicy(clock=clock, random=Random(1), base_s=base_s)


async def keys_of(pages: Faulty, clock: ManualClock) -> list[str]:
    reading = patience(clock).read_shard(pages, DAY, 0, crawl=CRAWL)
    return [key async for key, _ in reading]


# --- one call -----------------------------------------------------------------------------------


@pytest.mark.parametrize("faults", TRIES)
async def test_transient_fault_is_retried_after_wait(faults: int) -> None:
    call, clock = Calls(*[Transient("busy")] * faults), Waits()
    assert await patience(clock).call(call) == "done"
    assert call.made == faults + 1
    assert len(clock.slept_s) == faults


@pytest.mark.parametrize("base_s", [0.2, 2.0])
async def test_waits_double_from_base(base_s: float) -> None:
    clock = Waits()
    await patience(clock, base_s).call(Calls(*[Transient("busy")] * (ATTEMPTS_MAX - 1)))
    for attempt, slept_s in enumerate(clock.slept_s):
        assert base_s * 2**attempt / 2 <= slept_s <= base_s * 2**attempt


@pytest.mark.parametrize(("fault", "made"), [(Transient, ATTEMPTS_MAX), (Permanent, 1)])
async def test_fault_is_raised_after_last_attempt(fault: type[Exception], made: int) -> None:
    call, clock = Calls(*[fault("busy")] * ATTEMPTS_MAX), Waits()
    with pytest.raises(fault):
        await patience(clock).call(call)
    assert (call.made, len(clock.slept_s)) == (made, made - 1)


# --- a shard ------------------------------------------------------------------------------------


@pytest.mark.parametrize("stops", [(), (0,), (3,), (0, 0, 0), (2, 1, 0, 1), (1, 1, 1, 1, 1)])
async def test_shard_read_resumes_after_fault(stops: tuple[int, ...]) -> None:
    whole = await keys_of(Faulty(()), Waits())
    pages, clock = Faulty(stops), Waits()
    assert len(whole) == 6
    assert await keys_of(pages, clock) == whole
    assert len(clock.slept_s) == len(stops)
    assert pages.open == 0


async def test_row_resets_attempts() -> None:
    clock = Waits()
    await keys_of(Faulty((1,) * 5), clock)
    assert max(clock.slept_s) <= 2.0


async def test_unreadable_shard_raises_after_all_attempts() -> None:
    pages, clock = Faulty((2, *[0] * ATTEMPTS_MAX)), Waits()
    with pytest.raises(Transient):
        await keys_of(pages, clock)
    assert len(pages.asked) == ATTEMPTS_MAX
    assert len(set(pages.asked[1:])) == 1
    assert pages.open == 0


async def test_shard_is_read_after_given_key() -> None:
    keys = await keys_of(Faulty(()), Waits())
    reading = patience(Waits()).read_shard(Faulty((1,)), DAY, 0, crawl=CRAWL, after=keys[2])
    assert [key async for key, _ in reading] == keys[3:]


async def test_abandoned_shard_read_is_closed() -> None:
    pages = Faulty(())
    async with aclosing(patience(Waits()).read_shard(pages, DAY, 0, crawl=CRAWL)) as rows:
        await anext(rows)
        assert pages.open == 1
    assert pages.open == 0


async def test_iterator_without_aclose_can_be_used() -> None:
    class Rows:
        def __aiter__(self) -> Rows:
            return self

        async def __anext__(self) -> int:
            raise StopAsyncIteration

    async with closing(Rows()) as rows:
        assert [row async for row in rows] == []


# --- others -------------------------------------------------------------------------------------


async def test_happens_waits_for_next_event_or_timeout() -> None:
    event = asyncio.Event()
    event.set()
    waiting = asyncio.create_task(happens(event, 60.0))
    await asyncio.sleep(0)
    assert not waiting.done()
    event.set()
    await waiting
    await happens(event, 0.0)
    assert not event.is_set()


# --- many calls ---------------------------------------------------------------------------------


@pytest.mark.parametrize("at_once", [1, 3, 50])
async def test_all_of_limits_concurrency_and_keeps_order(at_once: int) -> None:
    busy, most = 0, 0

    async def call(number: int) -> int:
        nonlocal busy, most
        busy += 1
        most = max(most, busy)
        for _ in range(10 - number):  # later calls end sooner
            await asyncio.sleep(0)
        busy -= 1
        return number

    assert await all_of(map(call, range(10)), at_once) == list(range(10))
    assert most == min(at_once, 10)
    assert await all_of(map(call, ()), at_once) == []


async def test_first_error_is_raised_and_stops_all_of() -> None:
    begun: list[int] = []

    async def call(number: int) -> None:
        begun.append(number)
        raise Permanent(str(number))

    with pytest.raises(Permanent, match="0"):
        await all_of(map(call, range(10)), 2)
    assert begun == [0, 1]
