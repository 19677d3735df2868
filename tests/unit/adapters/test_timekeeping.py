"""Clock of a store if the machine's clock is set between two processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from orbweaver.adapters.local.clock import SteadyClock
from orbweaver.adapters.sqlite import timekeeping
from orbweaver.adapters.sqlite.messages import Outgoing, QueueName
from orbweaver.adapters.sqlite.processes import StoreProcesses
from orbweaver.app.store_ports import StorePorts
from orbweaver.model.crawl import State
from orbweaver.model.settings import Settings
from tests.contract import samples

DAY_MS, YEAR_MS = 86_400_000, 365 * 86_400_000
JUMPS_MS = [-YEAR_MS, -DAY_MS, -3_600_000, -60_000, -6_000, 6_000, 60_000, 3_600_000, YEAR_MS]
NOW_MS = samples.NOW_MS
HOST = "https://a.example"
CRAWL = samples.crawl()
DAY = "2026-01-15"


class Machine:
    """A machine with a store and an adjustable clock; each process reads the clock again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.wall_ms, self.passed_ms = NOW_MS, 5_000

    def pass_time(self, ms: int) -> None:
        self.wall_ms += ms
        self.passed_ms += ms

    @contextmanager
    def opened(self) -> Iterator[StorePorts]:
        clock = SteadyClock(wall_ms=lambda: self.wall_ms, passed_ms=lambda: self.passed_ms)
        settings = Settings.of(page_retention_s=30 * 86_400, pages_shards=1)
        ports = StorePorts(settings, self.folder, clock=clock)
        with ports.ending:
            yield ports


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr(timekeeping, "boot_id", lambda: "first-start")
    return Machine(tmp_path)


@pytest.mark.parametrize("by_ms", JUMPS_MS)
async def test_second_process_after_clock_jump_shares_time_of_unfinished_crawl(
    machine: Machine, by_ms: int
) -> None:
    with machine.opened() as first:
        await first.crawls.create(CRAWL)
        machine.wall_ms += by_ms
        machine.pass_time(1_000)
        with machine.opened() as second:
            assert second.clock.now_ms() == first.clock.now_ms() == NOW_MS + 1_000
            assert await second.crawls.get(CRAWL.id) is not None


RECORD = samples.record(1, crawl=CRAWL.id)


async def store_finished(ports: StorePorts) -> None:
    await ports.crawls.create(replace(CRAWL, state=State.FINISHED))
    await ports.pages.store([RECORD])


@pytest.mark.parametrize("by_ms", JUMPS_MS)
async def test_store_without_unfinished_crawl_follows_clock_jump(
    machine: Machine, by_ms: int
) -> None:
    with machine.opened() as ports:
        await store_finished(ports)
        await ports.hosts.reserve(HOST, 3, 1_000, NOW_MS, NOW_MS + 60_000)
        ports.messages.send(QueueName.EXPORTS, [Outgoing(body="{}", delay_s=60)])
    machine.wall_ms += by_ms
    with machine.opened() as ports:
        assert ports.clock.now_ms() == machine.wall_ms
        assert (await ports.hosts.read_host(HOST)).tat_ms == machine.wall_ms + 3_000
        assert ports.messages.next_due_ms(QueueName.EXPORTS) == machine.wall_ms + 60_000
        assert [one async for _, one in ports.pages.read_shard(DAY, 0)] == [RECORD]


def test_concurrent_process_after_clock_jump_shares_time(machine: Machine) -> None:
    """Two processes must agree on the time of a host's next slot."""
    with machine.opened(), StoreProcesses(machine.folder).taking_part():
        machine.wall_ms -= 60_000
        with machine.opened() as second:
            assert second.clock.now_ms() == NOW_MS


def test_store_uses_machine_clock_after_reboot(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time since boot restarts at 0, which is not a clock jump."""
    with machine.opened():
        pass
    monkeypatch.setattr(timekeeping, "boot_id", lambda: "second-start")
    machine.wall_ms, machine.passed_ms = NOW_MS + 3_600_000, 0
    with machine.opened() as ports:
        assert ports.clock.now_ms() == NOW_MS + 3_600_000


async def test_implausible_time_since_boot_moves_no_stored_time(machine: Machine) -> None:
    """`faketime` reports the wall time as the time since boot."""
    with machine.opened() as ports:
        await store_finished(ports)
    uptime_ms = machine.passed_ms
    for passed_ms, ahead_ms in ((NOW_MS + DAY_MS, DAY_MS), (uptime_ms, 0)):
        machine.wall_ms, machine.passed_ms = NOW_MS + ahead_ms, passed_ms
        with machine.opened() as ports:
            assert ports.clock.now_ms() == machine.wall_ms
            assert [one async for _, one in ports.pages.read_shard(DAY, 0)] == [RECORD]
