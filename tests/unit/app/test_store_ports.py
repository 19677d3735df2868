"""Crawls over an embedded store: components, killed workers, an export and its progress."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from orbweaver.adapters.sqlite.messages import QueueName
from orbweaver.adapters.sqlite.metrics import read_metrics
from orbweaver.app import wiring
from orbweaver.app.wiring_exporting import alone_of, exporter_of
from orbweaver.model.crawl import State
from tests.unit.app.store_machine import HOLD_S, PAGES, REMAINING_MS, Machine
from tests.unit.stage import CRAWL, NOW_MS, SITE, SmallWeb

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orbweaver.control.crawl_control import Control
    from orbweaver.model.http_exchange import Request
    from orbweaver.model.ports import Fetcher
    from tests.unit.stage import Answer

ROOT = Path(__file__).parents[3]
DAY = "2026-11-21"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    made = Machine(tmp_path / "store")

    def web(_ports: Any) -> Fetcher:
        return made.web

    monkeypatch.setattr(wiring, "fetcher_of", web)
    yield made
    for ports in made.opened:
        ports.ending.close()


async def test_crawl_is_complete_and_exported(machine: Machine) -> None:
    await machine.start()
    await machine.work()
    ports = machine.open()
    crawl = await ports.crawls.get(CRAWL.id)
    assert crawl is not None
    assert crawl.state is State.FINISHED
    total = (await ports.crawls.counters(crawl)).total
    assert (total["claimed"], total["fetched"]) == (PAGES, PAGES)
    assert sorted(machine.web.urls) == sorted(f"{SITE}/{number}" for number in range(PAGES))
    (event,) = await ports.inbox(QueueName.EVENTS).receive(10, HOLD_S)
    assert json.loads(event.body)["detail"]["counts"]["fetched"] == PAGES
    assert read_metrics(ports.store)["worker", "fetched"].total == PAGES
    manifest = await alone_of(ports, machine.folder / "out", ("jsonl",)).export(DAY)
    assert dict(manifest.rows)["pages"] == PAGES
    exporter, inbox = exporter_of(ports), ports.inbox(QueueName.EXPORTS)
    await exporter.begin({"day": DAY}, "request")
    sealed = []
    while taken := await inbox.receive(1, HOLD_S):
        sealed.append(await exporter.handle(taken[0].body, machine.clock.now_ms() + REMAINING_MS))
        await inbox.delete(taken)
    assert [dict(one.rows)["pages"] for one in sealed if one is not None] == [PAGES]
    assert await ports.files.get(f"exports/manifests/dt={DAY}.json") is not None


async def worker(machine: Machine, now_ms: int, requests: int = 10**9) -> int:
    """Run a worker process that is killed at a request. Return its exit code."""
    words = ["-m", "tests.unit.app.store_machine", machine.folder, now_ms, requests]
    environment = {"PYTHONPATH": f"{ROOT / 'functions'}:{ROOT}"}
    process = await asyncio.create_subprocess_exec(
        sys.executable, *map(str, words), cwd=ROOT, env=environment
    )
    return await process.wait()


async def check(machine: Machine) -> None:
    ports = machine.open()
    crawl = await ports.crawls.get(CRAWL.id)
    assert crawl is not None
    assert crawl.state is State.FINISHED
    total = (await ports.crawls.counters(crawl)).total
    assert (total["claimed"], total["fetched"]) == (PAGES, PAGES)
    records = [
        record.url
        for shard in range(ports.pages.shards)
        async for _, record in ports.pages.read_shard(DAY, shard)
    ]
    assert sorted(records) == sorted(f"{SITE}/{number}" for number in range(PAGES))
    assert await ports.dead_letters.take(10, HOLD_S) == ()


@pytest.mark.thorough
@pytest.mark.parametrize("requests", [16, 40])
async def test_killed_workers_lose_and_repeat_no_page(machine: Machine, requests: int) -> None:
    await machine.start()
    killed = 0
    while (ended := await worker(machine, NOW_MS + killed * 600_000, requests)) == -signal.SIGKILL:
        killed += 1
    assert ended == 0
    assert killed >= PAGES // requests
    await check(machine)


@pytest.mark.thorough
async def test_concurrent_workers_repeat_no_page(machine: Machine) -> None:
    """The workers' clocks differ, so they also receive messages that are in flight."""
    await machine.start()
    assert await asyncio.gather(*(worker(machine, NOW_MS) for _ in range(3))) == [0, 0, 0]
    await check(machine)


# --- progress -------------------------------------------------------------------------------------


class WatchedWeb(SmallWeb):
    """Records at each request the reported and the committed numbers of ended URLs."""

    control: Control
    stored: Control

    def __init__(self, web: SmallWeb, machine: Machine) -> None:
        super().__init__(machine.clock)
        self.answers = web.answers
        self.told: list[tuple[int, int]] = []

    async def fetch(self, request: Request) -> Answer:
        told, stored = await self.control.status(CRAWL.id), await self.stored.status(CRAWL.id)
        self.told.append((told.counters.done, stored.counters.done))
        return await super().fetch(request)


async def test_progress_counts_each_page_before_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(tmp_path)
    web = WatchedWeb(machine.web, machine)
    monkeypatch.setattr(wiring, "fetcher_of", lambda _ports: web)
    crawl = replace(CRAWL, delay_ms=1_000)
    await machine.start(crawl)
    ports = machine.open()
    web.control, web.stored = wiring.control_of(ports, ports.underway), wiring.control_of(ports)
    await machine.work(ports)
    assert len(web.told) == PAGES
    assert [told for told, _ in web.told] == list(range(PAGES))
    assert max(told - stored for told, stored in web.told) > 1
    assert not ports.underway.counts(CRAWL.id)
    status = await web.control.status(CRAWL.id)
    assert (status.crawl.state, status.counters.done) == (State.FINISHED, PAGES)
