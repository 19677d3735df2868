"""Places for large bodies: so many at once, one of them never all of one host's."""

from __future__ import annotations

import asyncio
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from orbweaver.adapters.web.large_bodies import LargeBodies

# Which host is read from, after how many turns it takes a place, and how many it keeps it for.
BODY = st.tuples(st.sampled_from("abc"), st.integers(0, 5), st.integers(0, 9))


@settings(deadline=None)
@given(st.integers(1, 5), st.lists(BODY, max_size=20), st.sets(st.integers(0, 19)))
def test_places_are_kept_to_and_given_back(
    places: int, bodies: list[tuple[str, int, int]], cancelled: set[int]
) -> None:
    """Whoever is cancelled, and whenever; and every other request gets its place."""
    assert asyncio.run(_crowd(places, bodies, cancelled)) == len(bodies)


async def _crowd(places: int, bodies: list[tuple[str, int, int]], cancelled: set[int]) -> int:
    large = LargeBodies(places)
    held: Counter[str] = Counter()

    async def one(host: str, after: int, turns: int) -> None:
        async with large.of(host) as body:
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
    async with large.of("a") as first, large.of("b") as second:
        await asyncio.wait_for(first.take(), 5)
        if places > 1:
            await asyncio.wait_for(second.take(), 5)
    return len(ended)


def test_small_bodies_take_no_place() -> None:
    """A request begins without one, however many there are."""

    async def many() -> None:
        large = LargeBodies(1)
        async with large.of("a"), large.of("a"), large.of("b") as body:
            await asyncio.wait_for(body.take(), 5)

    asyncio.run(many())


def test_places_are_there_again_in_the_next_loop() -> None:
    """What was held and waited for when a loop ended is of no account in the next one."""
    large = LargeBodies(1)

    async def left() -> None:
        held = large.of("a")
        await held.take()
        waiting = asyncio.create_task(large.of("a").take())
        await asyncio.sleep(0)
        waiting.cancel()

    async def next_one() -> bool:
        async with large.of("a") as body:
            await asyncio.wait_for(body.take(), 5)
        return True

    asyncio.run(left())
    assert asyncio.run(next_one())


def test_who_waits_says_so() -> None:
    """Also when it was cancelled there: it was held up by us."""

    async def waits() -> tuple[bool, bool]:
        large = LargeBodies(1)
        async with large.of("a") as first:
            await first.take()
            second = large.of("b")
            waiting = asyncio.create_task(second.take())
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait([waiting])
            return first.waits, second.waits

    assert asyncio.run(waits()) == (False, True)
