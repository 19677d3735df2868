"""Change feeds of runs: which runs have one, their base of comparison, and faults."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orbweaver.model.crawl import Crawl, State, default_crawl
from orbweaver.model.errors import Permanent, Transient
from tests.memory import Moment
from tests.unit.changing import (
    FIRST,
    HOUR_MS,
    NOON_MS,
    RETENTION_S,
    SECOND,
    Stand,
    begun,
    page,
    run,
)

# --- runs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "crawl",
    [
        replace(default_crawl(NOON_MS), state=State.FINISHED, finished_at_ms=NOON_MS + 1),
        run(0, state=State.RUNNING, stop=None, finished_at_ms=None),
    ],
    ids=lambda crawl: str(crawl.id),
)
async def test_crawl_without_end_has_no_feed(crawl: Crawl) -> None:
    stand = Stand()
    await stand.add(crawl, page(crawl, "a"))
    assert await stand.rows(crawl) == []
    assert stand.world.files == {}


async def test_feed_of_run_never_exported_is_made_later() -> None:
    stand, other = await begun(), await begun()
    for one in (stand, other):
        await one.add(SECOND, page(SECOND, "home", "2"))
    late = [await stand.changes(crawl) for crawl in (SECOND, FIRST)]
    early = [await other.changes(crawl) for crawl in (FIRST, SECOND)]
    assert late == early[::-1]
    assert stand.world.files == other.world.files


async def test_runs_of_other_name_have_own_snapshots() -> None:
    stand = await begun()
    other = await stand.add(run(2, id="other-1", name="other"), page(run(2, id="other-1"), "a"))
    assert await stand.changes(other) == {"a": "created"}


async def test_ended_on_returns_runs_ended_on_day() -> None:
    stand = Stand()
    tomorrow = run(1, finished_at_ms=NOON_MS + 12 * HOUR_MS)
    for crawl in (SECOND, FIRST, tomorrow, run(3, state=State.RUNNING, finished_at_ms=None)):
        await stand.add(crawl)
    feed = stand.feed()
    assert await feed.ended_on("2026-11-21") == (FIRST, SECOND)
    assert await feed.ended_on("2026-11-22") == (tomorrow,)


async def test_run_with_expired_records_has_no_feed() -> None:
    """Expired records would look like deleted pages."""
    stand = await begun()
    await stand.add(SECOND, page(SECOND, "home", "2"))
    stand.clock = type(stand.clock)(FIRST.started_at_ms + RETENTION_S * 1000)
    assert await stand.rows(FIRST) == []
    rows = await stand.rows(SECOND)
    assert [row["change"] for row in rows] == ["created"]


async def test_unused_snapshots_are_removed() -> None:
    stand = await begun()
    await stand.add(SECOND, page(SECOND, "home", "2"))
    assert await stand.changes(SECOND)
    stand.clock = type(stand.clock)(SECOND.started_at_ms + RETENTION_S * 1000)
    far = run(24 * 30 + 3)
    await stand.add(far, page(far, "home", "3"))
    assert (await stand.changes(far))["home"] == "updated"
    assert {key.split("/")[3] for key in stand.world.files} == {"site-2", far.id}


# --- shards, deadlines, faults ------------------------------------------------------------------


async def test_snapshot_with_other_shard_count_is_read() -> None:
    stand = await begun(shards=2)
    assert await stand.changes(FIRST)
    stand.shards = 5
    await stand.add(SECOND, page(SECOND, "home"), page(SECOND, "a", "2", by="home"))
    assert await stand.changes(SECOND) == {"home": "unchanged", "a": "updated", "b": "deleted"}


async def test_feed_rows_are_read_by_shard() -> None:
    stand = await begun()
    feed = stand.feed()
    assert await feed.make(FIRST)
    whole = [row async for row in feed.rows(FIRST)]
    parts = [row async for row in feed.rows(FIRST, 0)]
    parts += [row async for row in feed.rows(FIRST, 1)]
    parts += [row async for row in feed.rows(FIRST, 2)]
    assert parts == whole


async def test_url_recorded_on_two_days_counts_once() -> None:
    long = run(0, finished_at_ms=NOON_MS + 20 * HOUR_MS)
    stand = Stand()
    later = page(long, "a", "2", fetched_at=NOON_MS + 13 * HOUR_MS)
    await stand.add(long, page(long, "a"), later, page(long, "b"))
    rows = await stand.rows(long)
    assert [row["sha256"] for row in rows] == ["2", "1"]


async def test_feed_made_in_several_calls_reads_records_once() -> None:
    stand = await begun()
    reads: list[str] = []

    async def count(effect: str, moment: Moment) -> None:
        reads.append(f"{effect} {moment}")

    calls = 1
    while not await stand.feed(count).make(FIRST, deadline_ms=stand.clock.now_ms()):
        calls += 1
    assert calls == stand.shards
    once = sum("pages.read" in read for read in reads)
    other = await begun()
    reads.clear()
    assert await other.feed(count).make(FIRST)
    assert once == sum("pages.read" in read for read in reads)
    assert stand.world.files == other.world.files


async def test_transient_faults_are_retried() -> None:
    stand = await begun()
    calls = 0

    async def flaky(effect: str, moment: Moment) -> None:
        nonlocal calls
        calls += 1
        if calls % 3 == 0:
            raise Transient(f"{effect} {moment}")

    assert await stand.feed(flaky).make(FIRST)
    assert len(await stand.changes(FIRST)) == 3

    async def down(effect: str, _moment: Moment) -> None:
        if effect == "pages.read":
            raise Transient(effect)

    with pytest.raises(Transient):
        await (await begun()).feed(down).make(FIRST)


async def test_missing_or_damaged_bundle_is_an_error() -> None:
    """A partial snapshot would report the missing pages as created."""
    stand = await begun(shards=1)
    assert await stand.changes(FIRST)
    [key, _] = (key for key in stand.world.files if "/rows-" in key)
    del stand.world.files[key]
    with pytest.raises(Permanent, match="not there"):
        await stand.changes(FIRST)
    stand.world.files[key] = b"nonsense"
    with pytest.raises(ValueError, match="cannot be unpacked"):
        await stand.changes(FIRST)


@pytest.mark.parametrize(
    "body", [b"{}", b"nonsense", b'{"v":99}', b'{"v":1}', b"[]", b'{"v":1,"x":1}']
)
async def test_unreadable_head_is_made_again(body: bytes) -> None:
    stand, other = await begun(), await begun()
    assert await stand.changes(FIRST) == await other.changes(FIRST)
    for key in list(stand.world.files):
        if key.endswith(("head.json", "shard-0001.json")):
            stand.world.files[key] = body
    assert await stand.changes(FIRST) == await other.changes(FIRST)
    assert stand.world.files == other.world.files
