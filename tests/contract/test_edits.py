"""Crawls that are edited while they run."""

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
async def test_an_edit_is_read_as_written(world: World, fields: dict[str, Any]) -> None:
    """What differs is written, and that it was edited once more."""
    crawls, crawl = world.container().crawls, samples.crawl(exclude=("/x",))
    await crawls.create(crawl)
    wanted = replace(crawl, **fields)
    assert await crawls.edit(wanted, crawl)
    edited = replace(wanted, edits=1)
    assert await world.container().crawls.get(crawl.id) == edited
    assert await crawls.edit(replace(edited, delay_ms=77), edited)
    assert await crawls.get(crawl.id) == replace(edited, delay_ms=77, edits=2)


async def test_an_edit_writes_what_differs_alone(world: World) -> None:
    """A pause that came in between stays, whatever the editor believed of the state."""
    crawls, crawl = world.container().crawls, samples.crawl()
    await crawls.create(crawl)
    paused = replace(crawl, state=State.PAUSED, stop=Stop.DURATION)
    await crawls.move(paused, [State.RUNNING])
    assert await crawls.edit(replace(crawl, delay_ms=5), crawl)
    assert await crawls.get(crawl.id) == replace(paused, delay_ms=5, edits=1)


@pytest.mark.parametrize("state", [State.STOPPING, State.FINISHED])
async def test_what_has_ended_is_not_edited(world: World, state: State) -> None:
    """Neither one that drains nor one that is sealed, nor one that is not there."""
    crawls, crawl = world.container().crawls, samples.crawl()
    wanted = replace(crawl, delay_ms=5)
    assert not await crawls.edit(wanted, crawl)
    await crawls.create(crawl)
    await crawls.move(replace(crawl, state=state), [State.RUNNING])
    assert not await crawls.edit(wanted, crawl)
    assert await crawls.get(crawl.id) == replace(crawl, state=state)


async def test_one_of_competing_edits_wins(world: World) -> None:
    """Of containers that edit what they read at one time, exactly one has; the others look anew."""
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


async def test_a_seal_leaves_an_edit_in_place(world: World) -> None:
    """A crawl that ends while it is edited ends as it was edited."""
    crawls, crawl = world.container().crawls, samples.crawl()
    await crawls.create(crawl)
    counters = await crawls.counters(crawl)
    assert await crawls.edit(replace(crawl, delay_ms=5), crawl)
    done = replace(crawl, state=State.FINISHED, stop=Stop.FINISHED, finished_at_ms=samples.NOW_MS)
    assert await crawls.seal(crawl, counters, done)
    assert await crawls.get(crawl.id) == replace(done, delay_ms=5, edits=1)


@pytest.mark.parametrize("quotas", [(), (5,), (3,), (2,)], ids=str)
async def test_a_commit_keeps_the_quota_that_it_is_given(
    world: World, quotas: tuple[int, ...]
) -> None:
    """Two are claimed of three: the edited quota says how many more, and none is no error."""
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
async def test_what_else_lies_beside_crawls_is_none(world: World, which: str) -> None:
    """An id that names counters or samples finds no crawl."""
    container, crawl = world.container(), samples.crawl()
    await container.crawls.create(crawl)
    (pack,) = samples.pack_ids(1)
    await container.packs.commit(crawl, samples.ledger(pack), {"claimed": 1})
    assert await container.crawls.get(which) is None
