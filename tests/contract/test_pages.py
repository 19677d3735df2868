"""Contract of pages: records by day and shard."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from orbweaver.model.errors import Permanent
from orbweaver.model.item import Item
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import PageRecord, page_key
from orbweaver.model.target import Prior
from tests.contract import samples
from tests.contract.worlds import LOCAL

if TYPE_CHECKING:
    from orbweaver.frontier.ports import Pages
    from tests.contract.worlds import World

DAY = "2026-01-15"
FULL = samples.record(
    7,
    outcome=Outcome.FAILED,
    reason=Reason.HTTP_SERVER_ERROR,
    referrer="https://example.com/ü",
    status=503,
    content_type="text/html",
    charset="utf-8",
    bytes=0,
    latency_ms=12,
    attempt=4,
    title="",
    description="Spinnennetze \U0001f578 und \u0000 anderes",
    language="de",
    canonical="https://example.com/7",
    links=0,
    sha256="ab" * 32,
    etag='W/"x"',
    last_modified="Thu, 15 Jan 2026 12:00:00 GMT",
    body_key="bodies/x.warc.gz",
    body_offset=1,
    body_length=2,
    items=3,
    error="quiet\nfailure",
    items_invalid=1,
    needs_rendering=True,
    rendered=True,
    extracted=(
        Item(table="books", place=0, fields={"title": "ü \U0001f578", "price": "1.50", "n": 2}),
        Item(table="books", place=1, fields={"tags": ["a", None], "x": 1.5, "ok": True}),
        Item(table="others", place=0, fields={}, problems=("title: missing (css 'h1')",)),
    ),
)


async def read(
    pages: Pages, day: str = DAY, *, crawl: str | None = None
) -> dict[tuple[int, str], PageRecord]:
    """Read a day; return shard and key to record."""
    return {
        (shard, key): record
        for shard in range(pages.shards)
        async for key, record in pages.read_shard(day, shard, crawl=crawl)
    }


async def test_prior_record_is_found_by_claim(world: World) -> None:
    """The record is of the claim's day or the next; the later of two wins."""
    days = 86_400_000
    stored = [
        samples.record(1),
        samples.record(2, fetched_at=samples.NOW_MS + days),
        samples.record(3),
        samples.record(3, fetched_at=samples.NOW_MS + days),
        samples.record(4, fetched_at=samples.NOW_MS + 2 * days),
        samples.record(5, crawl="shop-2"),
    ]
    await world.container().pages.store(stored)
    prior = Prior(crawl="shop-1", at_ms=samples.NOW_MS)
    asked = {f"https://example.com/{number}": prior for number in range(1, 7)}
    found = await world.container().pages.earlier_records(asked)
    assert found == {record.url: record for record in (stored[0], stored[1], stored[3])}
    assert await world.container().pages.earlier_records({}) == {}


@pytest.mark.parametrize("record", [samples.record(1), FULL], ids=["plain", "full"])
async def test_record_is_read_as_stored(
    world: World, record: PageRecord, request: pytest.FixtureRequest
) -> None:
    if record is FULL and request.node.callspec.params["world"] == LOCAL:
        reason = "its version is older than May 2020, when DynamoDB began to take empty texts"
        request.applymarker(pytest.mark.xfail(reason=reason, raises=Permanent))
    await world.container().pages.store([record])
    assert list((await read(world.container().pages)).values()) == [record]


async def test_second_store_changes_nothing(world: World, pages: Pages) -> None:
    records = [samples.record(number) for number in range(5)]
    await pages.store(records)
    await world.container().pages.store(records[:3])
    assert sorted(record.url for record in (await read(pages)).values()) == [
        record.url for record in records
    ]


async def test_last_record_of_url_in_call_wins(pages: Pages) -> None:
    await pages.store([samples.record(1, title="first"), samples.record(1, title="last")])
    assert [record.title for record in (await read(pages)).values()] == ["last"]


async def test_empty_result_pack_stores_nothing(pages: Pages) -> None:
    await pages.store([])
    assert await read(pages) == {}


async def test_shard_is_read_in_key_order(pages: Pages) -> None:
    records = [samples.record(number) for number in range(60)]
    await pages.store(records)
    found: list[str] = []
    for shard in range(pages.shards):
        rows = [row async for row in pages.read_shard(DAY, shard)]
        keys = [key for key, _ in rows]
        assert keys == sorted(keys)
        assert keys
        for key, record in rows:
            assert page_key(record, pages.shards) == (f"{DAY}#{shard}", key)
        found += [record.url for _, record in rows]
    assert sorted(found) == sorted(record.url for record in records)


async def test_read_continues_after_key(pages: Pages) -> None:
    await pages.store([samples.record(number) for number in range(40)])
    keys = [key async for key, _ in pages.read_shard(DAY, 0)]
    for place, key in enumerate(keys):
        rest = [found async for found, _ in pages.read_shard(DAY, 0, after=key)]
        assert rest == keys[place + 1 :]
    between = [found async for found, _ in pages.read_shard(DAY, 0, after=keys[0] + "~")]
    assert between == keys[1:]


async def test_read_by_crawl_omits_similar_crawl_ids(pages: Pages) -> None:
    crawls = ("a-1", "a-1x", "a-10", "a", "b")
    await pages.store(
        [samples.record(number, crawl=crawl) for number in range(12) for crawl in crawls]
    )
    for crawl in crawls:
        found = (await read(pages, crawl=crawl)).values()
        assert {record.crawl for record in found} == {crawl}
        assert len(found) == 12
    assert await read(pages, crawl="nobody") == {}


@pytest.mark.parametrize("after", ["a#", "b#", "b#~", "c#", "~"])
async def test_read_by_crawl_continues_after_any_key(pages: Pages, after: str) -> None:
    await pages.store(
        [samples.record(number, crawl=crawl) for number in range(8) for crawl in "abc"]
    )
    for shard in range(pages.shards):
        everything = [key async for key, _ in pages.read_shard(DAY, shard)]
        rows = [key async for key, _ in pages.read_shard(DAY, shard, after=after, crawl="b")]
        assert rows == [key for key in everything if key.startswith("b#") and key > after]


async def test_record_is_stored_in_utc_day_of_fetch(pages: Pages) -> None:
    midnight_ms = samples.NOW_MS + 12 * 3_600_000
    await pages.store([samples.record(1, fetched_at=midnight_ms - 1)])
    await pages.store([samples.record(2, fetched_at=midnight_ms)])
    assert [record.url for record in (await read(pages)).values()] == ["https://example.com/1"]
    tomorrow = await read(pages, "2026-01-16")
    assert [record.url for record in tomorrow.values()] == ["https://example.com/2"]
    assert await read(pages, "2026-01-17") == {}


async def test_day_larger_than_one_answer_is_read(pages: Pages) -> None:
    """DynamoDB returns at most 1 MB per answer."""
    wide = "x" * 30_000
    records = [samples.record(number, description=wide) for number in range(150)]
    await pages.store(records)
    assert sorted(record.url for record in (await read(pages)).values()) == sorted(
        record.url for record in records
    )


async def test_lone_surrogates_can_be_stored(pages: Pages) -> None:
    await pages.store([samples.record(1, etag="\udcff", title="kept")])
    assert [record.title for record in (await read(pages)).values()] == ["kept"]


async def test_crawls_of_day_are_listed_once_sorted(pages: Pages) -> None:
    assert await pages.crawls_of(DAY) == ()
    names = ("shop", "shop-1", "shop-1-20260115-120000", "a", "zz_9.x", "default")
    records = [samples.record(number, crawl=name) for name in names for number in range(7)]
    records += [samples.record(1, crawl="tomorrow", fetched_at=samples.NOW_MS + 86_400_000)]
    await pages.store(records)
    assert await pages.crawls_of(DAY) == tuple(sorted(names))


async def test_shard_count_stops_at_limit(pages: Pages) -> None:
    await pages.store([samples.record(number) for number in range(40)])
    await pages.store([samples.record(number, crawl="shop-11") for number in range(5)])
    counts = [await pages.count(DAY, shard, "shop-1", 100) for shard in range(pages.shards)]
    assert sum(counts) == 40
    assert max(counts) > 3
    assert await pages.count(DAY, counts.index(max(counts)), "shop-1", 3) == 3
    assert await pages.count(DAY, 0, "nothing", 3) == 0


async def test_items_of_page_are_read_as_stored(world: World) -> None:
    items = tuple(
        Item(table="books", place=place, fields={"title": f"{place} " + "ü" * 80, "price": "1.50"})
        for place in range(900)
    )
    stored = samples.record(8, items=len(items), items_invalid=0, extracted=items)
    await world.container().pages.store([stored])
    assert [*(await read(world.container().pages)).values()] == [stored]
