"""The exporter over memory adapters: faults that it retries, and faults that fail it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from orbweaver.model.errors import Permanent, Transient
from orbweaver.model.page_record import PageRecord
from tests.memory import ManualClock, Moment, World
from tests.unit.export_stage import (
    MANIFEST,
    NOON_MS,
    Scripted,
    exported,
    failing,
    pages_of,
    three_shards,
    world_of,
)

EFFECTS = (
    *("files.put", "files.get", "files.list", "files.delete", "files.print"),
    *("orders.send", "crawls.get", "pages.crawls", "events.exported"),
)


@pytest.mark.parametrize("effect", EFFECTS)
@pytest.mark.parametrize("times", [1, 2, 3])
async def test_busy_service_is_retried(effect: str, times: int) -> None:
    single = world_of(pages_of(range(25)))
    await exported(single)
    world, clock = world_of(pages_of(range(25))), ManualClock(NOON_MS)
    await exported(world, clock=clock, gate=failing(effect, times))
    assert world.files == single.files
    assert 1_000 * times <= clock.at_ms - NOON_MS <= 14_000


@pytest.mark.parametrize("effect", EFFECTS)
async def test_service_busy_for_long_fails_order(effect: str) -> None:
    world, clock = world_of(pages_of(range(25))), ManualClock(NOON_MS)
    with pytest.raises(Transient):
        await exported(world, clock=clock, gate=failing(effect, 99))
    assert clock.at_ms - NOON_MS <= 14_000 * (5 if effect == "files.print" else 1)


async def test_permanent_fault_is_not_retried() -> None:
    world, clock = world_of(pages_of(range(25))), ManualClock(NOON_MS)
    with pytest.raises(Permanent):
        await exported(world, clock=clock, gate=failing("files.put", 1, Permanent))
    assert clock.at_ms == NOON_MS
    assert MANIFEST not in world.files


@pytest.mark.parametrize(
    "faults",
    [
        [(0, 0)],
        [(0, 0), (0, 0), (0, 0)],
        [(shard, place) for shard in range(3) for place in range(15)],
        [(2, 14)] * 3,
    ],
)
async def test_throttled_read_continues_at_last_key(faults: list[tuple[int, int]]) -> None:
    single, world = World(), World()
    await exported(single, pages=Scripted(three_shards(), []))
    pages = Scripted(three_shards(), faults)
    await exported(world, pages=pages)
    assert world.files == single.files
    assert len(pages.reads) == 3 + len(faults)


@pytest.mark.parametrize("shard", range(3))
async def test_shard_throttled_for_long_fails_order(shard: int) -> None:
    world = World()
    await exported(world, pages=Scripted(three_shards(), []))
    before = dict(world.files)
    with pytest.raises(Transient):
        await exported(world, "two", pages=Scripted(three_shards(), [(shard, 7)] * 4))
    assert {key: body for key, body in world.files.items() if "_work" not in key} == before


async def test_programming_error_in_reader_is_raised() -> None:
    class Broken(Scripted):
        async def read_shard(
            self, day: str, shard: int, *, after: str | None = None, crawl: str | None = None
        ) -> AsyncIterator[tuple[str, PageRecord]]:
            async for item in super().read_shard(day, shard, after=after, crawl=crawl):
                yield item
            if shard == 1:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await exported(World(), pages=Broken(three_shards(), []))


async def test_readers_stay_within_read_ahead() -> None:
    read: dict[int, int] = {}
    seen_max: dict[int, int] = {}

    class Counting(Scripted):
        async def read_shard(
            self, day: str, shard: int, *, after: str | None = None, crawl: str | None = None
        ) -> AsyncIterator[tuple[str, PageRecord]]:
            async for item in super().read_shard(day, shard, after=after, crawl=crawl):
                read[shard] = read.get(shard, 0) + 1
                yield item

    async def gate(name: str, _moment: Moment) -> None:
        if name == "files.print" and not seen_max:
            seen_max.update(read)

    pages = Counting(three_shards(), [])
    await exported(World(), pages=pages, gate=gate, part_rows_max=5, read_ahead_rows=4)
    # Five rows are written, four wait, and the reader holds one more.
    assert seen_max[0] <= 5 + 4 + 1
    assert 1 <= seen_max[1] <= 4 + 1
    assert 1 <= seen_max[2] <= 4 + 1
