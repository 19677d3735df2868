"""Cache crawls for five seconds, after which workers notice that a crawl was paused or edited."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from orbweaver.model.crawl import Counts, Crawl
from orbweaver.model.ports import Clock

if TYPE_CHECKING:
    from orbweaver.frontier.ports import Crawls

CRAWL_FRESH_MS = 5_000


class RecentCrawls:
    """Reads crawls, and caches each crawl for five seconds."""

    def __init__(self, *, crawls: Crawls, clock: Clock) -> None:
        self._crawls = crawls
        self._clock = clock
        self._read: dict[str, tuple[int, Crawl | None]] = {}
        self._reading: dict[str, asyncio.Event] = {}

    async def get(self, crawl_id: str) -> Crawl | None:
        """Return a crawl, at most five seconds old. Crawls that do not exist are not cached."""
        known = self._fresh(crawl_id)
        # All requests of a batch need the crawl at the same time. One of them reads it.
        if known is None and crawl_id in self._reading:
            await self._reading[crawl_id].wait()
            known = self._fresh(crawl_id)
        return known or await self._look(crawl_id)

    async def _look(self, crawl_id: str) -> Crawl | None:
        now_ms = self._clock.now_ms()
        done = self._reading[crawl_id] = asyncio.Event()
        try:
            crawl = await self._crawls.get(crawl_id)
            self._read[crawl_id] = (now_ms, crawl)
        finally:
            done.set()
            if self._reading.get(crawl_id) is done:
                del self._reading[crawl_id]
        return crawl

    async def learned(self, crawl: Crawl) -> Counts:
        """Return the crawl's committed counters of rendering gain (worker/rendering_gain.py)."""
        return (await self._crawls.counters(crawl)).learned

    def _fresh(self, crawl_id: str) -> Crawl | None:
        read_ms, crawl = self._read.get(crawl_id, (-CRAWL_FRESH_MS, None))
        return crawl if 0 <= self._clock.now_ms() - read_ms < CRAWL_FRESH_MS else None

    def forget(self, crawl_id: str) -> None:
        """Drop a crawl from the cache, because it has changed."""
        self._read.pop(crawl_id, None)
        self._reading.pop(crawl_id, None)
