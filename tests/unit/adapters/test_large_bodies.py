"""Limit on large response bodies that are read at once; one host never takes all places."""

from __future__ import annotations

import asyncio
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from orbweaver.adapters.web.large_bodies import LargeBodies

# Host of the body, turns until it takes a place, and turns until it returns the place.
BODY = st.tuples(st.sampled_from("abc"), st.integers(0, 5), st.integers(0, 9))


@settings(deadline=None)
@given(st.integers(1, 5), st.lists(BODY, max_size=20), st.sets(st.integers(0, 19)))
def test_places_are_limited_and_returned(
    places: int, bodies: list[tuple[str, int, int]], cancelled: set[int]
) -> None:
    assert asyncio.run(_crowd(places, bodies, cancelled)) == len(bodies)


async def _crowd(places: int, bodies: list[tuple[str, int, int]], cancelled: set[int]) -> int:
    large = LargeBodies(places)
    held: Counter[str] = Counter()

    async def one(host: str, after: int, turns: int) -> None:
        async with large.place_for(host) as body:
            for _ in range(after):
                await asyncio.sleep(0)
            await body.take()
            held[host] += 1
            try:
                assert held.total() <= places
                assert held[host] <= max(1, places - 1)
                for _ in range(turns):
                    await asyncio.sleep(0)
            finally:
                held[host] -= 1

    tasks = [asyncio.create_task(one(*body)) for body in bodies]
    for turn in range(4):
        await asyncio.sleep(0)
        for place, task in enumerate(tasks):
            if place in cancelled and place % 4 == turn:
                task.cancel()
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    wrong = [one for one in ended if isinstance(one, Exception)]
    assert not wrong, wrong
    async with large.place_for("a") as first, large.place_for("b") as second:
        await asyncio.wait_for(first.take(), 5)
        if places > 1:
            await asyncio.wait_for(second.take(), 5)
    return len(ended)


def test_small_bodies_need_no_place() -> None:
    async def many() -> None:
        large = LargeBodies(1)
        async with large.place_for("a"), large.place_for("a"), large.place_for("b") as body:
            await asyncio.wait_for(body.take(), 5)

    asyncio.run(many())


def test_new_event_loop_gets_all_places() -> None:
    large = LargeBodies(1)

    async def left() -> None:
        held = large.place_for("a")
        await held.take()
        waiting = asyncio.create_task(large.place_for("a").take())
        await asyncio.sleep(0)
        waiting.cancel()

    async def next_one() -> bool:
        async with large.place_for("a") as body:
            await asyncio.wait_for(body.take(), 5)
        return True

    asyncio.run(left())
    assert asyncio.run(next_one())


def test_waiting_for_place_is_recorded() -> None:
    async def waits() -> tuple[bool, bool]:
        large = LargeBodies(1)
        async with large.place_for("a") as first:
            await first.take()
            second = large.place_for("b")
            waiting = asyncio.create_task(second.take())
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait([waiting])
            return first.waits, second.waits

    assert asyncio.run(waits()) == (False, True)
