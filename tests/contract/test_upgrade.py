"""A crawl survives an upgrade and a rollback without loss."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from orbweaver.frontier.envelope import Newer
from orbweaver.frontier.messages import Pack, decode, encode, seeds_of
from orbweaver.model.crawl import Crawl, State, Stop
from orbweaver.model.page_record import day_of
from tests.contract.releases import Deployment, successor
from tests.contract.samples import NOW_MS
from tests.contract.worlds import PAGES_SHARDS
from tests.memory import Mail
from tests.unit.stage import SITE, SmallWeb, html

if TYPE_CHECKING:
    from orbweaver.frontier.ports import Pages
    from orbweaver.model.page_record import PageRecord
    from tests.contract.worlds import AwsWorld

PAGES = 80
DAY_MS = 86_400_000
CRAWL = Crawl(
    id="site-1",
    name="site",
    started_at_ms=NOW_MS,
    seeds=tuple(f"{SITE}/{place}" for place in range(8)),
    seeds_planned=8,
    delay_ms=0,
    obey_robots=False,
)


async def begun(world: AwsWorld) -> Deployment:
    """Start a crawl at eight pages; each links to the next eight and the one after the next."""
    web = SmallWeb(world.clock)
    for place in range(PAGES):
        children = (place + len(CRAWL.seeds), place + 2 * len(CRAWL.seeds))
        links = [f"/{child}" for child in children if child < PAGES]
        web.put(f"{SITE}/{place}", html(*links, title=f"page {place}"))
    await world.container().crawls.create(CRAWL)
    deployed = Deployment(world=world, web=web, clock=world.clock)
    for seed in CRAWL.seeds:
        (seeds,) = seeds_of(seed, CRAWL.id, [seed], at_ms=NOW_MS, planned=True)
        deployed.state.sent.append(Mail(body=encode(seeds), group=CRAWL.id))
    return deployed


async def check_complete(deployed: Deployment) -> None:
    """Check that each page was requested and recorded once and one end announced."""
    container = deployed.world.container()
    ended = await container.crawls.get(CRAWL.id)
    assert ended is not None
    assert (ended.state, ended.stop) == (State.FINISHED, Stop.FINISHED)
    assert Counter(deployed.web.urls) == Counter(f"{SITE}/{place}" for place in range(PAGES))
    total = (await container.crawls.counters(ended)).total
    assert (total["claimed"], total["fetched"], total["seeds"]) == (PAGES, PAGES, 8)
    records = await records_of(container.pages, deployed.clock.now_ms())
    assert sorted(record.url for record in records) == sorted(deployed.web.answers)
    assert len(deployed.state.announced) == 1
    assert (deployed.state.sent, deployed.state.buried) == ([], [])


async def records_of(pages: Pages, until_ms: int) -> list[PageRecord]:
    days = {day_of(at_ms) for at_ms in range(NOW_MS, until_ms + DAY_MS, DAY_MS)}
    return [
        record
        for day in sorted(days)
        for shard in range(PAGES_SHARDS)
        async for _, record in pages.read_shard(day, shard, crawl=CRAWL.id)
    ]


@pytest.mark.parametrize("edited", [False, True], ids=["", "crawl edited by the successor"])
async def test_crawl_survives_upgrade_and_rollback(moto_world: AwsWorld, edited: bool) -> None:
    """Messages of the newer release stay for days; the crawl completes when it returns."""
    deployed = await begun(moto_world)
    today = deployed.worker()
    await deployed.work(today, batches=3)
    with successor():
        if edited:
            crawls = moto_world.container().crawls
            standing = await crawls.get(CRAWL.id)
            assert standing is not None
            assert await crawls.edit(replace(standing, depth_max=30), standing)
            deployed.clock.at_ms += 10_000
        # Some journals of both releases' messages have no ledger yet.
        await deployed.work(deployed.worker(commits=False), batches=1)
        await deployed.work(deployed.worker(), batches=1)
        await deployed.work(deployed.worker(commits=False), batches=2, size=4)
    assert deployed.refused
    left = sorted(mail.body for mail in deployed.state.sent)
    asked, counts = len(deployed.web.urls), Counter(deployed.metrics.totals)
    receives = Counter(deployed.receives)
    assert receives  # A failed commit was received once.
    # Rolled back for three days.
    deployed.clock.at_ms += 10_000
    back = deployed.worker()
    await deployed.work(back, batches=4 * 24 * 3)
    now_left = sorted(mail.body for mail in deployed.state.sent)
    assert deployed.clock.now_ms() - NOW_MS > 2 * DAY_MS
    waiting = [mail for mail in deployed.state.sent if mail.since_ms is not None]
    assert waiting == deployed.state.sent
    read = [decode(mail.body) for mail in waiting]
    assert any(isinstance(one, Newer) for one in read)
    packs = [one.id for one in read if isinstance(one, Pack)]
    assert deployed.refused.intersection(packs)
    recalled = await moto_world.container().packs.recall(packs)
    assert all(recalled[pack].newer for pack in deployed.refused.intersection(packs))
    assert {known.strikes for known in recalled.values()} == {0}
    assert set(now_left) <= set(left)
    if edited:
        assert (now_left, len(deployed.web.urls)) == (left, asked)
    assert deployed.state.buried == []
    assert deployed.receives == Counter()
    assert deployed.metrics.totals["MessagesFailed"] == counts["MessagesFailed"]
    with successor():
        await deployed.work(deployed.worker(), batches=1_000)
        await check_complete(deployed)


async def test_crawl_survives_upgrade(moto_world: AwsWorld) -> None:
    deployed = await begun(moto_world)
    await deployed.work(deployed.worker(), batches=3)
    await deployed.work(deployed.worker(commits=False), batches=1)
    assert deployed.refused
    with successor():
        await deployed.work(deployed.worker(), batches=1_000)
        await check_complete(deployed)
