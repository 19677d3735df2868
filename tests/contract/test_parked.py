"""Contract of parked packs (batches of URLs of a paused crawl): resume queues them again."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from orbweaver.model.crawl import State
from tests.contract import samples

if TYPE_CHECKING:
    from tests.contract.worlds import World

ONE, TWO, THREE = samples.pack_ids(3)


async def test_paused_crawls_packs_are_parked_until_sent(world: World) -> None:
    container, crawl = world.container(), samples.crawl(state=State.PAUSED)
    await container.crawls.create(crawl)
    for pack in (ONE, TWO, ONE):
        assert await container.packs.park(crawl.id, f"body of {pack} \U0001f578", pack)
    parked = {pack: f"body of {pack} \U0001f578" for pack in (ONE, TWO)}
    assert await container.packs.parked(crawl.id) == parked
    assert await container.packs.parked("news-1") == {}
    await container.packs.unpark(crawl.id, [ONE, THREE])
    await container.packs.unpark(crawl.id, [])
    assert list(await container.packs.parked(crawl.id)) == [TWO]


@pytest.mark.parametrize("state", [State.RUNNING, State.STOPPING, State.FINISHED])
async def test_only_paused_crawls_packs_are_parked(world: World, state: State) -> None:
    container, crawl = world.container(), samples.crawl(state=state)
    await container.crawls.create(crawl)
    assert not await container.packs.park(crawl.id, "body", ONE)
    assert await container.packs.parked(crawl.id) == {}


async def test_resume_leaves_no_parked_pack(world: World) -> None:
    container, crawl = world.container(), samples.crawl(state=State.PAUSED)
    await container.crawls.create(crawl)
    ids = samples.pack_ids(12)

    async def resume() -> set[str]:
        other = world.container()
        assert await other.crawls.move(replace(crawl, state=State.RUNNING), [State.PAUSED])
        return set(await other.packs.parked(crawl.id))

    *accepted, listed = await asyncio.gather(
        *(world.container().packs.park(crawl.id, "body", pack) for pack in ids), resume()
    )
    assert {pack for pack, taken in zip(ids, accepted, strict=True) if taken} == listed


async def test_unpark_exceeds_database_batch_size(world: World) -> None:
    container, crawl = world.container(), samples.crawl(state=State.PAUSED)
    await container.crawls.create(crawl)
    ids = samples.pack_ids(60)
    for pack in ids:
        await container.packs.park(crawl.id, "body", pack)
    await container.packs.unpark(crawl.id, ids[:55])
    assert sorted(await container.packs.parked(crawl.id)) == sorted(ids[55:])
