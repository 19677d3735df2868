"""A real Prometheus reads the output of `orbweaver metrics`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from orbweaver.cli.commands.metrics import READ_MS
from tests.e2e.stand import until
from tests.integration.prometheus import NEEDED, prometheus
from tests.unit.cli.scraping import serving
from tests.unit.cli.test_exposing import COUNTS, CRAWL, stage_with

pytestmark = [NEEDED, pytest.mark.slow]


async def test_prometheus_scrapes_metrics(tmp_path: Path) -> None:
    stage = stage_with(CRAWL)
    shop = '{crawl="shop-1"}'
    async with serving(stage) as url:
        with prometheus(tmp_path, url) as server:

            def asked(query: str, value: float) -> None:
                what = f"{query} is {value}"
                until(lambda: server.value(query) == pytest.approx(value), what)

            async def comes(query: str, value: float) -> None:
                # In a thread, because this thread serves the metrics.
                await asyncio.to_thread(asked, query, value)

            claimed = f"orbweaver_urls_claimed_total{shop}"
            await comes(claimed, COUNTS["claimed"])
            await comes(f"sum(orbweaver_urls_ended_total{shop})", 9)
            await comes("orbweaver_queue_messages{state='waiting'}", 11)
            await comes('orbweaver_crawl_state{orbweaver_crawl_state="running"}', 1)
            await comes("up", 1)
            stage.world.shards[CRAWL.id, 0].counts["claimed"] = 25
            stage.clock.at_ms += READ_MS
            await comes(claimed, 25)
            (target,) = await asyncio.to_thread(server.targets)
            assert target["health"] == "up"
            assert not target["lastError"]
