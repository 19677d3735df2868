"""Readings of crawls at a given time, for tests of texts and screens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orbweaver.control.crawl_control import Status
from orbweaver.control.progress.status import ProgressMeter, StatusReading, View
from orbweaver.frontier.queues import Depths
from orbweaver.model.crawl import Counters, CounterShard, Crawl
from orbweaver.politeness.host_schedule import Host

NOW_MS = 1_795_251_600_000  # 2026-11-21 09:00:00 UTC
CRAWL = Crawl(
    id="shop-20261121-090000",
    name="shop",
    started_at_ms=NOW_MS,
    seeds=("https://shop.example/", "https://docs.example/", "http://old.example:8080/"),
    hosts_counted=("https://shop.example", "https://docs.example", "http://old.example:8080"),
    seeds_planned=1,
)
DEPTHS = Depths(waiting=180, in_work=20, delayed=7)


def reading_of(
    counts: Mapping[str, int],
    *,
    after_s: float = 60.0,
    depths: Depths | None = DEPTHS,
    hosts: tuple[Host, ...] = (),
    idle: bool = False,
    **changes: Any,
) -> StatusReading:
    crawl = replace(CRAWL, **changes)
    at_ms = NOW_MS + round(after_s * 1000)
    counters = Counters.build((CounterShard(counts=dict(counts)),))
    status = Status(crawl=crawl, counters=counters, at_ms=at_ms)
    return StatusReading(status=status, depths=depths, hosts=hosts, idle=idle)


def view_of(counts: Mapping[str, int], **given: Any) -> View:
    return ProgressMeter().add(reading_of(counts, **given))


def example(**changes: Any) -> View:
    """Watch a crawl of three hosts for four minutes, with a gap of 20 seconds."""
    meter = ProgressMeter()
    at_ms = NOW_MS + 240_000
    hosts = (
        Host(name="https://shop.example", tat_ms=at_ms + 1_000),
        Host(name="https://docs.example", blocked_until_ms=at_ms + 41_000, strikes=2),
        Host(name="http://old.example:8080", failures=9, blocked_until_ms=at_ms + 3_480_000),
    )
    views = [
        meter.add(reading_of(counts, after_s=after_s, hosts=hosts, **changes))
        for after_s in (*range(30, 120, 3), *range(141, 241, 3))
        for counts in ({**EXAMPLE, "fetched": _fetched(after_s)},)
    ]
    return views[-1]


def _fetched(after_s: int) -> int:
    """Count about three pages a second, with variation."""
    return 3 * after_s - abs(after_s % 60 - 30) - abs(after_s % 46 - 23) // 2 + 41


EXAMPLE = {
    "claimed": 1_532,
    "redirected": 5,
    "skipped": 6,
    "skipped.robots": 6,
    "failed": 9,
    "failed.http_client_error": 7,
    "failed.connect": 2,
    "refused.scope": 4_310,
    "refused.depth": 12,
    "retries": 4,
    "deferrals": 120,
    "bytes": 25_400_000,
    "received_bytes": 6_300_000,
    "nanodollars": 12_300_000,
    "host.0.claimed": 1_200,
    "host.0.done": 610,
    "host.0.failed": 2,
    "host.1.claimed": 300,
    "host.1.done": 98,
    "host.2.claimed": 32,
    "host.2.done": 12,
    "host.2.failed": 7,
}
