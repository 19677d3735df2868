"""Ports that fail now and then: waited out a few times, read on, and asked a few at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from random import Random

import pytest

from orbweaver.frontier.retrying import Patience, all_of, closing, happens
from orbweaver.model.backoff import ATTEMPTS_MAX
from orbweaver.model.errors import Permanent, Transient
from orbweaver.model.page_record import PageRecord, page_key
from tests.memory import ManualClock, MemoryPages, World
from tests.unit.export_stage import CRAWL, DAY, NOON_MS, pages_of

TRIES = range(ATTEMPTS_MAX)


class Waits(ManualClock):
    """A clock that notes how long its sleepers slept."""

    def __init__(self) -> None:
        super().__init__(NOON_MS)
        self.slept_s: list[float] = []

    async def sleep(self, seconds: float) -> None:
        """See the port."""
        self.slept_s.append(seconds)


class Calls:
    """A port's call that ends as told, and then well; `made` counts."""

    def __init__(self, *faults: Exception) -> None:
        self.faults = list(faults)
        self.made = 0

    async def __call__(self) -> str:
        """Fail, or answer."""
        self.made += 1
        if self.faults:
            raise self.faults.pop(0)
        return "done"


class Faulty(MemoryPages):
    """Pages of one shard whose readings break off after so many rows each; `open` counts them."""

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
        """See the port."""
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


def patience(clock: ManualClock, base_s: float = 2.0) -> Patience:
    """Make one whose chance is the same each time."""
    return Patience(clock=clock, random=Random(1), base_s=base_s)


async def keys_of(pages: Faulty, clock: ManualClock) -> list[str]:
    """Read all keys of the shard."""
    reading = patience(clock).read_shard(pages, DAY, 0, crawl=CRAWL)
    return [key async for key, _ in reading]


# --- one call -----------------------------------------------------------------------------------


@pytest.mark.parametrize("faults", TRIES)
async def test_a_fault_is_waited_out(faults: int) -> None:
    """As many tries as there may be, with a wait before each but the first one."""
    call, clock = Calls(*[Transient("busy")] * faults), Waits()
    assert await patience(clock).tried(call) == "done"
    assert call.made == faults + 1
    assert len(clock.slept_s) == faults


@pytest.mark.parametrize("base_s", [0.2, 2.0])
async def test_waits_grow_from_the_base(base_s: float) -> None:
    """Each wait is between half and all of twice the one before."""
    clock = Waits()
    await patience(clock, base_s).tried(Calls(*[Transient("busy")] * (ATTEMPTS_MAX - 1)))
    for attempt, slept_s in enumerate(clock.slept_s):
        assert base_s * 2**attempt / 2 <= slept_s <= base_s * 2**attempt


async def test_a_fault_that_lasts_is_raised() -> None:
    """After the last try nobody waits any more."""
    call, clock = Calls(*[Transient("busy")] * ATTEMPTS_MAX), Waits()
    with pytest.raises(Transient):
        await patience(clock).tried(call)
    assert (call.made, len(clock.slept_s)) == (ATTEMPTS_MAX, ATTEMPTS_MAX - 1)


async def test_what_does_not_pass_is_not_tried_again() -> None:
    """A fault that is there to stay is raised at once."""
    call, clock = Calls(Permanent("no such bucket")), Waits()
    with pytest.raises(Permanent):
        await patience(clock).tried(call)
    assert (call.made, clock.slept_s) == (1, [])


# --- a shard ------------------------------------------------------------------------------------


@pytest.mark.parametrize("stops", [(), (0,), (3,), (0, 0, 0), (2, 1, 0, 1), (1, 1, 1, 1, 1)])
async def test_a_shard_is_read_on_where_it_stopped(stops: tuple[int, ...]) -> None:
    """Every row once and in order, however often a reading breaks off."""
    whole = await keys_of(Faulty(()), Waits())
    pages, clock = Faulty(stops), Waits()
    assert len(whole) == 6
    assert await keys_of(pages, clock) == whole
    assert len(clock.slept_s) == len(stops)
    assert pages.open == 0


async def test_a_row_gives_all_tries_back() -> None:
    """Waits begin small again after each row that came."""
    clock = Waits()
    await keys_of(Faulty((1,) * 5), clock)
    assert max(clock.slept_s) <= 2.0


async def test_a_shard_that_cannot_be_read_is_raised() -> None:
    """As many readings in a row that bring nothing as there are tries."""
    pages, clock = Faulty((2, *[0] * ATTEMPTS_MAX)), Waits()
    with pytest.raises(Transient):
        await keys_of(pages, clock)
    assert len(pages.asked) == ATTEMPTS_MAX
    assert len(set(pages.asked[1:])) == 1
    assert pages.open == 0


async def test_a_shard_is_read_from_behind_a_key() -> None:
    """Whoever goes on begins behind what it has."""
    keys = await keys_of(Faulty(()), Waits())
    reading = patience(Waits()).read_shard(Faulty((1,)), DAY, 0, crawl=CRAWL, after=keys[2])
    assert [key async for key, _ in reading] == keys[3:]


async def test_a_shard_that_is_left_is_closed() -> None:
    """Nothing stays open of a reading that somebody leaves in its middle."""
    pages = Faulty(())
    async with aclosing(patience(Waits()).read_shard(pages, DAY, 0, crawl=CRAWL)) as rows:
        await anext(rows)
        assert pages.open == 1
    assert pages.open == 0


async def test_what_is_no_generator_needs_no_closing() -> None:
    """A port may hand out any iterator."""

    class Rows:
        def __aiter__(self) -> Rows:
            return self

        async def __anext__(self) -> int:
            raise StopAsyncIteration

    async with closing(Rows()) as rows:
        assert [row async for row in rows] == []


# --- others -------------------------------------------------------------------------------------


async def test_what_happens_is_waited_for() -> None:
    """What has happened before does not count; nobody waits for longer than was said."""
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
async def test_many_go_a_few_at_a_time(at_once: int) -> None:
    """Never more than that many, and what comes of each stands in its place."""
    busy, most = 0, 0

    async def call(number: int) -> int:
        nonlocal busy, most
        busy += 1
        most = max(most, busy)
        for _ in range(10 - number):  # the later, the sooner through
            await asyncio.sleep(0)
        busy -= 1
        return number

    assert await all_of(map(call, range(10)), at_once) == list(range(10))
    assert most == min(at_once, 10)
    assert await all_of(map(call, ()), at_once) == []


async def test_the_first_error_is_raised_and_nothing_is_left_over() -> None:
    """Calls whose turn never comes are not even begun."""
    begun: list[int] = []

    async def call(number: int) -> None:
        begun.append(number)
        raise Permanent(str(number))

    with pytest.raises(Permanent, match="0"):
        await all_of(map(call, range(10)), 2)
    assert begun == [0, 1]
