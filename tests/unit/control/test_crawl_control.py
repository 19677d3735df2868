"""Starting and inspecting crawls, over the memory adapters."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from orbweaver.control.crawl_control import Conflict, ControlError, UnknownCrawl
from orbweaver.control.crawl_spec import CrawlSpec, PlanError
from orbweaver.frontier.messages import SeedsMessage
from orbweaver.model.crawl import Crawl, State, Stop, default_crawl, run_id
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import DAY_MS
from orbweaver.politeness.host_schedule import Host
from tests.memory import MemoryBacklog, MemoryFiles, MemoryFrontier, Moment
from tests.memory.world import ShardItem, open_gate
from tests.unit.control_stage import NOW_MS, PLAN, SEED, Killed, Stage, kill_at


async def test_start_creates_crawl_and_sends_its_seeds(stage: Stage) -> None:
    plan = CrawlSpec(seeds=tuple(f"{SEED}{place}" for place in range(150)))
    crawl = await stage.control.start(plan)
    assert stage.world.crawls == {crawl.id: crawl}
    first, second = stage.sent()
    assert isinstance(first, SeedsMessage)
    assert first.references + second.references == crawl.seeds
    assert crawl.seeds_planned == 2
    assert first.planned
    assert second.planned
    assert first.id != second.id
    assert [mail.express for mail in stage.world.sent] == [False, False]


async def test_start_of_high_priority_crawl_uses_express_queue(stage: Stage) -> None:
    await stage.control.start(replace(PLAN, express=True))
    assert [mail.express for mail in stage.world.sent] == [True]


async def test_start_of_invalid_plan_creates_and_sends_nothing(stage: Stage) -> None:
    with pytest.raises(PlanError, match=r"'x' cannot be crawled"):
        await stage.control.start(CrawlSpec(seeds=(SEED, "x")))
    assert not stage.world.crawls
    assert not stage.world.sent


@pytest.mark.parametrize("moment", range(1, 7))
async def test_start_repeated_after_crash_completes_it(moment: int) -> None:
    whole, stage = Stage(), Stage(gate=kill_at(moment))
    await whole.control.start(replace(PLAN, id="run-1"))
    with pytest.raises(Killed):
        await stage.control.start(replace(PLAN, id="run-1"))
    stage.gate = open_gate
    stage.clock.at_ms += 5_000
    crawl = await stage.control.start(replace(PLAN, id="run-1"))
    bodies = {mail.body for mail in stage.world.sent}
    if moment > 3:  # created before the crash, so it keeps its state
        assert crawl.started_at_ms == NOW_MS
        assert bodies == {mail.body for mail in whole.world.sent}
    assert len(bodies) == 1
    assert {message.id for message in stage.sent()} == {whole.sent()[0].id}


async def test_start_repeated_after_first_page_sends_nothing(stage: Stage) -> None:
    crawl = await stage.control.start(replace(PLAN, id="run-1"))
    stage.count(crawl, seeds=1)
    assert await stage.control.start(replace(PLAN, id="run-1")) == crawl
    stage.world.crawls[crawl.id] = done = replace(crawl, state=State.FINISHED)
    assert await stage.control.start(replace(PLAN, id="run-1")) == done
    assert len(stage.world.sent) == 1


@pytest.mark.parametrize("other", [{"seeds": (f"{SEED}x",)}, {"delay_ms": 5}, {"name": "other"}])
async def test_start_with_taken_id_and_other_plan_is_refused(other: dict[str, Any]) -> None:
    stage = Stage()
    await stage.control.start(replace(PLAN, id="run-1"))
    with pytest.raises(Conflict, match="'run-1' belongs to a crawl with other seeds or options"):
        await stage.control.start(replace(PLAN, id="run-1", **other))
    assert len(stage.world.sent) == 1


async def test_start_within_same_second_gets_another_id(stage: Stage) -> None:
    """The first crawl may have ended by then, or the options may differ."""
    first = await stage.control.start(PLAN)
    assert await stage.control.start(PLAN) == first
    stage.world.crawls[first.id] = replace(first, state=State.FINISHED)
    again = await stage.control.start(PLAN)
    slower = await stage.control.start(replace(PLAN, delay_ms=5))
    ids = [first.id, again.id, slower.id]
    assert [run_id(first.name, NOW_MS + later_ms) for later_ms in (0, 1000, 2000)] == ids
    assert await stage.control.start(PLAN) == again


async def test_start_twice_at_once_with_one_key_creates_one_crawl(stage: Stage) -> None:

    async def hand_over(_effect: str, _moment: Moment) -> None:
        await asyncio.sleep(0)

    stage.gate = hand_over
    one, other = await asyncio.gather(
        *(stage.control.begin(replace(PLAN, name="shop"), "order 1") for _ in range(2))
    )
    assert one[0] == other[0]
    assert sorted([one[1], other[1]]) == [False, True]
    assert list(stage.world.crawls) == [one[0].id]
    assert len({message.id for message in stage.sent()}) == 1


async def test_start_with_used_key_and_other_plan_is_refused(stage: Stage) -> None:
    crawl = await stage.control.start(PLAN, "order 1")
    stage.clock.at_ms += DAY_MS
    stage.world.crawls[crawl.id] = done = replace(crawl, state=State.FINISHED)
    assert await stage.control.start(PLAN, "order 1") == done
    for other in (replace(PLAN, name="other"), replace(PLAN, delay_ms=5)):
        with pytest.raises(Conflict, match="belongs to a crawl with other seeds or options"):
            await stage.control.start(other, "order 1")
    assert (await stage.control.start(PLAN, "order 2")).id != crawl.id


async def test_start_with_unreadable_existing_crawl_is_conflict(stage: Stage) -> None:

    async def forget(effect: str, moment: Moment) -> None:
        if (effect, moment) == ("crawls.create", Moment.AFTER):
            stage.world.crawls.clear()

    await stage.control.start(PLAN)
    stage.gate = forget
    with pytest.raises(Conflict):
        await stage.control.start(PLAN)


async def test_find_by_id_name_or_without_both_returns_newest(stage: Stage) -> None:
    ids = []
    for name in ("shop", "news", "shop"):
        stage.clock.at_ms += 60_000
        ids.append((await stage.control.start(replace(PLAN, name=name))).id)
    control = stage.control
    assert (await control.find(ids[0])).id == ids[0]
    assert (await control.find("shop")).id == ids[2]
    assert (await control.find("news")).id == ids[1]
    assert (await control.find()).id == ids[2]
    assert [crawl.id for crawl in await control.crawls()] == ids[::-1]


async def test_find_of_unknown_crawl_suggests_nearest_name(stage: Stage) -> None:
    with pytest.raises(UnknownCrawl, match="no crawl yet"):
        await stage.control.find()
    with pytest.raises(UnknownCrawl, match=r"'x'$"):
        await stage.control.find("x")
    await stage.control.start(replace(PLAN, name="bookshop"))
    with pytest.raises(UnknownCrawl, match="did you mean bookshop"):
        await stage.control.find("bokshop")


async def test_status_sums_counters_and_stops_clock_at_end(stage: Stage, crawl: Crawl) -> None:
    stage.world.shards[crawl.id, 3] = ShardItem(counts={"claimed": 2, "fetched": 1})
    stage.count(crawl, claimed=3, failed=1)
    stage.clock.at_ms += 5_000
    status = await stage.control.status(crawl.id)
    assert (status.counters.claimed, status.counters.done, status.elapsed_ms) == (5, 2, 5_000)
    stage.world.crawls[crawl.id] = replace(crawl, finished_at_ms=NOW_MS + 2_000)
    assert (await stage.control.status()).elapsed_ms == 2_000


async def test_pages_of_crawl_are_listed_over_all_days(stage: Stage) -> None:
    crawl = await stage.control.start(replace(PLAN, id="a"))
    mine = [stage.put("a", f"{SEED}{n}", NOW_MS + n * DAY_MS // 4) for n in range(12)]
    broken = {"outcome": Outcome.FAILED, "reason": Reason.DNS}
    mine.append(stage.put("a", f"{SEED}broken", NOW_MS, **broken))
    stage.put("ab", SEED, NOW_MS)
    stage.clock.at_ms += 4 * DAY_MS
    control = stage.control
    assert {record.url async for record in control.pages(crawl)} == {one.url for one in mine}
    assert [one async for one in control.pages(crawl, outcome=Outcome.FAILED)] == [mine[-1]]
    assert len([one async for one in control.pages(crawl, limit=5)]) == 5
    assert len([one async for one in control.pages(crawl, limit=0)]) == 0


async def test_page_lookup_returns_newest_day(stage: Stage) -> None:
    for name in ("a", "b", "c"):
        await stage.control.start(replace(PLAN, id=name))
    stage.clock.at_ms += 2 * DAY_MS
    stage.put("a", f"{SEED}x", NOW_MS)
    second = stage.put("b", f"{SEED}x", NOW_MS + DAY_MS)
    third = stage.put("c", f"{SEED}x", NOW_MS + DAY_MS + 5)
    for number in range(50):  # neighbours in all shards, before and after
        stage.put("b", f"{SEED}{number}", NOW_MS + DAY_MS)
    assert await stage.control.page("HTTPS://EXAMPLE.COM/x#y") == (third, second)
    assert await stage.control.page(f"{SEED}x", await stage.control.find("b")) == (second,)
    assert await stage.control.page(f"{SEED}unknown") == ()
    with pytest.raises(ValueError, match="not an absolute URL"):
        await stage.control.page("x")


async def test_page_lookup_uses_canonical_url_of_each_crawl(stage: Stage) -> None:
    """Crawls may strip different parameters, so one page may have several URLs."""
    url = f"{SEED}x?utm_id=1&ref=2"
    await stage.control.start(replace(PLAN, id="usual"))
    await stage.control.start(replace(PLAN, id="all", keep_parameters=True))
    await stage.control.start(replace(PLAN, id="own", strip_parameters=("ref",)))
    usual = stage.put("usual", f"{SEED}x?ref=2", NOW_MS)
    whole = stage.put("all", url, NOW_MS)
    own = stage.put("own", f"{SEED}x", NOW_MS)
    assert set(await stage.control.page(url)) == {usual, whole, own}
    assert set(await stage.control.page(f"{SEED}x?ref=2&utm_id={'1' * 2_083}")) == {usual, own}


async def test_page_lookup_skips_days_past_retention(stage: Stage) -> None:
    stage.world.crawls["default"] = default_crawl(NOW_MS - 400 * DAY_MS)
    days: list[str] = []

    async def note(effect: str, moment: Moment) -> None:
        if (effect, moment) == ("pages.read", Moment.BEFORE):
            days.append(effect)

    stage.gate = note
    assert await stage.control.page(SEED) == ()
    assert len(days) == 31


# --- hosts and omitted links --------------------------------------------------------------------


async def test_hosts_lists_counted_hosts_then_requested_ones(stage: Stage) -> None:
    other = "https://other.example"
    crawl = await stage.control.start(
        CrawlSpec(seeds=(SEED, f"{other}/a", f"{SEED}b"), name="shop")
    )
    stage.count(crawl, **{"host.0.claimed": 3, "host.0.done": 1, "host.1.claimed": 1})
    stage.world.hosts[other] = Host(name=other, blocked_until_ms=NOW_MS + 5_000)
    views = await stage.control.hosts("shop", ["example.com", "third.example"])
    assert [(view.host, view.queued) for view in views] == [
        ("https://example.com", 2),
        (other, 1),
        ("https://third.example", None),
    ]
    assert views[1].blocked_until_ms == NOW_MS + 5_000
    with pytest.raises(ControlError, match="'a b' is no host"):
        await stage.control.hosts("shop", ["a b"])


async def test_hosts_of_crawl_of_older_version_have_no_counts(stage: Stage, crawl: Crawl) -> None:
    """Older versions did not count hosts, so the first ones are listed without counts."""
    stage.world.crawls[crawl.id] = replace(crawl, hosts_counted=())
    (view,) = await stage.control.hosts()
    assert (view.host, view.claimed) == ("https://example.com", None)


async def test_report_of_omitted_links_has_counts_and_examples(stage: Stage) -> None:
    crawl = await stage.control.start(replace(PLAN, id="run-1"))
    counts = {"failed.dns": 2, "skipped.cancelled": 4, "refused.scope": 9}
    stage.count(crawl, failed=2, skipped=4, **counts)
    for number in range(2):
        dns = {"outcome": Outcome.FAILED, "reason": Reason.DNS}
        stage.put("run-1", f"{SEED}{number}", NOW_MS, **dns)
    stage.put("run-1", f"{SEED}ok", NOW_MS)
    stage.world.samples["run-1"] = {"scope": ("https://other.example/",)}
    report = await stage.control.report(
        "run-1",
        files=MemoryFiles(stage.world),
        backlog=MemoryBacklog(stage.world),
        frontier=MemoryFrontier(stage.world),
    )
    found = {line.reason: (line.kind, line.count, set(line.samples)) for line in report.skipped}
    assert found == {
        "scope": ("refused", 9, {"https://other.example/"}),
        "cancelled": ("skipped", 4, set()),
        "dns": ("failed", 2, {f"{SEED}0", f"{SEED}1"}),
    }
    assert report.crawl == crawl


async def test_report_of_requests_reads_bounded_number_of_records(stage: Stage) -> None:
    crawl = await stage.control.start(replace(PLAN, id="run-1"))
    stage.count(crawl, claimed=30, nanodollars=3_000_000)
    for number in range(30):
        stage.put("run-1", f"{SEED}page/{number}", NOW_MS, latency_ms=5)
    ports: dict[str, Any] = {
        "files": MemoryFiles(stage.world),
        "backlog": MemoryBacklog(stage.world),
        "frontier": MemoryFrontier(stage.world),
    }
    told = (await stage.control.report(**ports)).requests
    assert [(one.kind, one.requests) for one in told.kinds] == [(f"{SEED}page/0", 30)]
    assert (told.records, told.unread, round(told.usd, 9)) == (30, False, 0.003)
    some = (await stage.control.report(**ports, records_max=7)).requests
    assert (some.records, some.unread, round(some.usd, 9)) == (7, True, 0.0007)
    assert not (await stage.control.report(**ports, records_max=30)).requests.unread


async def test_run_is_compared_with_comparable_run_before_it(stage: Stage) -> None:
    plan = replace(PLAN, window_s=60)
    first = await stage.control.start(replace(plan, id="run-1"))
    assert first.pages_before is None
    stage.world.shards[first.id, 0] = ShardItem(counts={"fetched": 7, "unchanged": 2, "failed": 1})
    ended_at_ms = NOW_MS + 1_000
    stage.world.crawls[first.id] = replace(
        first, state=State.FINISHED, stop=Stop.FINISHED, finished_at_ms=ended_at_ms
    )
    stage.clock.at_ms = ended_at_ms + 60_000
    assert (await stage.control.start(replace(plan, id="run-2"))).pages_before is None
    stage.clock.at_ms += 1
    third = await stage.control.start(replace(plan, id="run-3"))
    assert third.pages_before is None  # run-2 has not ended
    del stage.world.crawls["run-2"]
    again = await stage.control.start(replace(plan, id="run-4"))
    assert again.pages_before is None  # run-3 has not ended either
    del stage.world.crawls["run-3"], stage.world.crawls["run-4"]
    compared = await stage.control.start(replace(plan, id="run-5"))
    assert compared.pages_before == 9
    assert await stage.control.start(replace(plan, id="run-5")) == compared
