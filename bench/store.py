"""Speed of the local store (SQLite): claims as the table grows, and each kind of transaction.

    python -m bench.store [--claims 1000000] [--durable]

A claim records that a URL is queued. Times are CPU of this process including the kernel, and
wall-clock time, for batches of 25 URLs.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from orbweaver.adapters.sqlite.messages import QueueName
from orbweaver.app.store_ports import StorePorts
from orbweaver.frontier.claims import Claimer
from orbweaver.frontier.journal import Ledger, OutgoingPack
from orbweaver.frontier.messages import Pack
from orbweaver.model.crawl import Crawl
from orbweaver.model.metrics import Metric, Service
from orbweaver.model.settings import Settings
from orbweaver.model.target import Target

PACK = 25
SPREAD = 2_654_435_761
ROUNDS = 2_000
NOW_MS = 1_768_478_400_000
CRAWL = Crawl(id="shop-20260115-120000", name="shop", started_at_ms=NOW_MS)


def targets(pack: int) -> tuple[Target, ...]:
    """Make 25 links, each to another part of the site."""
    numbers = [(pack * PACK + place) * SPREAD % (1 << 32) for place in range(PACK)]
    return tuple(
        Target(
            url=f"https://www.example{number % 7}.com/{number % 1_000}/item-{number:010}.html",
            depth=3,
        )
        for number in numbers
    )


def claimer(pack: int) -> Claimer:
    return Claimer(
        name=CRAWL.name,
        crawl=CRAWL.id,
        pack=f"{pack:032x}",
        at_ms=NOW_MS,
        stale_before_ms=0,
        expires_s=2_000_000_000,
    )


def tell(name: str, cpu_s: float, wall_s: float) -> None:
    """Print the time per operation of `ROUNDS` operations. The arguments are start times."""
    cpu_s, wall_s = time.process_time() - cpu_s, time.perf_counter() - wall_s
    print(f"{name:<20} {cpu_s / ROUNDS * 1e6:>6.0f} us CPU {wall_s / ROUNDS * 1e6:>7.0f} us wall")


async def claims(ports: StorePorts, count: int) -> None:
    """Claim `count` URLs, and print the speed of each tenth."""
    step = count // PACK // 10
    for tenth in range(10):
        cpu_s, wall_s, slowest_s = time.process_time(), time.perf_counter(), 0.0
        for pack in range(tenth * step, (tenth + 1) * step):
            asked = targets(pack)
            begun_s = time.perf_counter()
            await ports.frontier.known(claimer(pack), [target.url for target in asked])
            assert len(await ports.frontier.claim(claimer(pack), asked)) == PACK
            slowest_s = max(slowest_s, time.perf_counter() - begun_s)
        done = step * PACK
        cpu_s, wall_s = time.process_time() - cpu_s, time.perf_counter() - wall_s
        size_mb = (ports.folder / "store.db").stat().st_size / 1e6
        rates = f"{done / cpu_s:>7,.0f}/s CPU, {done / wall_s:>7,.0f}/s wall"
        slowest = f"slowest pack {slowest_s * 1000:.0f} ms"
        print(f"{(tenth + 1) * done:>9,} claims: {rates}, {slowest}, {size_mb:.0f} MB")


async def kinds(ports: StorePorts) -> None:
    await ports.crawls.create(CRAWL)
    counts = {"claimed": 1, "fetched": 25, "fetched.ok": 25, "bytes": 1_000_000}

    async def send(number: int) -> None:
        pack = Pack(id=f"{number:032x}", crawl=CRAWL.id, at_ms=NOW_MS, targets=targets(number))
        await ports.queue.send([OutgoingPack(pack=pack)], express=False)

    async def receive(_number: int) -> None:
        inbox = ports.inbox(QueueName.CRAWL)
        await inbox.settle(await inbox.receive(1, 60), ())

    async def reserve(number: int) -> None:
        host = f"https://www.example{number % 50}.com"
        await ports.hosts.reserve(host, 5, 1_000, NOW_MS, NOW_MS + 10**12)

    async def commit(number: int) -> None:
        ledger = Ledger(pack=f"{number:032x}", children=(0, 3))
        await ports.packs.commit(CRAWL, ledger, counts)

    async def flush(_number: int) -> None:
        metrics = ports.metrics(Service.WORKER)
        metrics.add(Metric.FETCHED, 25)
        metrics.flush()

    async def recall(number: int) -> None:
        await ports.packs.recall([f"{number:032x}"])

    jobs: dict[str, Callable[[int], Awaitable[None]]] = {
        "send a pack": send,
        "receive and delete": receive,
        "reserve slots": reserve,
        "commit": commit,
        "recall": recall,
        "flush metrics": flush,
    }
    for name, job in jobs.items():
        cpu_s, wall_s = time.process_time(), time.perf_counter()
        for number in range(ROUNDS):
            await job(number)
        cpu_s, wall_s = time.process_time() - cpu_s, time.perf_counter() - wall_s
        print(
            f"{name:<20} {cpu_s / ROUNDS * 1e6:>6.0f} us CPU {wall_s / ROUNDS * 1e6:>7.0f} us wall"
        )


def together(ports: StorePorts) -> None:
    """Print the time of ten small writes, in one transaction each, and in a single one."""
    write = "INSERT OR REPLACE INTO strikes VALUES (?, 1, 1)"
    for name, size in (("apart", 1), ("together", 10)):
        cpu_s, wall_s = time.process_time(), time.perf_counter()
        for number in range(0, ROUNDS * 10, size):
            with ports.store.writing() as db:
                for place in range(size):
                    db.execute(write, (f"{(number + place) % 5_000:032x}",))
        tell(f"ten writes {name}", cpu_s, wall_s)


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--claims", type=int, default=1_000_000)
    parser.add_argument("--durable", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ports = StorePorts(Settings(), Path(folder), durable=arguments.durable)
        await kinds(ports)
        together(ports)
        if arguments.claims:
            await claims(ports, arguments.claims)
        ports.ending.close()


if __name__ == "__main__":
    asyncio.run(main())
