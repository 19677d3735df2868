"""Consecutive failures of a host that does not answer."""

from __future__ import annotations

from random import Random

import pytest

from orbweaver.model.outcome import Reason
from orbweaver.politeness.host_health import PAGE_PART, TRIED, HostHealth
from orbweaver.politeness.host_schedule import FAILURES_MAX
from tests.memory import ManualClock, MemoryHosts, World

NOW_MS = 1_795_251_600_000
HOST = "https://example.com"


async def test_answer_between_silences_resets_failures() -> None:
    """Concurrent requests all start before the first of them times out."""
    world = World()
    health = HostHealth(hosts=MemoryHosts(world), clock=ManualClock(NOW_MS), random=Random(1))
    for _ in range(FAILURES_MAX - 1):
        await health.note_failure(HOST, probe=False)
    assert world.hosts[HOST].failures == FAILURES_MAX - 1
    await health.note_answer(HOST, troubled=False)
    assert world.hosts[HOST].failures == 0


async def test_answer_without_failures_writes_no_host() -> None:
    world = World()
    health = HostHealth(hosts=MemoryHosts(world), clock=ManualClock(NOW_MS), random=Random(1))
    await health.note_answer(HOST, troubled=False)
    await health.note_failure(HOST, probe=False)
    await health.note_answer(HOST, troubled=False)
    await MemoryHosts(world).fail(HOST, NOW_MS, 0.0, probe=False)
    await health.note_answer(HOST, troubled=False)
    assert world.hosts[HOST].failures == 1, "another container's, which that one's answers tell"


@pytest.mark.parametrize(
    ("failed", "reason", "most_s"),
    [
        (0, Reason.HTTP_SERVER_ERROR, 100 * PAGE_PART),
        (TRIED // 2 - 1, Reason.TIMEOUT, 100 * PAGE_PART),
        (TRIED // 2, Reason.HTTP_SERVER_ERROR, 100),
        (0, Reason.CONNECT, 100),
        (0, Reason.DNS_UNKNOWN, 100),
    ],
)
def test_backoff_of_failing_page_is_part_of_host_backoff(
    failed: int, reason: Reason, most_s: float
) -> None:
    health = HostHealth(hosts=MemoryHosts(World()), clock=ManualClock(NOW_MS), random=Random(1))
    for place in range(TRIED * 2):
        health.tried(HOST, failed=place < TRIED or place % TRIED < failed)
    assert most_s / 2 <= health.backoff_s(HOST, reason, 1, 100) <= most_s
    assert most_s <= health.backoff_s(HOST, reason, 2, 100) <= 2 * most_s


async def test_host_is_blocked_for_retry_after() -> None:
    clock = ManualClock(NOW_MS)
    health = HostHealth(hosts=MemoryHosts(World()), clock=clock, random=Random(1))
    assert not health.is_blocked(HOST)
    await health.back_off(HOST, 60.0, NOW_MS)
    assert health.is_blocked(HOST)
    clock.at_ms += 100_000
    assert not health.is_blocked(HOST)
