"""`orbweaver metrics`, for Prometheus."""

from __future__ import annotations

import socket
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import ClientConnectionError

from orbweaver.cli.commands.metrics import LIST_MS, READ_MS, SHOWN_MS, address
from orbweaver.cli.exit_codes import UsageError
from orbweaver.cli.gauges import CRAWLS_MAX
from orbweaver.frontier.queues import Depths
from orbweaver.model.crawl import Crawl, State, Stop
from orbweaver.model.errors import Transient
from tests.memory.world import ShardItem
from tests.unit.cli.fakes import NOW_MS, Machine, Stage
from tests.unit.cli.scraping import samples, scraped, serving

CRAWL = Crawl(id="shop-1", name="shop", started_at_ms=NOW_MS)
COUNTS = {
    "claimed": 20,
    "fetched": 7,
    "fetched.ok": 6,
    "fetched.truncated": 1,
    "failed": 2,
    "failed.timeout": 2,
    "refused.depth": 9,
    "retries": 3,
    "deferrals": 4,
    "bytes": 1_234,
    "logins": 2,
    "logins_failed": 1,
    "session_lost": 3,
    "items": 5,
    "items_invalid": 1,
    "nanodollars": 2_500_000_000,
    "units.write.claim": 10,
    "units.write.commit": 6,
    "units.mb_ms.run": 1_024_000,
    "host.0.done": 9,
}


def stage_with(*crawls: Crawl, counts: dict[str, int] | None = None) -> Stage:
    queue = Depths(waiting=11, in_work=2, delayed=3, dead=1)
    stage = Stage(machine=Machine(up_already=True, queue=queue))
    for crawl in crawls:
        stage.world.crawls[crawl.id] = crawl
        stage.world.shards[crawl.id, 0] = ShardItem(
            counts=dict(COUNTS if counts is None else counts)
        )
    return stage


def key(name: str, **labels: str) -> tuple[str, frozenset[tuple[str, str]]]:
    return name, frozenset(labels.items())


async def test_crawl_is_exposed_as_valid_openmetrics() -> None:
    async with serving(stage_with(CRAWL)) as url:
        status, kind, text = await scraped(url)
    assert (status, kind.partition(";")[0]) == (200, "application/openmetrics-text")
    assert text.endswith("# EOF\n")
    found = samples(text)
    shop = {"crawl": "shop-1"}
    for series, value in {
        key("orbweaver_urls_claimed_total", **shop): 20,
        key("orbweaver_urls_ended_total", **shop, outcome="fetched", reason="ok"): 6,
        key("orbweaver_urls_ended_total", **shop, outcome="fetched", reason="truncated"): 1,
        key("orbweaver_urls_ended_total", **shop, outcome="failed", reason="timeout"): 2,
        key("orbweaver_links_refused_total", **shop, reason="depth"): 9,
        key("orbweaver_retries_total", **shop): 3,
        key("orbweaver_deferrals_total", **shop): 4,
        key("orbweaver_page_bytes_total", **shop): 1_234,
        key("orbweaver_logins_total", **shop, successful="true"): 2,
        key("orbweaver_logins_total", **shop, successful="false"): 1,
        key("orbweaver_sessions_lost_total", **shop): 3,
        key("orbweaver_items_total", **shop, valid="true"): 4,
        key("orbweaver_items_total", **shop, valid="false"): 1,
        key("orbweaver_units_total", **shop, term="write"): 16,
        key("orbweaver_metered_dollars_total", **shop, term="write"): 16 * 625e-9,
        key("orbweaver_crawl_start_timestamp_seconds", **shop): NOW_MS / 1000,
        key("orbweaver_crawl_state", **shop, orbweaver_crawl_state="running"): 1,
        key("orbweaver_crawl_state", **shop, orbweaver_crawl_state="finished"): 0,
        key("orbweaver_queue_messages", state="waiting"): 11,
        key("orbweaver_queue_messages", state="in_work"): 2,
        key("orbweaver_queue_messages", state="delayed"): 3,
        key("orbweaver_dead_letters"): 1,
    }.items():
        assert found[series] == pytest.approx(value), series
    assert found[key("orbweaver_cost_dollars_total", **shop)] > 0
    assert not any("host" in name for name, _ in found)


async def test_request_without_openmetrics_gets_older_text_format() -> None:
    async with serving(stage_with(CRAWL)) as url:
        status, kind, text = await scraped(url, "*/*")
    assert (status, kind.partition(";")[0]) == (200, "text/plain")
    assert 'orbweaver_urls_claimed_total{crawl="shop-1"} 20.0' in text
    assert "# EOF" not in text


async def test_live_and_recently_ended_crawls_are_exposed() -> None:
    ended = replace(CRAWL, state=State.FINISHED, stop=Stop.FINISHED)
    crawls = [
        CRAWL,
        replace(CRAWL, id="waiting-1", state=State.PAUSED),
        replace(ended, id="just-1", finished_at_ms=NOW_MS - SHOWN_MS + 1),
        replace(ended, id="old-1", finished_at_ms=NOW_MS - SHOWN_MS),
    ]

    async def shown(line: str = "") -> set[str]:
        command = f"metrics --listen 127.0.0.1:0 {line}"
        async with serving(stage_with(*crawls), command) as url:
            _, _, text = await scraped(url)
        return {
            dict(labels)["crawl"]
            for name, labels in samples(text)
            if name == "orbweaver_urls_claimed_total"
        }

    assert await shown() == {"shop-1", "waiting-1", "just-1"}
    assert await shown("--crawl old-1") == {"old-1"}


async def test_series_are_bounded() -> None:
    crawls = [replace(CRAWL, id=f"many-{place}") for place in range(CRAWLS_MAX + 7)]
    async with serving(stage_with(*crawls)) as url:
        _, _, text = await scraped(url)
    assert len({dict(labels).get("crawl") for _, labels in samples(text)} - {None}) == CRAWLS_MAX


async def test_scrapes_share_readings() -> None:
    stage = stage_with(CRAWL)
    read: list[str] = []
    stage.fault = read.append
    async with serving(stage) as url:
        for _ in range(5):
            await scraped(url)
        assert read.count("crawls.list") == 1
        assert read.count("crawls.shard") == 1
        stage.clock.at_ms += READ_MS
        stage.world.shards[CRAWL.id, 0].counts["claimed"] = 21
        stage.world.crawls["new-1"] = replace(CRAWL, id="new-1")
        _, _, text = await scraped(url)
        found = samples(text)
        assert found[key("orbweaver_urls_claimed_total", crawl="shop-1")] == 21
        assert key("orbweaver_urls_claimed_total", crawl="new-1") not in found
        assert (read.count("crawls.list"), read.count("crawls.shard")) == (1, 2)
        stage.clock.at_ms += LIST_MS
        _, _, text = await scraped(url)
        assert key("orbweaver_urls_claimed_total", crawl="new-1") in samples(text)
        # A crawl that is erased meanwhile is left out.
        del stage.world.crawls["new-1"]
        stage.clock.at_ms += READ_MS
        status, _, text = await scraped(url)
        assert status == 200
        assert key("orbweaver_urls_claimed_total", crawl="new-1") not in samples(text)


async def test_unreachable_stack_fails_scrape_until_it_answers() -> None:
    stage = stage_with(CRAWL)

    def fault(effect: str) -> None:
        if effect == "crawls.shard":
            raise Transient("throttled")

    async with serving(stage) as url:
        await scraped(url)
        stage.clock.at_ms += READ_MS
        stage.fault = fault
        status, _, text = await scraped(url)
        assert (status, text) == (503, "cannot reach the stack: throttled\n")
        stage.fault = lambda _effect: None
        status, _, _ = await scraped(url)
        assert status == 200


async def test_queues_without_permission_are_left_out() -> None:
    stage = stage_with(CRAWL)
    stage.machine.queue = None
    async with serving(stage) as url:
        _, _, text = await scraped(url)
    assert "orbweaver_queue_messages" not in text
    assert "orbweaver_urls_claimed_total" in text


async def test_other_paths_are_404_and_server_ends_with_command() -> None:
    async with serving(stage_with(CRAWL)) as url:
        status, _, _ = await scraped(url.removesuffix("/metrics") + "/crawls")
        assert status == 404
    with pytest.raises(ClientConnectionError):
        await scraped(url)


async def test_used_port_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"cannot listen on 127.0.0.1:{port}"):
            async with serving(stage_with(CRAWL), f"metrics --listen 127.0.0.1:{port}"):
                pass


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("127.0.0.1:9464", ("127.0.0.1", 9464)),
        (":0", ("127.0.0.1", 0)),
        ("[::1]:80", ("::1", 80)),
        ("0.0.0.0:65535", ("0.0.0.0", 65535)),  # noqa: S104 - a person may want that
        ("9464", None),
        ("here:http", None),
        ("127.0.0.1:65536", None),
        ("", None),
    ],
)
def test_address_has_host_and_port_or_port_only(text: str, place: Any) -> None:
    if place is not None:
        assert address(text) == place
        return
    with pytest.raises(UsageError, match="give HOST:PORT"):
        address(text)
