"""Crawls as they stood a moment ago."""

from __future__ import annotations

import asyncio

import pytest

from orbweaver.model.errors import Transient
from orbweaver.worker.crawl_cache import CRAWL_FRESH_MS, RecentCrawls
from tests.memory import ManualClock, MemoryCrawls, Moment, World
from tests.unit.stage import CRAWL, NOW_MS


class Table:
    """Crawls in memory, whose readings are counted and can be held back."""

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


async def test_a_crawl_is_read_once_in_five_seconds() -> None:
    """Then, and when the clock was set back, it is read again; one that is not there, always."""
    table = Table()
    for step_ms, readings in ((0, 1), (CRAWL_FRESH_MS - 1, 1), (1, 2), (-10_000, 3)):
        table.clock.at_ms += step_ms
        assert await table.recent.get(CRAWL.id) == CRAWL
        assert table.readings == readings
    for readings in (4, 5):
        assert await table.recent.get("absent") is None
        assert table.readings == readings


async def test_who_asks_at_once_shares_a_reading() -> None:
    """A batch's requests do not all read the crawl when they find it stale."""
    table = Table()
    table.open.clear()
    asking = [asyncio.create_task(table.recent.get(CRAWL.id)) for _ in range(20)]
    await asyncio.sleep(0)
    table.open.set()
    assert await asyncio.gather(*asking) == [CRAWL] * 20
    assert table.readings == 1


async def test_a_failed_reading_is_not_shared() -> None:
    """Whoever waited for one that failed reads by itself."""
    table = Table()
    table.failures = 1
    table.open.clear()
    asking = [asyncio.create_task(table.recent.get(CRAWL.id)) for _ in range(3)]
    await asyncio.sleep(0)
    table.open.set()
    first, *others = await asyncio.gather(*asking, return_exceptions=True)
    assert isinstance(first, Transient)
    assert others == [CRAWL] * 2


async def test_what_was_waited_for_too_long_is_read_again() -> None:
    """A reading that began long ago does not show what has become of a crawl since."""
    table = Table()
    table.open.clear()
    asking = [asyncio.create_task(table.recent.get(CRAWL.id)) for _ in range(2)]
    await asyncio.sleep(0)
    table.clock.at_ms += CRAWL_FRESH_MS
    table.open.set()
    await asyncio.gather(*asking)
    assert table.readings == 2


@pytest.mark.parametrize("reading", [False, True], ids=["read", "being read"])
async def test_what_is_forgotten_is_read_anew(*, reading: bool) -> None:
    """Whoever has learned that a crawl is not as it was gets it as it is now."""
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
