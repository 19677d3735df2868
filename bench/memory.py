"""Checks that a worker's memory stays flat: one container, any number of pages.

    python -m bench.memory --pages 100000

The worker of `clients/worker.py` gets packs (batches) of URLs that never repeat, on one host. The
in-memory tables are emptied after every batch, so only the worker's own memory can grow. The check
passes if the last half of the samples grew by less than `GROWTH_MAX`: caches reach their bounds
earlier. The result is one line of JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import sys
import tempfile
import time
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from bench.clients.worker import INVOCATION_MS, ports_over
from bench.generated import path_of
from bench.session import serving
from bench.sites import SITES, Place
from orbweaver.app.wiring import control_of, keep_made, worker_of
from orbweaver.control.crawl_spec import CrawlSpec
from orbweaver.frontier.messages import Pack, encode
from orbweaver.model.crawl_settings import Bodies
from orbweaver.model.target import Target
from orbweaver.worker.pack import Delivery
from tests import memory

if TYPE_CHECKING:
    from collections.abc import Iterator

PACK_URLS, BATCH_PACKS, AT_ONCE = 25, 10, 64
SAMPLES = 50
# Share of memory that the allocator keeps if a large batch exceeds the previous ones.
GROWTH_MAX = 0.05
# In-memory tables that are emptied after every batch. The crawl's definition and state stay.
TABLES = ("claims", "pages", "journals", "ledgers", "commits", "sent", "files", "samples")


def batches(url: str, crawl_id: str, site_pages: int) -> Iterator[list[Delivery]]:
    """Yield endless batches of packs. Each URL has its own query."""
    size = PACK_URLS * BATCH_PACKS
    for first in count(step=size):
        numbers = range(first, first + size)
        urls = [f"{url}{path_of(number % site_pages)}?n={number}" for number in numbers]
        packs = [
            Pack(
                id=f"memory-{first + at}",
                crawl=crawl_id,
                at_ms=time.time_ns() // 1_000_000,
                targets=tuple(Target(url=one, depth=1) for one in urls[at : at + PACK_URLS]),
            )
            for at in range(0, len(urls), PACK_URLS)
        ]
        yield [Delivery(id=pack.id, body=encode(pack), receives=1) for pack in packs]


def forget(world: memory.World) -> None:
    for name in TABLES:
        getattr(world, name).clear()
    for shard in world.shards.values():
        shard.counts.clear()


def resident_bytes() -> int:
    """Return the resident bytes of this process, without its children."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def grown(resident: list[int]) -> float:
    half = resident[len(resident) // 2 :]
    return half[-1] / half[0] - 1


def work(url: str, pages: int, site_pages: int) -> dict[str, object]:
    """Let a worker fetch pages, and return its memory over time."""
    world = memory.World()
    ports = ports_over(world, AT_ONCE)
    resident: list[int] = []
    fetched = 0
    with asyncio.Runner() as runner, Path(os.devnull).open("w") as null:
        plan = CrawlSpec(seeds=(url,), delay_ms=0, concurrency=AT_ONCE, bodies=Bodies.OFF)
        crawl_id = runner.run(control_of(ports).start(plan)).id
        worker = worker_of(ports)
        keep_made()
        for batch in batches(url, crawl_id, site_pages):
            with contextlib.redirect_stdout(null):
                deadline_ms = time.time_ns() // 1_000_000 + INVOCATION_MS
                failed = runner.run(worker.run(batch, deadline_ms))
                worker.flush()
            assert not failed, failed
            fetched += len(world.pages)  # omits pages that a busy machine deferred
            forget(world)
            if fetched * SAMPLES >= pages * (len(resident) + 1):
                resident.append(resident_bytes())
            if fetched >= pages:
                break
    return {
        "pages": fetched,
        "resident_mb": [round(size / 2**20, 1) for size in resident],
        "grown": round(grown(resident), 4),
    }


def main() -> int:
    """Measure. Return 1 if memory grew."""
    parser = argparse.ArgumentParser(prog="python -m bench.memory")
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--site-pages", type=int, default=2_500, help="that differ (2500)")
    asked = parser.parse_args()
    place = Place(site=SITES["generated-30"], tls=False)
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as folder,
        serving(place, asked.site_pages, Path(folder)) as served,
    ):
        said = work(served.url, asked.pages, asked.site_pages)
    print(json.dumps(said), flush=True)
    return int(float(str(said["grown"])) > GROWTH_MAX)


if __name__ == "__main__":
    sys.exit(main())
