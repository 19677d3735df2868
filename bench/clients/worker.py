"""Orbweaver's worker alone: the real worker and fetcher, with tables and queues in memory.

The worker gets messages as from Lambda: up to ten per batch, one batch after another. Nothing is
deployed or emulated, so the result is Orbweaver's own CPU: decisions, parsing, the protocol.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import os
import sys
import time
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from bench.clients.said import arguments, said
from orbweaver import __version__
from orbweaver.adapters.local.clock import SystemClock
from orbweaver.adapters.local.reader import BudgetReader
from orbweaver.app.aws_ports import Ports, meter_of
from orbweaver.app.wiring import control_of, keep_made, worker_of
from orbweaver.budget import billing_units
from orbweaver.budget.prices import spent
from orbweaver.control.crawl_spec import CrawlSpec
from orbweaver.model.amounts import NANO
from orbweaver.model.crawl_settings import Bodies
from orbweaver.model.outcome import Outcome
from orbweaver.model.settings import Settings
from orbweaver.worker.pack import Delivery
from tests import memory

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orbweaver.worker.batch import Worker

BATCH = 10
INVOCATION_MS = 120_000


def ports_over(world: memory.World, at_once: int) -> Ports:
    """Return ports that use memory, except for the real fetcher."""
    settings = Settings.of(allow_addresses="127.0.0.0/8", fetch_concurrency=at_once)
    aws: Any = None  # no AWS call is made
    ports = Ports(settings, aws, meter_of(settings))
    vars(ports).update(
        queue=memory.MemoryQueue(world),
        packs=memory.MemoryPacks(world),
        backlog=memory.MemoryBacklog(world),
        budgets=memory.MemoryBudgets(world),
        crawls=memory.MemoryCrawls(world),
        frontier=memory.MemoryFrontier(world),
        hosts=memory.MemoryHosts(world),
        pages=memory.MemoryPages(world),
        files=memory.MemoryFiles(world),
        events=memory.MemoryEvents(world),
        secrets=memory.MemorySecrets(world),
        reader=BudgetReader(clock=SystemClock()),
        random=Random(1),
    )
    return ports


class Belt:
    """Passes messages to a worker when they are due."""

    def __init__(self, world: memory.World) -> None:
        self._world = world
        self._due: list[tuple[int, int, str, int]] = []
        self._sent = 0

    def take(self) -> list[Delivery]:
        """Wait until a message is due, and return the next batch. Empty if no message is left."""
        now_ms = time.time_ns() // 1_000_000
        for mail in self._world.sent:
            self._put(now_ms + mail.delay_s * 1000, mail.body, 1)
        self._world.sent.clear()
        if self._due and self._due[0][0] > now_ms:
            time.sleep((self._due[0][0] - now_ms) / 1000)
            now_ms = self._due[0][0]
        batch: list[Delivery] = []
        while self._due and self._due[0][0] <= now_ms and len(batch) < BATCH:
            _, number, body, receives = heapq.heappop(self._due)
            batch.append(Delivery(id=str(number), body=body, receives=receives))
        return batch

    def put_back(self, delivery: Delivery) -> None:
        self._put(0, delivery.body, delivery.receives + 1)

    def _put(self, due_ms: int, body: str, receives: int) -> None:
        self._sent += 1
        heapq.heappush(self._due, (due_ms, self._sent, body, receives))


def crawl(url: str, at_once: int) -> dict[str, object]:
    world = memory.World()
    ports = ports_over(world, at_once)
    belt, batches, messages = Belt(world), 0, 0
    # As in a Lambda container, one event loop and one worker with its caches serve all batches.
    with asyncio.Runner() as runner, Path(os.devnull).open("w") as null:
        # The other clients store no bodies.
        plan = CrawlSpec(seeds=(url,), delay_ms=0, concurrency=at_once, bodies=Bodies.OFF)
        crawl_id = runner.run(control_of(ports).start(plan)).id
        worker = worker_of(ports)
        keep_made()
        with contextlib.redirect_stdout(null):
            while batch := belt.take():
                batches, messages = batches + 1, messages + len(batch)
                failed = runner.run(_invoke(worker, batch))
                for delivery in batch:
                    if delivery.id in failed:
                        belt.put_back(delivery)
    ports.reader.close()
    state = world.crawls[crawl_id].state
    counts: dict[str, int] = {}
    for shard in world.shards.values():
        for key, number in shard.counts.items():
            counts[key] = counts.get(key, 0) + number
    pages = [page for page in world.pages.values() if page.outcome is Outcome.FETCHED]
    return {
        "state": str(state),
        "pages": len(pages),
        "titles": sum(page.title is not None for page in pages),
        "bytes": sum(page.bytes or 0 for page in pages),
        "batches": batches,
        "messages": messages,
        "dead": len(world.buried),
        **units_of(counts),
    }


def units_of(counts: Mapping[str, int]) -> dict[str, Any]:
    """Return a crawl's own estimate of its cost, and its metered AWS usage by term."""
    dollars = spent(counts)
    terms = billing_units.units_of(counts).by_term
    return {
        "nanodollars": None if dollars is None else round(dollars * NANO),
        "units": {str(term): number for term, number in terms.items()},
    }


async def _invoke(worker: Worker, batch: list[Delivery]) -> tuple[str, ...]:
    try:
        return await worker.run(batch, time.time_ns() // 1_000_000 + INVOCATION_MS)
    finally:
        worker.flush()


def main() -> None:
    asked = arguments()
    versions = {"orbweaver": __version__, "python": sys.version.split()[0]}
    said(crawl(asked.url, asked.at_once), versions)


if __name__ == "__main__":
    main()
