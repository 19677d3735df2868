"""Number of concurrent requests to a host, by its latency."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orbweaver.politeness.host_health import (
    FIRST,
    HALVED_AFTER,
    RECOVERED_AFTER,
    RECOVERED_SHARE,
    SLOW_MS,
    EasedSemaphore,
    HostHealth,
    Load,
    concurrency_of,
    load_after,
)
from tests.memory import ManualClock, MemoryHosts, World

NOW_MS = 1_795_251_600_000
HOST = "https://example.com"


def heard(load: Load, *latencies_ms: int, well: bool = True, at_ms: int = NOW_MS) -> Load:
    """Add answers; each request starts when the previous answer has arrived."""
    for latency_ms in latencies_ms:
        at_ms += latency_ms
        load = load_after(load, latency_ms, at_ms, well=well)
    return load


BEGUN = heard(Load(), *[600] * FIRST)


def test_host_answering_in_double_time_gets_half_the_places() -> None:
    load = heard(BEGUN, *[1_200] * (HALVED_AFTER - 1))
    assert concurrency_of(load, 16) == 16
    halved = [16]
    for number in range(6):
        load = heard(load, *[1_200] * HALVED_AFTER, at_ms=NOW_MS + 10**6 * number)
        halved.append(concurrency_of(load, 16))
    assert halved == [16, 8, 4, 2, 1, 1, 1]


@pytest.mark.parametrize(
    ("first_ms", "then_ms"), [(600, 1_190), (5, SLOW_MS - 1), (3_000, 5_900), (600, 600)]
)
def test_answers_below_double_time_change_no_share(first_ms: int, then_ms: int) -> None:
    load = heard(Load(), *[first_ms] * FIRST, *[then_ms] * 100)
    assert load.share == 1


def test_few_slow_pages_change_no_share() -> None:
    load = heard(BEGUN, *([9_000] * (HALVED_AFTER - 1) + [500] * HALVED_AFTER) * 20)
    assert load.share == 1


def test_concurrent_slow_answers_halve_share_once() -> None:
    load = BEGUN
    for place in range(16):
        load = load_after(load, 5_000 + place, NOW_MS + 10**6 + place, well=True)
    assert concurrency_of(load, 16) == 8


def test_share_recovers_in_eighths_after_fast_answers() -> None:
    load = heard(BEGUN, *[2_000] * HALVED_AFTER * 2)
    assert concurrency_of(load, 16) == 4
    later_ms = NOW_MS + 10**7
    assert heard(load, *[10] * 1_000, well=False, at_ms=later_ms) == load
    nearly = [*[600] * (RECOVERED_AFTER - 1), 2_000] * 3
    assert heard(load, *nearly, at_ms=later_ms).share == load.share
    assert heard(load, *[600] * RECOVERED_AFTER, at_ms=later_ms).share == 1 / 4 + RECOVERED_SHARE
    assert heard(load, *[600] * RECOVERED_AFTER * 20, at_ms=later_ms).share == 1


def test_request_without_answer_counts_as_slow() -> None:
    assert heard(Load(), *[10_000] * 9, well=False) == Load()
    assert heard(BEGUN, *[10_000] * HALVED_AFTER, well=False).share == 1 / 2


@given(st.lists(st.tuples(st.integers(0, 60_000), st.booleans()), max_size=400), st.integers(1, 64))
def test_places_are_between_one_and_maximum(answers: list[tuple[int, bool]], most: int) -> None:
    load, at_ms = Load(), NOW_MS
    for latency_ms, well in answers:
        at_ms += latency_ms
        load = load_after(load, latency_ms, at_ms, well=well)
        assert 1 <= concurrency_of(load, most) <= most


# --- places -------------------------------------------------------------------------------------


async def test_places_are_withdrawn_on_release_and_restored() -> None:
    clock = ManualClock(NOW_MS)
    health = HostHealth(hosts=MemoryHosts(World()), clock=clock, random=Random(1))

    def hear(latency_ms: int, times: int) -> None:
        for _ in range(times):
            clock.at_ms += latency_ms
            health.note_latency(HOST, latency_ms, well=True)

    hear(500, FIRST)
    semaphore = EasedSemaphore(health, HOST, 4)
    for _ in range(4):
        await semaphore.acquire()
    waiting = asyncio.create_task(semaphore.acquire())
    hear(5_000, HALVED_AFTER)
    semaphore.release()
    semaphore.release()
    await asyncio.sleep(0)
    assert (waiting.done(), semaphore._value) == (False, 0)
    semaphore.release()
    await waiting
    hear(500, RECOVERED_AFTER * 4)
    assert health.concurrency(HOST, 4) == 4
    semaphore.release()
    semaphore.release()
    assert semaphore._value == 4
    hear(5_000, HALVED_AFTER)
    assert EasedSemaphore(health, HOST, 4)._value == 2
