"""The cache of recently read crawls."""

from __future__ import annotations

import asyncio

import pytest

from orbweaver.model.errors import Transient
from orbweaver.worker.crawl_cache import CRAWL_FRESH_MS, RecentCrawls
from tests.memory import ManualClock, MemoryCrawls, Moment, World
from tests.unit.stage import CRAWL, NOW_MS


class Table:
    """A crawl table in memory that counts its reads and can delay them."""

    def __init__(self) -> None:
        self.world = World(crawls={CRAWL.id: CRAWL})
        self.clock = ManualClock(NOW_MS)
        self.readings = 0
        self.failures = 0
        self.open = asyncio.Event()
        self.open.set()
        self.recent = RecentCrawls(crawls=MemoryCrawls(self.world, self._gate), clock=self.clock)

    async def _gate(self, _effect: str, moment: Moment) -> None:
        if moment is Moment.AFTER:
            return
        self.readings += 1
        await self.open.wait()
        if self.failures:
            self.failures -= 1
            raise Transient("not now")


async def test_crawl_is_read_every_five_seconds() -> None:
    table = Table()
    for step_ms, readings in ((0, 1), (CRAWL_FRESH_MS - 1, 1), (1, 2), (-10_000, 3)):
        table.clock.at_ms += step_ms
        assert await table.recent.get(CRAWL.id) == CRAWL
        assert table.readings == readings
    for readings in (4, 5):
        assert await table.recent.get("absent") is None
        assert table.readings == readings


@pytest.mark.parametrize(
    ("gets", "failures", "later_ms", "readings"),
    [(20, 0, 0, 1), (3, 1, 0, 2), (2, 0, CRAWL_FRESH_MS, 2)],
    ids=["shared", "failed", "slow"],
)
async def test_concurrent_gets_share_one_read(
    gets: int, failures: int, later_ms: int, readings: int
) -> None:
    """A failed read is not shared, and the result of a slow one is not cached."""
    table = Table()
    table.failures = failures
    table.open.clear()
    asking = [asyncio.create_task(table.recent.get(CRAWL.id)) for _ in range(gets)]
    await asyncio.sleep(0)
    table.clock.at_ms += later_ms
    table.open.set()
    found = await asyncio.gather(*asking, return_exceptions=True)
    assert [isinstance(one, Transient) for one in found[:failures]] == [True] * failures
    assert found[failures:] == [CRAWL] * (gets - failures)
    assert table.readings == readings


@pytest.mark.parametrize("reading", [False, True], ids=["read", "being read"])
async def test_forgotten_crawl_is_read_again(*, reading: bool) -> None:
    table = Table()
    if reading:
        table.open.clear()
    first = asyncio.create_task(table.recent.get(CRAWL.id))
    await asyncio.sleep(0)
    table.recent.forget(CRAWL.id)
    second = asyncio.create_task(table.recent.get(CRAWL.id))
    await asyncio.sleep(0)
    table.open.set()
    await asyncio.gather(first, second)
    assert table.readings == 2
