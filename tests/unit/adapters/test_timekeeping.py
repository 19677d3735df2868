"""The time of a store, when somebody sets the machine's clock between two processes."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from orbweaver.adapters.local.clock import SteadyClock
from orbweaver.adapters.sqlite import timekeeping
from orbweaver.adapters.sqlite.messages import Outgoing, QueueName
from orbweaver.adapters.sqlite.processes import StoreProcesses
from orbweaver.app.store_ports import StorePorts
from orbweaver.model.crawl import State
from orbweaver.model.settings import Settings
from tests.contract import samples

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DAY_MS, YEAR_MS = 86_400_000, 365 * 86_400_000
JUMPS_MS = [-YEAR_MS, -DAY_MS, -3_600_000, -60_000, -6_000, 6_000, 60_000, 3_600_000, YEAR_MS]
NOW_MS = samples.NOW_MS
HOST = "https://a.example"
CRAWL = samples.crawl()
DAY = "2026-01-15"


class Machine:
    """A machine with a clock that may be set, and a store; each process reads the clock anew."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.wall_ms, self.passed_ms = NOW_MS, 5_000

    def pass_time(self, ms: int) -> None:
        """Let time pass."""
        self.wall_ms += ms
        self.passed_ms += ms

    @contextmanager
    def opened(self) -> Iterator[StorePorts]:
        """Open the store in a new process."""
        clock = SteadyClock(wall_ms=lambda: self.wall_ms, passed_ms=lambda: self.passed_ms)
        settings = Settings(page_retention_s=30 * 86_400, pages_shards=1)
        ports = StorePorts(settings, self.folder, clock=clock)
        with ports.ending:
            yield ports


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Start a machine."""
    monkeypatch.setattr(timekeeping, "boot_id", lambda: "first-start")
    return Machine(tmp_path)


@pytest.mark.parametrize("by_ms", JUMPS_MS)
async def test_second_process_of_an_unfinished_crawl_after_a_jump_shares_its_time(
    machine: Machine, by_ms: int
) -> None:
    """The crawl is found, and its slots, messages and records keep their order."""
    with machine.opened() as first:
        await first.crawls.create(CRAWL)
        machine.wall_ms += by_ms
        machine.pass_time(1_000)
        with machine.opened() as second:
            assert second.clock.now_ms() == first.clock.now_ms() == NOW_MS + 1_000
            assert await second.crawls.get(CRAWL.id) is not None


@pytest.mark.parametrize("by_ms", JUMPS_MS)
async def test_store_without_an_unfinished_crawl_after_a_jump_moves_with_the_clock(
    machine: Machine, by_ms: int
) -> None:
    """Slots and messages keep their distance from now, and no record expires early."""
    record = samples.record(1, crawl=CRAWL.id)
    with machine.opened() as ports:
        await ports.crawls.create(replace(CRAWL, state=State.FINISHED))
        await ports.pages.store([record])
        await ports.hosts.reserve(HOST, 3, 1_000, NOW_MS, NOW_MS + 60_000)
        ports.messages.send(QueueName.EXPORTS, [Outgoing(body="{}", delay_s=60)])
    machine.wall_ms += by_ms
    with machine.opened() as ports:
        assert ports.clock.now_ms() == machine.wall_ms
        assert (await ports.hosts.look(HOST)).tat_ms == machine.wall_ms + 3_000
        assert ports.messages.next_due_ms(QueueName.EXPORTS) == machine.wall_ms + 60_000
        assert [one async for _, one in ports.pages.read_shard(DAY, 0)] == [record]


def test_process_beside_another_one_after_a_jump_shares_its_time(machine: Machine) -> None:
    """Two processes at one host must not have two ideas of its slots."""
    with machine.opened(), StoreProcesses(machine.folder).taking_part():
        machine.wall_ms -= 60_000
        with machine.opened() as second:
            assert second.clock.now_ms() == NOW_MS


def test_store_after_a_start_of_the_machine_takes_its_clock(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time since the start begins at 0 again, which is no jump."""
    with machine.opened():
        pass
    monkeypatch.setattr(timekeeping, "boot_id", lambda: "second-start")
    machine.wall_ms, machine.passed_ms = NOW_MS + 3_600_000, 0
    with machine.opened() as ports:
        assert ports.clock.now_ms() == NOW_MS + 3_600_000
