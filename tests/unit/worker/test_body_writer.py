"""Stored pages: one file per crawl and batch, written before the journal (redo log)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from random import Random

import pytest

from orbweaver.frontier import warc
from orbweaver.frontier.body_file import BodyLocation, Kept
from orbweaver.model.errors import Transient
from orbweaver.model.settings import Settings
from orbweaver.worker.body_writer import BodyWriter
from tests.memory import Gate, ManualClock, MemoryFiles, Moment, World
from tests.unit.stage import NOW_MS, fail_on


def kept(url: str, body: bytes = b"body") -> Kept:
    member = warc.response(url, NOW_MS, status=200, headers={}, body=body, truncated=False)
    return Kept(url=url, response=member)


class Batch:
    """Writers of stored pages over a bucket in memory.

    `wait_s` is real time, so tests keep it short.
    """

    def __init__(
        self, *, wait_s: float = 60.0, bytes_max: int = 10**9, gate: Gate | None = None
    ) -> None:
        self.world = World()
        self.body_writer = BodyWriter(
            files=MemoryFiles(self.world, gate) if gate else MemoryFiles(self.world),
            clock=ManualClock(NOW_MS),
            random=Random(1),
            settings=Settings.of(segment_wait_s=wait_s, segment_bytes_max=bytes_max),
        )

    async def pack(
        self, crawl: str, url: str, after: asyncio.Event | None = None
    ) -> Mapping[str, BodyLocation]:
        """Visit and store one page after an event."""
        with self.body_writer.taking_part(crawl) as part:
            await asyncio.sleep(0)  # so that all have begun before the first one ends
            if after is not None:
                await after.wait()
            return await part.put([kept(url)])

    def read(self, place: BodyLocation) -> str | None:
        begin, length = place.body or (0, 0)
        return warc.read(self.world.files[place.key][begin : begin + length]).url


async def test_packs_of_batch_share_file() -> None:
    batch, gate = Batch(), asyncio.Event()
    urls = [f"https://h/{place}" for place in range(5)]
    packs = [
        asyncio.create_task(batch.pack("c", url, gate if url == urls[3] else None)) for url in urls
    ]
    await asyncio.sleep(0.01)
    assert not batch.world.files
    assert not any(pack.done() for pack in packs)
    gate.set()
    places = [place for pack in packs for place in (await pack).items()]
    (key,) = batch.world.files
    assert key.startswith("bodies/c/dt=2026-11-21/")
    assert [(url, batch.read(place)) for url, place in places] == [(url, url) for url in urls]
    assert len(list(warc.members(batch.world.files[key]))) == 1 + len(urls)


async def test_crawls_have_separate_files() -> None:
    batch = Batch()
    await asyncio.gather(batch.pack("a", "https://h/1"), batch.pack("b", "https://h/1"))
    assert sorted(key.split("/")[1] for key in batch.world.files) == ["a", "b"]


@pytest.mark.parametrize(("wait_s", "bytes_max"), [(0.02, 10**9), (60.0, 100)])
async def test_pack_does_not_wait_for_slow_pack(wait_s: float, bytes_max: int) -> None:
    """The wait has a limit, and a large file is written early."""
    batch, gate = Batch(wait_s=wait_s, bytes_max=bytes_max), asyncio.Event()
    slow = asyncio.create_task(batch.pack("c", "https://h/slow", gate))
    places = await asyncio.wait_for(batch.pack("c", "https://h/fast"), 5)
    assert batch.read(places["https://h/fast"]) == "https://h/fast"
    gate.set()
    await slow
    assert len(batch.world.files) == 2


async def test_empty_or_failed_pack_delays_no_other() -> None:
    batch = Batch()

    async def fails() -> None:
        with batch.body_writer.taking_part("c"):
            await asyncio.sleep(0.01)
            raise Transient("a table")

    async def brings_nothing() -> None:
        with batch.body_writer.taking_part("c") as part:
            assert await part.put([]) == {}

    done = await asyncio.wait_for(
        asyncio.gather(
            batch.pack("c", "https://h/1"), fails(), brings_nothing(), return_exceptions=True
        ),
        5,
    )
    assert isinstance(done[1], Transient)
    assert len(batch.world.files) == 1


@pytest.mark.parametrize(("failures", "stored"), [(3, True), (4, False)])
async def test_failed_file_write_fails_all_its_packs(failures: int, stored: bool) -> None:
    batch = Batch(gate=fail_on("files.put", times=failures))
    done = await asyncio.gather(
        *(batch.pack("c", f"https://h/{place}") for place in range(3)), return_exceptions=True
    )
    assert [not isinstance(one, Transient) for one in done] == [stored] * 3
    assert len(batch.world.files) == stored
    again = await batch.pack("c", "https://h/again")
    assert batch.read(again["https://h/again"]) == "https://h/again"


async def test_cancelled_writer_fails_other_packs() -> None:
    entered: asyncio.Queue[asyncio.Task[object] | None] = asyncio.Queue()

    async def stuck(effect: str, moment: Moment) -> None:
        if effect == "files.put" and moment is Moment.BEFORE:
            entered.put_nowait(asyncio.current_task())
            await asyncio.get_running_loop().create_future()

    batch = Batch(gate=stuck)
    packs = [asyncio.create_task(batch.pack("c", f"https://h/{place}")) for place in range(2)]
    writer = await entered.get()
    assert writer is not None
    writer.cancel()
    done = await asyncio.wait_for(asyncio.gather(*packs, return_exceptions=True), 5)
    assert sorted(type(one).__name__ for one in done) == ["CancelledError", "Transient"]
