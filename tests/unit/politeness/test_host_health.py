"""Consecutive silences of a host without an answer between them."""

from __future__ import annotations

from random import Random

from orbweaver.politeness.host_health import HostHealth
from orbweaver.politeness.host_schedule import FAILURES_MAX
from tests.memory import ManualClock, MemoryHosts, World

NOW_MS = 1_795_251_600_000
HOST = "https://example.com"


async def test_answer_between_silences_resets_failures() -> None:
    """Concurrent requests all start before the first of them is silent."""
    world = World()
    health = HostHealth(hosts=MemoryHosts(world), clock=ManualClock(NOW_MS), random=Random(1))
    for _ in range(FAILURES_MAX - 1):
        await health.suffered(HOST, probe=False)
    assert world.hosts[HOST].failures == FAILURES_MAX - 1
    await health.answered(HOST, troubled=False)
    assert world.hosts[HOST].failures == 0


async def test_answer_without_failures_writes_no_host() -> None:
    """Failures counted by another container are reset only by its own answers."""
    world = World()
    health = HostHealth(hosts=MemoryHosts(world), clock=ManualClock(NOW_MS), random=Random(1))
    await health.answered(HOST, troubled=False)
    await health.suffered(HOST, probe=False)
    await health.answered(HOST, troubled=False)
    await MemoryHosts(world).fail(HOST, NOW_MS, 0.0, probe=False)
    await health.answered(HOST, troubled=False)
    assert world.hosts[HOST].failures == 1, "another container's, which that one's answers tell"
