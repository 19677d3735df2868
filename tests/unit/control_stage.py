"""A `Control` (starts and steers crawls) over memory adapters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from orbweaver.app.wiring import control_of
from orbweaver.control.crawl_control import Control
from orbweaver.control.crawl_spec import CrawlSpec
from orbweaver.frontier.messages import decode
from orbweaver.model.crawl import Crawl
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import PageRecord, page_key
from tests.memory import ManualClock, Moment, World
from tests.memory.world import Gate, ShardItem, open_gate
from tests.unit.memory_ports import memory_ports

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
        return control_of(memory_ports(self.world, self.clock, self.gate))

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
