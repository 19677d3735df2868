"""Further worker processes that a command starts for a store."""

from __future__ import annotations

import asyncio
import errno
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from orbweaver.adapters.local.clock import SteadyClock
from orbweaver.adapters.sqlite import timekeeping
from orbweaver.adapters.sqlite.messages import QueueDepth, QueueName
from orbweaver.adapters.sqlite.processes import StoreProcesses
from orbweaver.app import store_runner
from orbweaver.app.further_processes import FurtherProcesses
from orbweaver.app.store_ports import StorePorts
from orbweaver.app.store_runner import (
    BATCH_MESSAGES,
    BATCHES,
    PACED_ALONE,
    running,
    store_settings,
)
from orbweaver.fetching.proxy_config import DIRECT
from tests.contract import samples

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from orbweaver.worker.pack import Delivery

WAIT_S = 60.0


async def test_uncountable_processes_do_not_stop_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker without free file descriptors acts as if it were alone."""

    def alive(_self: StoreProcesses) -> int:
        raise OSError(errno.EMFILE, "too many open files")

    monkeypatch.setattr(StoreProcesses, "count_alive", alive)
    ports = StorePorts(store_settings({}), tmp_path)
    outgoing = samples.outgoing()
    await ports.queue.send([outgoing], express=True)
    inbox = ports.inbox(QueueName.EXPRESS)
    async with running(ports):
        async with asyncio.timeout(WAIT_S):
            while inbox.depth().waiting:  # noqa: ASYNC110 - nothing tells that it is taken
                await asyncio.sleep(0.01)
    await ports.aclose()


async def test_ending_process_returns_taken_packs(tmp_path: Path) -> None:
    ports = StorePorts(store_settings({}), tmp_path)
    taken = replace(samples.outgoing(delay_s=60), taken=True)
    async with running(ports):
        await ports.queue.send([taken], express=False)
        assert ports.inbox(QueueName.CRAWL).depth() == QueueDepth(copies=1)
    assert ports.inbox(QueueName.CRAWL).depth() == QueueDepth(waiting=1)
    await ports.aclose()


class CountingWorker:
    """A worker whose packs wait until `ends`. `batches` has the size of each batch."""

    def __init__(self, messages: int) -> None:
        self._messages = messages
        self.batches: list[int] = []
        self.all_taken, self.ends = asyncio.Event(), asyncio.Event()

    async def run(self, deliveries: Sequence[Delivery], _deadline_ms: int) -> tuple[str, ...]:
        self.batches.append(len(deliveries))
        if sum(self.batches) == self._messages:
            self.all_taken.set()
        await self.ends.wait()
        return ()

    def drain(self) -> None: ...

    def end(self) -> None: ...

    def flush(self) -> None: ...


@pytest.mark.parametrize(
    ("delay_ms", "paced_max", "held"),
    [
        (0, 120, BATCHES * BATCH_MESSAGES),
        (1_000, 120, 50),
        (1_000, 10, 10 + BATCHES * BATCH_MESSAGES),
    ],
)
async def test_batches_of_crawl_with_delay_take_no_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delay_ms: int, paced_max: int, held: int
) -> None:
    """Otherwise hosts beyond the thirtieth would wait for the end of a batch."""
    worker = CountingWorker(held)
    monkeypatch.setattr(store_runner, "worker_of", lambda *_: worker)
    monkeypatch.setattr(store_runner, "PACED_MAX", paced_max)
    ports = StorePorts(store_settings({}), tmp_path)
    now_ms = ports.clock.now_ms()
    await ports.crawls.create(samples.crawl(delay_ms=delay_ms, started_at_ms=now_ms))
    await ports.queue.send([samples.outgoing(place) for place in range(50)], express=False)
    async with running(ports):
        async with asyncio.timeout(WAIT_S):
            await worker.all_taken.wait()
        assert sum(worker.batches) == held
        worker.ends.set()
    await ports.aclose()
    assert sum(worker.batches) >= held


@pytest.mark.parametrize(
    ("delay_ms", "messages", "begun"),
    [(0, 1, True), (1_000, PACED_ALONE, False), (1_000, PACED_ALONE + 1, True)],
)
async def test_further_processes_begin_when_worker_has_work_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delay_ms: int, messages: int, begun: bool
) -> None:
    """A second process of a polite crawl of few hosts has nothing to do."""
    worker = CountingWorker(messages)
    monkeypatch.setattr(store_runner, "worker_of", lambda *_: worker)
    further = FurtherProcesses([], DIRECT)
    ports = StorePorts(store_settings({}), tmp_path)
    now_ms = ports.clock.now_ms()
    await ports.crawls.create(samples.crawl(delay_ms=delay_ms, started_at_ms=now_ms))
    sent = [samples.outgoing(place) for place in range(messages)]
    await ports.queue.send(sent, express=False)
    async with running(ports, further):
        async with asyncio.timeout(WAIT_S):
            await worker.all_taken.wait()
        worker.ends.set()
        assert further.begun is begun
    await ports.aclose()


class EndedProcesses(FurtherProcesses):
    """Further processes that record when a runner replaces ended ones."""

    def __init__(self) -> None:
        super().__init__([], DIRECT)
        self.replaced = asyncio.Event()

    def replace_ended(self) -> None:
        self.replaced.set()


async def test_runner_replaces_ended_processes(tmp_path: Path) -> None:
    ports, further = StorePorts(store_settings({}), tmp_path), EndedProcesses()
    async with running(ports, further):
        await asyncio.wait_for(further.replaced.wait(), WAIT_S)
    await ports.aclose()


@pytest.mark.parametrize(
    ("delay_ms", "receives", "batches"), [(0, 1, [3]), (1_000, 1, [1, 1, 1]), (1_000, 2, [3])]
)
async def test_messages_of_crawl_with_delay_are_batches_unless_suspected(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    delay_ms: int,
    receives: int,
    batches: list[int],
) -> None:
    """A batch ends with its slowest host. A worker processes suspects of a batch one by one."""
    worker = CountingWorker(sum(batches))
    monkeypatch.setattr(store_runner, "worker_of", lambda *_: worker)
    ports = StorePorts(store_settings({}), tmp_path)
    now_ms = ports.clock.now_ms()
    await ports.crawls.create(samples.crawl(delay_ms=delay_ms, started_at_ms=now_ms))
    await ports.queue.send([samples.outgoing(place) for place in range(3)], express=False)
    for _ in range(receives - 1):
        inbox = ports.inbox(QueueName.CRAWL)
        await inbox.show(await inbox.receive(3, 60))
    async with running(ports):
        async with asyncio.timeout(WAIT_S):
            await worker.all_taken.wait()
        worker.ends.set()
    await ports.aclose()
    assert sorted(worker.batches) == batches


@pytest.mark.parametrize(("unfinished", "moved_ms"), [(False, -60_000), (True, 0)])
async def test_runner_follows_clock_jump_unless_crawl_is_unfinished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unfinished: bool, moved_ms: int
) -> None:
    """A service that runs for months must not keep the time at which it began."""
    monkeypatch.setattr(timekeeping, "boot_id", lambda: "start")
    monkeypatch.setattr(store_runner, "LOOKS_TO_REAP", 1)
    monkeypatch.setattr(store_runner, "TEND_S", 0.01)
    wall_ms = samples.NOW_MS
    clock = SteadyClock(wall_ms=lambda: wall_ms, passed_ms=lambda: 5_000)
    ports = StorePorts(store_settings({}), tmp_path, clock=clock)
    if unfinished:
        await ports.crawls.create(samples.crawl())
    looked = asyncio.Event()
    keep_time = ports.keep_time

    def look(others: Callable[[], int]) -> bool:
        moved = keep_time(others)
        if wall_ms != samples.NOW_MS:
            looked.set()
        return moved

    monkeypatch.setattr(ports, "keep_time", look)
    async with running(ports):
        wall_ms -= 60_000
        await asyncio.wait_for(looked.wait(), WAIT_S)
        assert clock.now_ms() == samples.NOW_MS + moved_ms
    await ports.aclose()
