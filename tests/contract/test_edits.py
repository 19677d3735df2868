"""Contract of edits to running crawls."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from orbweaver.frontier.claims import Committed, OverBudget
from orbweaver.model.crawl import State, Stop
from tests.contract import samples

if TYPE_CHECKING:
    from tests.contract.worlds import World


@pytest.mark.parametrize(
    "fields",
    [
        {"pages_max": 5, "quotas": (5,), "delay_ms": 0},
        {"include": ("/a",), "exclude": ()},
        {"depth_max": 0, "duration_max_s": 60, "concurrency": 3},
    ],
)
async def test_edit_writes_changes_and_raises_edit_count(
    world: World, fields: dict[str, Any]
) -> None:
    crawls, crawl = world.container().crawls, samples.crawl(exclude=("/x",))
    await crawls.create(crawl)
    wanted = replace(crawl, **fields)
    assert await crawls.edit(wanted, crawl)
    edited = replace(wanted, edits=1)
    assert await world.container().crawls.get(crawl.id) == edited
    assert await crawls.edit(replace(edited, delay_ms=77), edited)
    assert await crawls.get(crawl.id) == replace(edited, delay_ms=77, edits=2)


async def test_edit_keeps_concurrent_pause(world: World) -> None:
    crawls, crawl = world.container().crawls, samples.crawl()
    await crawls.create(crawl)
    paused = replace(crawl, state=State.PAUSED, stop=Stop.DURATION)
    await crawls.move(paused, [State.RUNNING])
    assert await crawls.edit(replace(crawl, delay_ms=5), crawl)
    assert await crawls.get(crawl.id) == replace(paused, delay_ms=5, edits=1)


@pytest.mark.parametrize("state", [State.STOPPING, State.FINISHED])
async def test_edit_of_ended_crawl_is_refused(world: World, state: State) -> None:
    crawls, crawl = world.container().crawls, samples.crawl()
    wanted = replace(crawl, delay_ms=5)
    assert not await crawls.edit(wanted, crawl)
    await crawls.create(crawl)
    await crawls.move(replace(crawl, state=state), [State.RUNNING])
    assert not await crawls.edit(wanted, crawl)
    assert await crawls.get(crawl.id) == replace(crawl, state=state)


async def test_concurrent_edits_let_one_win(world: World) -> None:
    crawl = samples.crawl()
    await world.container().crawls.create(crawl)
    edited = await asyncio.gather(
        *(
            world.container().crawls.edit(replace(crawl, delay_ms=number), crawl)
            for number in range(5)
        )
    )
    assert sorted(edited) == [False] * 4 + [True]
    standing = await world.container().crawls.get(crawl.id)
    assert standing == replace(crawl, delay_ms=edited.index(True), edits=1)


async def test_seal_keeps_edit(world: World) -> None:
    crawls, crawl = world.container().crawls, samples.crawl()
    await crawls.create(crawl)
    counters = await crawls.counters(crawl)
    assert await crawls.edit(replace(crawl, delay_ms=5), crawl)
    done = replace(crawl, state=State.FINISHED, stop=Stop.FINISHED, finished_at_ms=samples.NOW_MS)
    assert await crawls.seal(crawl, counters, done)
    assert await crawls.get(crawl.id) == replace(done, delay_ms=5, edits=1)


@pytest.mark.parametrize("quotas", [(), (5,), (3,), (2,)], ids=str)
async def test_commit_uses_edited_quota(world: World, quotas: tuple[int, ...]) -> None:
    container = world.container()
    crawl = samples.crawl(pages_max=5)
    await container.crawls.create(crawl)
    first, second, third = samples.pack_ids(3)
    await container.packs.commit(crawl, samples.ledger(first), {"claimed": 2})
    edited = replace(crawl, quotas=quotas)
    left = edited.shard_quota(0) - 2
    over = await container.packs.commit(edited, samples.ledger(second), {"claimed": left + 1})
    assert over == OverBudget(left=left)
    lower = replace(crawl, quotas=(1,))
    over = await container.packs.commit(lower, samples.ledger(second), {"claimed": 1})
    assert over == OverBudget(left=0)
    done = await container.packs.commit(lower, samples.ledger(third), {"claimed": 0, "fetched": 1})
    assert done == Committed()


@pytest.mark.parametrize("which", ["shop-1#count#0", "shop-1#samples"])
async def test_other_items_of_crawl_table_are_no_crawls(world: World, which: str) -> None:
    container, crawl = world.container(), samples.crawl()
    await container.crawls.create(crawl)
    (pack,) = samples.pack_ids(1)
    await container.packs.commit(crawl, samples.ledger(pack), {"claimed": 1})
    assert await container.crawls.get(which) is None
