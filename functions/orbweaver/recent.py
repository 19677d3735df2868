"""Crawls as they stood a moment ago: what a container asks before whatever it does.

A crawl that is paused, cancelled or edited is noticed this much later, wherever it is worked on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orbweaver.core.crawl import Crawl
    from orbweaver.ports import Clock, Crawls

CRAWL_FRESH_MS = 5_000


class RecentCrawls:
    """Reads crawls, each at most once in five seconds."""

    def __init__(self, *, crawls: Crawls, clock: Clock) -> None:
        """Take the ports."""
        self._crawls = crawls
        self._clock = clock
        self._read: dict[str, tuple[int, Crawl | None]] = {}

    async def get(self, crawl_id: str) -> Crawl | None:
        """Read a crawl, at most five seconds old; one that is not there is looked for again."""
        now_ms = self._clock.now_ms()
        read_ms, crawl = self._read.get(crawl_id, (-CRAWL_FRESH_MS, None))
        if crawl is None or not 0 <= now_ms - read_ms < CRAWL_FRESH_MS:
            crawl = await self._crawls.get(crawl_id)
            self._read[crawl_id] = (now_ms, crawl)
        return crawl

    def forget(self, crawl_id: str) -> None:
        """Have a crawl read anew: it turned out not to be as it was."""
        self._read.pop(crawl_id, None)
