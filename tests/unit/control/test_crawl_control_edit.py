"""Editing crawls while they run, over the memory adapters."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orbweaver.control.crawl_control import Conflict, Control, UnknownCrawl
from orbweaver.control.definition import DefinitionError
from orbweaver.model.crawl import Crawl, State, Stop
from orbweaver.worker.crawl_cache import CRAWL_FRESH_MS
from tests.memory import Moment
from tests.memory.world import ShardItem
from tests.unit.control_stage import PLAN, Stage
from tests.unit.stage import SITE, control_of, html
from tests.unit.stage import Stage as Site


async def test_edit_of_running_or_paused_crawl_is_stored(stage: Stage) -> None:
    crawl = await stage.control.start(replace(PLAN, pages_max=10))
    changes = {"limits": {"pages": 20}, "politeness": {"delay": "3s"}}
    edited = await stage.control.edit(crawl.name, changes)
    assert edited == replace(crawl, pages_max=20, quotas=(20,), delay_ms=3_000, edits=1)
    assert stage.world.crawls[crawl.id] == edited
    await stage.control.pause(crawl.id)
    edited = await stage.control.edit(crawl.id, {"scope": {"exclude": ["/x"]}})
    assert (edited.state, edited.exclude, edited.edits) == (State.PAUSED, ("/x",), 2)


async def test_edit_without_change_writes_nothing(stage: Stage, crawl: Crawl) -> None:
    assert await stage.control.edit(crawl.id, {"limits": {"depth": crawl.depth_max}}) == crawl
    assert stage.world.crawls[crawl.id] == crawl


async def test_edit_with_one_invalid_value_changes_nothing(stage: Stage, crawl: Crawl) -> None:
    with pytest.raises(DefinitionError, match="name: it cannot change"):
        await stage.control.edit(crawl.id, {"limits": {"depth": 1}, "name": "other"})
    assert stage.world.crawls[crawl.id] == crawl


@pytest.mark.parametrize(
    ("state", "words"),
    [(State.STOPPING, "it ends within"), (State.FINISHED, "finished: start it again")],
)
async def test_edit_of_draining_or_ended_crawl_is_refused(state: State, words: str) -> None:
    stage = Stage()
    crawl = await stage.control.start(PLAN)
    stage.world.crawls[crawl.id] = ended = replace(crawl, state=state)
    with pytest.raises(Conflict, match=words):
        await stage.control.edit(crawl.id, {"limits": {"depth": 1}})
    assert stage.world.crawls[crawl.id] == ended
    with pytest.raises(UnknownCrawl):
        await stage.control.edit("nobody", {"limits": {"depth": 1}})


async def test_edit_keeps_concurrent_pause(stage: Stage, crawl: Crawl) -> None:
    others = [
        replace(crawl, state=State.PAUSED),
        replace(crawl, state=State.PAUSED, depth_max=7, edits=1),
    ]

    async def interfere(effect: str, moment: Moment) -> None:
        if (effect, moment) == ("crawls.edit", Moment.BEFORE) and others:
            stage.world.crawls[crawl.id] = others.pop()

    stage.gate = interfere
    edited = await stage.control.edit(crawl.id, {"politeness": {"delay": 0}})
    # Both concurrent writes have happened.
    assert not others
    assert edited.delay_ms == 0
    assert stage.world.crawls[crawl.id].delay_ms == 0
    assert stage.world.crawls[crawl.id].state is State.PAUSED


async def test_edit_of_crawl_ending_meanwhile_is_refused(stage: Stage, crawl: Crawl) -> None:

    async def end(effect: str, moment: Moment) -> None:
        if (effect, moment) == ("crawls.edit", Moment.BEFORE):
            stage.world.crawls[crawl.id] = replace(crawl, state=State.FINISHED)

    stage.gate = end
    with pytest.raises(Conflict, match="is finished"):
        await stage.control.edit(crawl.id, {"limits": {"depth": 1}})


async def test_edit_always_losing_race_gives_up(stage: Stage, crawl: Crawl) -> None:
    number = 0

    async def edit(effect: str, moment: Moment) -> None:
        nonlocal number
        if (effect, moment) == ("crawls.edit", Moment.BEFORE):
            number += 1
            stage.world.crawls[crawl.id] = replace(crawl, edits=number)

    stage.gate = edit
    with pytest.raises(Conflict, match="edited by others"):
        await stage.control.edit(crawl.id, {"limits": {"depth": 1}})


async def test_budget_edit_shares_unclaimed_rest_among_shards(stage: Stage, crawl: Crawl) -> None:
    stage.world.shards[crawl.id, 3] = ShardItem(counts={"claimed": 50})
    edited = await stage.control.edit(crawl.id, {"limits": {"pages": 60}})
    assert edited.shard_quota(3) == 51
    assert sum(map(edited.shard_quota, range(edited.shards))) == 60


async def test_start_repeated_after_edit_finds_same_crawl(stage: Stage) -> None:
    plan = replace(PLAN, id="run-1")
    crawl = await stage.control.start(plan)
    edited = await stage.control.edit(crawl.id, {"politeness": {"delay": 0}})
    assert await stage.control.start(plan) == edited
    with pytest.raises(Conflict, match="other seeds or options"):
        await stage.control.start(replace(plan, delay_ms=0))


# --- effect on workers --------------------------------------------------------------------------

SITE_PLAN = replace(
    PLAN, id="site-1", name="site", delay_ms=0, obey_robots=False, seeds=(f"{SITE}/",)
)


async def crawling(pages_max: int | None) -> tuple[Site, Control, Crawl]:
    """Run a crawl until it has read its first page."""
    site = Site()
    site.web.put(f"{SITE}/", html("/a", "/b", "/c"))
    site.web.put(f"{SITE}/a", html("/b", "/d", "/e"))
    control = control_of(site)
    crawl = await control.start(replace(SITE_PLAN, pages_max=pages_max))
    for _ in range(2):  # the seeds and the first page
        for message in site.sent():
            assert await site.deliver(message) == []
    return site, control, crawl


async def test_raised_budget_applies_to_links_found_later() -> None:
    site, control, crawl = await crawling(pages_max=2)
    assert site.counts(crawl)["late_links"] == 2
    await control.edit(crawl.id, {"limits": {"pages": 4}})
    site.clock.at_ms += CRAWL_FRESH_MS
    await site.drain()
    assert site.counts(crawl)["claimed"] == 4
    assert {url.removeprefix(SITE) for url in site.web.urls} == {"/", "/a", "/b", "/c"}
    ended = site.world.crawls[crawl.id]
    assert (ended.state, ended.stop) == (State.FINISHED, Stop.MAX_PAGES)


# The container tries one of the three links, because it has no result of similar URLs.
@pytest.mark.parametrize(("pages_max", "claimed"), [(20, 2), (None, 4)])
async def test_lowered_budget_admits_no_new_links(pages_max: int | None, claimed: int) -> None:
    site, control, crawl = await crawling(pages_max=pages_max)
    assert site.counts(crawl)["claimed"] == claimed
    await control.edit(crawl.id, {"limits": {"pages": claimed - 1}})
    site.clock.at_ms += CRAWL_FRESH_MS
    await site.drain()
    assert site.counts(crawl)["claimed"] == claimed
    assert site.world.crawls[crawl.id].stop is Stop.MAX_PAGES
