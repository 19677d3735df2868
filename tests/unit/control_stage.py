"""A `Control` (starts and steers crawls) over memory adapters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from orbweaver.control.crawl_control import Control, ControlPorts
from orbweaver.control.crawl_spec import CrawlSpec
from orbweaver.frontier.messages import decode
from orbweaver.model.crawl import Crawl
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import PageRecord, page_key
from orbweaver.model.settings import Settings
from tests.memory import (
    ManualClock,
    MemoryCrawls,
    MemoryHosts,
    MemoryPacks,
    MemoryPages,
    MemoryQueue,
    Moment,
    World,
)
from tests.memory.world import Gate, ShardItem, open_gate

NOW_MS = 1_795_251_600_000  # 2026-11-21 09:00:00 UTC
SEED = "https://example.com/"
PLAN = CrawlSpec(seeds=(SEED,))


@dataclass
class Stage:
    """Memory adapters and a `Control`."""

    world: World = field(default_factory=World)
    clock: ManualClock = field(default_factory=lambda: ManualClock(NOW_MS))
    gate: Gate = open_gate

    @property
    def control(self) -> Control:
        return Control(
            ControlPorts(
                queue=MemoryQueue(self.world, self.gate),
                crawls=MemoryCrawls(self.world, self.gate),
                packs=MemoryPacks(self.world, self.gate),
                pages=MemoryPages(self.world, self.gate),
                hosts=MemoryHosts(self.world, self.gate),
                clock=self.clock,
                settings=Settings(),
            ),
        )

    def count(self, crawl: Crawl, **counts: int) -> None:
        shard = self.world.shards.setdefault((crawl.id, 0), ShardItem())
        shard.counts = {**shard.counts, **counts}

    def put(self, crawl: str, url: str, at_ms: int, **fields: Any) -> PageRecord:
        outcome = {"outcome": Outcome.FETCHED, "reason": Reason.OK, "depth": 0}
        record = PageRecord(crawl=crawl, url=url, fetched_at=at_ms, **{**outcome, **fields})
        self.world.pages[page_key(record, 16)] = record
        return record

    def sent(self) -> list[Any]:
        return [decode(mail.body) for mail in self.world.sent]


class Killed(Exception):
    """Simulates a killed process."""


def kill_at(number: int) -> Gate:
    """Return a gate that kills the process at its moment of this number."""
    passed = 0

    async def gate(_effect: str, _moment: Moment) -> None:
        nonlocal passed
        passed += 1
        if passed == number:
            raise Killed

    return gate
