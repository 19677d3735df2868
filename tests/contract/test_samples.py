"""Contract of samples: examples of rejected URLs, stored beside their crawl."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from orbweaver.model.crawl import default_crawl
from orbweaver.model.outcome import Refusal
from tests.contract import samples

if TYPE_CHECKING:
    from tests.contract.worlds import World

CRAWL = samples.crawl()


async def test_first_examples_of_reason_stay(world: World) -> None:
    crawls = world.container().crawls
    assert await crawls.samples(CRAWL.id) == {}
    await crawls.keep_samples(CRAWL, {Refusal.SCOPE: ("https://a.example/", "https://b.example/ü")})
    later = {"scope": ("https://c.example/",), "depth": ["https://d.example/"]}
    await world.container().crawls.keep_samples(CRAWL, later)
    assert await crawls.samples(CRAWL.id) == {
        "scope": ("https://a.example/", "https://b.example/ü"),
        "depth": ("https://d.example/",),
    }


async def test_examples_are_no_crawl(world: World) -> None:
    crawls = world.container().crawls
    await crawls.create(CRAWL)
    for crawl in (CRAWL, default_crawl(samples.NOW_MS), samples.crawl("other")):
        await crawls.keep_samples(crawl, {"scope": (crawl.id,)})
    assert [crawl.id for crawl in await crawls.list()] == [CRAWL.id]
    assert await crawls.get(f"{CRAWL.id}#samples") is None
    assert await crawls.samples("default") == {"scope": ("default",)}


async def test_concurrent_writes_keep_first_whole(world: World) -> None:
    await asyncio.gather(
        *(
            world.container().crawls.keep_samples(CRAWL, {"scope": (f"a{n}", f"b{n}")})
            for n in range(4)
        )
    )
    ((one, other),) = (await world.container().crawls.samples(CRAWL.id)).values()
    assert one[1:] == other[1:]
