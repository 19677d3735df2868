"""Page records in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence

from orbweaver.model.page_record import PageRecord, page_key, prior_keys
from orbweaver.model.target import Prior
from tests.memory.world import Gate, Gated, World, open_gate


class MemoryPages(Gated):
    """Page records."""

    def __init__(self, world: World, gate: Gate = open_gate, *, shards: int = 16) -> None:
        super().__init__(world, gate)
        self._shards = shards

    @property
    def shards(self) -> int:
        return self._shards

    async def store(self, records: Sequence[PageRecord]) -> None:
        for record in records:
            key = page_key(record, self._shards)
            await self._do("pages.store", lambda key=key, record=record: self._put(key, record))  # type: ignore[misc]

    async def earlier_records(self, priors: Mapping[str, Prior]) -> Mapping[str, PageRecord]:
        def find() -> dict[str, PageRecord]:
            found = {}
            for url, prior in priors.items():
                for key in prior_keys(prior, url, self._shards):
                    record = self._world.pages.get(key)
                    if record is not None:
                        found[url] = record
            return found

        return await self._do("pages.before", find)

    async def read_shard(
        self, day: str, shard: int, *, after: str | None = None, crawl: str | None = None
    ) -> AsyncIterator[tuple[str, PageRecord]]:
        partition = f"{day}#{shard}"
        rows = await self._do(
            "pages.read",
            lambda: sorted(
                (key, record)
                for (owner, key), record in self._world.pages.items()
                if owner == partition and (after is None or key > after)
            ),
        )
        for key, record in rows:
            if crawl is None or record.crawl == crawl:
                yield key, record

    async def crawls_of(self, day: str) -> tuple[str, ...]:
        return await self._do(
            "pages.crawls",
            lambda: tuple(
                sorted(
                    {
                        record.crawl
                        for (owner, _), record in self._world.pages.items()
                        if owner.partition("#")[0] == day
                    }
                )
            ),
        )

    async def count(self, day: str, shard: int, crawl: str, rows_max: int) -> int:
        partition = f"{day}#{shard}"
        found = await self._do(
            "pages.count",
            lambda: sum(
                1
                for (owner, _), record in self._world.pages.items()
                if owner == partition and record.crawl == crawl
            ),
        )
        return min(found, rows_max)

    def _put(self, key: tuple[str, str], record: PageRecord) -> None:
        self._world.pages[key] = record
