"""Contract of crawls: definitions, states, and counters that no longer change."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING

import pytest

from orbweaver.frontier.claims import Closed, Committed
from orbweaver.model.crawl import CounterShard, State, Stop, default_crawl, with_state
from orbweaver.model.crawl_settings import RenderMode, Scope
from orbweaver.model.url_rules import UrlRule
from tests.contract import samples

if TYPE_CHECKING:
    from tests.contract.worlds import World

FULL = samples.crawl(
    "news",
    seeds=("https://example.com/", "https://example.com/ü?q=ö"),
    seeds_planned=1,
    scope=Scope.PREFIX,
    depth_max=3,
    pages_max=77,
    delay_ms=2_500,
    concurrency=2,
    window_s=60,
    duration_max_s=3_600,
    obey_robots=False,
    obey_nofollow=False,
    render=RenderMode.ALWAYS,
    user_agent="tester/1.0 (+mailto:someone@example.com)",
    rules=(
        UrlRule(match="/ü?", depth_max=0, express=False, delay_ms=0, window_s=0),
        UrlRule(match="/b", follow=False, record=True),
    ),
    express=True,
    shards=4,
    state=State.STOPPING,
    stop=Stop.CANCELLED,
    finished_at_ms=samples.NOW_MS + 5,
    announced=True,
)


@pytest.mark.parametrize(
    "crawl",
    [samples.crawl(), FULL, default_crawl(samples.NOW_MS)],
    ids=["plain", "full", "default"],
)
async def test_crawl_is_read_as_written(world: World, crawl: object) -> None:
    assert isinstance(crawl, type(FULL))
    assert await world.container().crawls.create(crawl)
    assert await world.container().crawls.get(crawl.id) == crawl


def long_list(word: str) -> tuple[str, ...]:
    """List seeds that do not fit into an item of DynamoDB, and are hard to compress."""
    return tuple(
        f"https://example.com/{word}/{sha256(bytes(place)).hexdigest() * 10}"
        for place in range(1_000)
    )


async def test_crawl_with_long_seed_list_is_read_as_written(world: World) -> None:
    crawls = world.container().crawls
    seeds, sitemap = long_list("a"), "https://example.com/sitemap.xml"
    crawl = samples.crawl(seeds=seeds, sitemap_urls=(sitemap,), seeds_planned=11)
    assert await crawls.create(crawl)
    assert not await world.container().crawls.create(replace(crawl, seeds=long_list("b")))
    assert await crawls.edit(replace(crawl, pages_max=7), crawl)
    paused = replace(crawl, pages_max=7, edits=1, state=State.PAUSED)
    assert await crawls.move(paused, [State.RUNNING])
    for container in (world.container(), world.container()):
        assert await container.crawls.get(crawl.id) == paused
        assert await container.crawls.list() == (paused,)


async def test_unknown_crawl_is_none(world: World) -> None:
    crawls = world.container().crawls
    assert await crawls.get("nobody-1") is None
    assert await crawls.list() == ()
    assert (await crawls.counters(samples.crawl(shards=2))).shards == (
        CounterShard(),
        CounterShard(),
    )


async def test_second_crawl_with_same_id_is_not_created(world: World) -> None:
    crawls = world.container().crawls
    assert await crawls.create(samples.crawl())
    assert not await crawls.create(samples.crawl(pages_max=1))
    assert not await world.container().crawls.create(samples.crawl())
    assert await crawls.get("shop-1") == samples.crawl()


async def test_concurrent_creators_make_one_crawl(world: World) -> None:
    made = await asyncio.gather(
        *(world.container().crawls.create(samples.crawl()) for _ in range(5))
    )
    assert sorted(made) == [False] * 4 + [True]


async def test_crawls_are_listed_newest_first(world: World) -> None:
    container = world.container()
    crawls = [
        samples.crawl(name, started_at_ms=samples.NOW_MS + age)
        for name, age in (("b", 2), ("a", 3), ("c", 1))
    ]
    for crawl in crawls:
        await container.crawls.create(crawl)
        for pack in samples.pack_ids(2, crawl.id):
            await container.packs.commit(crawl, samples.ledger(pack), {"claimed": 1})
    assert [crawl.id for crawl in await container.crawls.list()] == ["a-1", "b-1", "c-1"]


@pytest.mark.parametrize(
    ("allowed", "moves"),
    [
        ([State.RUNNING], True),
        ([State.PAUSED, State.RUNNING], True),
        ([State.PAUSED], False),
        ([], False),
    ],
)
async def test_state_moves_only_from_allowed_states(
    world: World, allowed: list[State], *, moves: bool
) -> None:
    crawls, crawl = world.container().crawls, samples.crawl()
    await crawls.create(crawl)
    stopping = replace(crawl, state=State.STOPPING, stop=Stop.CANCELLED)
    if allowed:
        assert await crawls.move(stopping, allowed) is moves
    assert await crawls.get(crawl.id) == (stopping if moves else crawl)


async def test_move_writes_only_state_and_stop_reason(world: World) -> None:
    crawls, crawl = world.container().crawls, samples.crawl()
    await crawls.create(crawl)
    await crawls.move(
        replace(crawl, state=State.PAUSED, stop=Stop.DURATION, pages_max=1), [State.RUNNING]
    )
    paused = replace(crawl, state=State.PAUSED, stop=Stop.DURATION)
    assert await crawls.get(crawl.id) == paused
    await crawls.move(crawl, [State.PAUSED])
    assert await crawls.get(crawl.id) == crawl


async def test_move_records_pause_start_and_total(world: World) -> None:
    crawls, crawl = world.container().crawls, samples.crawl()
    await crawls.create(crawl)
    paused = with_state(crawl, State.PAUSED, None, crawl.started_at_ms + 5_000)
    await crawls.move(paused, [State.RUNNING])
    assert await crawls.get(crawl.id) == paused
    resumed = with_state(paused, State.RUNNING, None, crawl.started_at_ms + 65_000)
    await crawls.move(resumed, [State.PAUSED])
    assert await crawls.get(crawl.id) == resumed
    assert resumed.paused_ms == 60_000


async def test_move_of_absent_crawl_creates_nothing(world: World) -> None:
    crawls = world.container().crawls
    assert not await crawls.move(samples.crawl(), list(State))
    assert await crawls.get("shop-1") is None


async def test_concurrent_moves_let_one_win(world: World) -> None:
    crawl = samples.crawl()
    await world.container().crawls.create(crawl)
    paused = replace(crawl, state=State.PAUSED)
    moved = await asyncio.gather(
        *(world.container().crawls.move(paused, [State.RUNNING]) for _ in range(5))
    )
    assert sorted(moved) == [False] * 4 + [True]


async def test_seal_finishes_crawl_and_closes_every_shard(world: World) -> None:
    container, crawl = world.container(), samples.crawl(shards=4, seeds_planned=1)
    await container.crawls.create(crawl)
    (pack,) = samples.pack_ids(1)
    await container.packs.commit(crawl, samples.ledger(pack), {"seeds": 1})
    counters = await container.crawls.counters(crawl)
    done = replace(crawl, state=State.FINISHED, stop=Stop.FINISHED, finished_at_ms=samples.NOW_MS)
    assert await container.crawls.seal(crawl, counters, done)
    assert await container.crawls.get(crawl.id) == done
    sealed = await container.crawls.counters(crawl)
    assert sealed.total == counters.total
    assert [shard.closed for shard in sealed.shards] == [True] * 4
    assert not await world.container().crawls.seal(crawl, counters, done)


async def test_seal_adds_last_counts_once(world: World) -> None:
    container, crawl = world.container(), samples.crawl(shards=3)
    await container.crawls.create(crawl)
    for pack in samples.pack_ids(4):
        await container.packs.commit(crawl, samples.ledger(pack), {"claimed": 2, "skipped": 1})
    counters = await container.crawls.counters(crawl)
    done = replace(crawl, state=State.FINISHED)
    rest = {"skipped": 4, "skipped.cancelled": 4}
    assert await container.crawls.seal(crawl, counters, done, rest)
    assert not await container.crawls.seal(crawl, counters, done, rest)
    total = (await container.crawls.counters(crawl)).total
    assert samples.nonzero(total) == {"claimed": 8, "skipped": 8, "skipped.cancelled": 4}


@pytest.mark.parametrize("shards", [1, 3])
async def test_seal_fails_if_counters_changed(world: World, shards: int) -> None:
    container, crawl = world.container(), samples.crawl(shards=shards)
    await container.crawls.create(crawl)
    first, second = samples.pack_ids(2)
    await container.packs.commit(crawl, samples.ledger(first), {"claimed": 1, "fetched": 1})
    counters = await container.crawls.counters(crawl)
    await container.packs.commit(crawl, samples.ledger(second), {"claimed": 1})
    assert not await container.crawls.seal(crawl, counters, replace(crawl, state=State.FINISHED))
    assert await container.crawls.get(crawl.id) == crawl
    assert not any(shard.closed for shard in (await container.crawls.counters(crawl)).shards)


async def test_seal_fails_if_state_changed(world: World) -> None:
    crawls, crawl = world.container().crawls, samples.crawl()
    await crawls.create(crawl)
    counters = await crawls.counters(crawl)
    stopping = replace(crawl, state=State.STOPPING, stop=Stop.CANCELLED)
    await crawls.move(stopping, [State.RUNNING])
    assert not await crawls.seal(crawl, counters, replace(crawl, state=State.FINISHED))
    assert await crawls.get(crawl.id) == stopping
    assert await crawls.seal(stopping, counters, replace(stopping, state=State.FINISHED))


async def test_seal_and_commit_exclude_each_other(world: World) -> None:
    for attempt in range(4):
        crawl = samples.crawl(f"race{attempt}", shards=2)
        container = world.container()
        await container.crawls.create(crawl)
        counters = await container.crawls.counters(crawl)
        done = replace(crawl, state=State.FINISHED)
        sealed, *results = await asyncio.gather(
            world.container().crawls.seal(crawl, counters, done),
            *(
                world.container().packs.commit(crawl, samples.ledger(pack), {"fetched": 1})
                for pack in samples.pack_ids(4, crawl.id)
            ),
        )
        fetched = (await container.crawls.counters(crawl)).total.get("fetched", 0)
        assert fetched == results.count(Committed())
        assert results.count(Closed()) == 4 - fetched
        assert sealed is (fetched == 0)


async def test_concurrent_seals_let_one_win(world: World) -> None:
    container, crawl = world.container(), samples.crawl(shards=3)
    await container.crawls.create(crawl)
    counters = await container.crawls.counters(crawl)
    done = replace(crawl, state=State.FINISHED)
    sealed = await asyncio.gather(
        *(world.container().crawls.seal(crawl, counters, done) for _ in range(4))
    )
    assert sorted(sealed) == [False] * 3 + [True]


async def test_announcement_is_recorded(world: World) -> None:
    crawls, crawl = world.container().crawls, samples.crawl()
    await crawls.create(crawl)
    await crawls.announced(crawl.id)
    await crawls.announced(crawl.id)
    assert await crawls.get(crawl.id) == replace(crawl, announced=True)


async def test_shared_counts_are_added_up(world: World) -> None:
    crawl = samples.crawl()
    one, other = world.container().crawls, world.container().crawls
    await one.create(crawl)
    assert await one.learned(crawl.id) == {}
    assert await one.learn(crawl, {}) == {}
    assert await one.learn(crawl, {"a0123456789ab": 3, "f0123456789ab": 1}) == {
        "a0123456789ab": 3,
        "f0123456789ab": 1,
    }
    found = {"a0123456789ab": 5, "f0123456789ab": 1, "abb": 4}
    assert await other.learn(crawl, {"a0123456789ab": 2, "abb": 4}) == found
    assert await one.learned(crawl.id) == found
    assert await one.learned("other-1") == {}
    many = {f"a{place:012x}": 1 + place for place in range(1_200)}
    assert await other.learn(crawl, many) == found | many
    assert [known.id for known in await one.list()] == [crawl.id]
