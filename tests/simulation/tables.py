"""The memory adapters, where the simulated world is stricter than they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from orbweaver.adapters.memory import MemoryFiles, MemoryPages

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from orbweaver.adapters.memory import World
    from orbweaver.adapters.memory.world import Gate
    from orbweaver.core.record import PageRecord

T = TypeVar("T")
# Few, so that a run of the exporter takes steps that can be counted.
SHARDS = 4
QUERY_ROWS = 4

# What is one transaction of several items: refused, it is a conflict.
TRANSACTIONS = frozenset({"packs.commit", "packs.park", "crawls.seal"})
# What is one of many items of a batch: refused, the others are in.
BATCHES = frozenset({"frontier.claim", "frontier.release", "pages.store", "queue.send"})


def fault_of(effect: str, kind: str) -> str:
    """Name a fault of an effect, as it is counted."""
    if effect.startswith("files."):
        return f"S3 {kind}"
    if kind == "throttle" and effect in TRANSACTIONS:
        return "transaction conflict"
    if kind == "throttle" and effect in BATCHES:
        return "partial batch"
    return kind


class SimPages(MemoryPages):
    """Page records, read a few rows at a time: others store between two reads."""

    def __init__(self, world: World, gate: Gate) -> None:
        super().__init__(world, gate, shards=SHARDS)

    async def read_shard(
        self, day: str, shard: int, *, after: str | None = None, crawl: str | None = None
    ) -> AsyncIterator[tuple[str, PageRecord]]:
        """See the port."""
        partition = f"{day}#{shard}"
        while True:
            rows = await self._do("pages.query", lambda: self._rows(partition, after))  # noqa: B023
            for key, record in rows:
                if crawl is None or record.crawl == crawl:
                    yield key, record
            if len(rows) < QUERY_ROWS:
                return
            after = rows[-1][0]

    def _rows(self, partition: str, after: str | None) -> list[tuple[str, PageRecord]]:
        rows = sorted(
            (key, record)
            for (owner, key), record in self._world.pages.items()
            if owner == partition and (after is None or key > after)
        )
        return rows[:QUERY_ROWS]


class SimFiles(MemoryFiles):
    """A bucket that somebody looks at after every change."""

    def __init__(self, world: World, gate: Gate, look: Callable[[], None]) -> None:
        super().__init__(world, gate)
        self._look = look

    async def _do(self, effect: str, act: Callable[[], T]) -> T:
        def seen() -> T:
            result = act()
            if effect in ("files.put", "files.delete"):
                self._look()
            return result

        return await super()._do(effect, seen)
