"""Page records of several runs of a crawl, each URL once: in the newest run that has a record."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from orbweaver.frontier.ports import Pages
from orbweaver.frontier.retrying import closing
from orbweaver.model.page_record import PageRecord


class NewestRecords:
    """A `Pages` port for exports of `runs`, newest first, one after another.

    Memory: a hash for each record, without the records of the last run.
    """

    def __init__(self, pages: Pages, runs: Sequence[str]) -> None:
        self._pages = pages
        self._runs = tuple(runs)
        self._hashes: dict[str, set[str]] = {run: set() for run in runs[:-1]}

    async def store(self, records: Sequence[PageRecord]) -> None:
        await self._pages.store(records)

    async def read_shard(
        self, day: str, shard: int, *, after: str | None = None, crawl: str | None = None
    ) -> AsyncIterator[tuple[str, PageRecord]]:
        """Read the records of a run whose URLs no newer run has."""
        place = self._runs.index(crawl) if crawl in self._runs else 0
        newer = [self._hashes[run] for run in self._runs[:place]]
        own = self._hashes.get(crawl or "", set())
        rows = self._pages.read_shard(day, shard, after=after, crawl=crawl)
        async with closing(rows):
            async for key, record in rows:
                url_hash = key.rpartition("#")[2]
                own.add(url_hash)
                if not any(url_hash in hashes for hashes in newer):
                    yield key, record

    async def crawls_of(self, day: str) -> tuple[str, ...]:
        return await self._pages.crawls_of(day)

    async def count(self, day: str, shard: int, crawl: str, rows_max: int) -> int:
        return await self._pages.count(day, shard, crawl, rows_max)

    @property
    def shards(self) -> int:
        return self._pages.shards
