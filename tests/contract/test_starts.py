"""Contract of starts and retries over the real adapters: concurrent requests take effect once."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from orbweaver.control.crawl_control import Control, ControlPorts
from orbweaver.control.crawl_spec import CrawlSpec
from orbweaver.frontier.messages import SeedsMessage, decode
from orbweaver.model.crawl import State
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import PageRecord
from orbweaver.model.settings import Settings
from tests.contract import samples

if TYPE_CHECKING:
    from tests.contract.worlds import World

SITE = "https://example.com"
PLAN = CrawlSpec(seeds=(f"{SITE}/",), name="shop")


def control_of(world: World) -> Control:
    ports = world.container()
    return Control(
        ControlPorts(
            queue=ports.queue,
            crawls=ports.crawls,
            packs=ports.packs,
            pages=ports.pages,
            hosts=ports.hosts,
            clock=world.clock,
            settings=Settings(),
        ),
    )


async def seeds_sent(world: World) -> list[SeedsMessage]:
    messages = [decode(mail.body) for mail in await world.receive("crawl")]
    return [message for message in messages if isinstance(message, SeedsMessage)]


async def test_concurrent_starts_with_one_key_are_one_crawl(world: World) -> None:
    world.clock.at_ms = samples.NOW_MS
    begun = await asyncio.gather(
        *(control_of(world).begin(PLAN, "order 1") for _ in range(4)),
    )
    assert sorted(created for _, created in begun) == [False] * 3 + [True]
    assert len({crawl.id for crawl, _ in begun}) == 1
    assert [crawl.id for crawl in await control_of(world).crawls()] == [begun[0][0].id]
    assert len({seeds.id for seeds in await seeds_sent(world)}) == 1


async def test_concurrent_retries_are_one_run(world: World) -> None:
    world.clock.at_ms = samples.NOW_MS
    ports = world.container()
    crawl = await control_of(world).start(PLAN)
    await world.receive("crawl")
    failure = PageRecord(
        crawl=crawl.id,
        url=f"{SITE}/gone",
        outcome=Outcome.FAILED,
        reason=Reason.DNS,
        fetched_at=samples.NOW_MS,
        depth=3,
    )
    await ports.pages.store([failure])
    await ports.crawls.move(replace(crawl, state=State.FINISHED), [State.RUNNING])
    world.clock.at_ms += 60_000
    runs = await asyncio.gather(*(control_of(world).retry("shop") for _ in range(3)))
    assert len({run.id for found in runs for run in found}) == 1
    ((run,), *_) = runs
    assert (run.seeds, run.seed_depths, run.retry_of) == ((failure.url,), (3,), crawl.id)
    assert await ports.crawls.get(run.id) == run
    assert {seeds.references for seeds in await seeds_sent(world)} == {run.seeds}
