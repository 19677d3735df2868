"""Starting and looking at crawls, over the memory adapters."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from orbweaver.control.crawl_control import Conflict, ControlError, UnknownCrawl
from orbweaver.control.crawl_spec import CrawlSpec, PlanError
from orbweaver.frontier.messages import SeedsMessage
from orbweaver.model.crawl import State, Stop, default_crawl, run_id
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import DAY_MS
from orbweaver.politeness.host_schedule import Host
from tests.memory import MemoryBacklog, MemoryFiles, MemoryFrontier, Moment
from tests.memory.world import ShardItem, open_gate
from tests.unit.control_stage import NOW_MS, PLAN, SEED, Killed, Stage, kill_at


async def test_start_creates_the_crawl_and_sends_its_seeds() -> None:
    """The definition stands before the seeds are sent, and says how many messages to await."""
    stage = Stage()
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


async def test_an_express_crawl_goes_by_the_express_queue() -> None:
    """Priority high sends the seeds past other crawls."""
    stage = Stage()
    await stage.control.start(replace(PLAN, express=True))
    assert [mail.express for mail in stage.world.sent] == [True]


async def test_a_plan_that_does_not_fit_leaves_nothing_behind() -> None:
    """Nothing is created or sent for a seed that is no URL."""
    stage = Stage()
    with pytest.raises(PlanError, match=r"'x' cannot be crawled"):
        await stage.control.start(CrawlSpec(seeds=(SEED, "x")))
    assert not stage.world.crawls
    assert not stage.world.sent


@pytest.mark.parametrize("moment", range(1, 7))
async def test_a_start_that_died_is_completed_by_starting_again(moment: int) -> None:
    """Wherever a start dies, the same start completes it with the same messages."""
    whole, stage = Stage(), Stage(gate=kill_at(moment))
    await whole.control.start(replace(PLAN, id="run-1"))
    with pytest.raises(Killed):
        await stage.control.start(replace(PLAN, id="run-1"))
    stage.gate = open_gate
    stage.clock.at_ms += 5_000
    crawl = await stage.control.start(replace(PLAN, id="run-1"))
    bodies = {mail.body for mail in stage.world.sent}
    if moment > 3:  # it was created before it died, so it stands as it was
        assert crawl.started_at_ms == NOW_MS
        assert bodies == {mail.body for mail in whole.world.sent}
    assert len(bodies) == 1
    assert {message.id for message in stage.sent()} == {whole.sent()[0].id}


async def test_starting_again_what_has_begun_sends_nothing() -> None:
    """Once the books say that the seeds were taken in, a repeated start is only an answer."""
    stage = Stage()
    crawl = await stage.control.start(replace(PLAN, id="run-1"))
    stage.count(crawl, seeds=1)
    assert await stage.control.start(replace(PLAN, id="run-1")) == crawl
    stage.world.crawls[crawl.id] = done = replace(crawl, state=State.FINISHED)
    assert await stage.control.start(replace(PLAN, id="run-1")) == done
    assert len(stage.world.sent) == 1


@pytest.mark.parametrize("other", [{"seeds": (f"{SEED}x",)}, {"delay_ms": 5}, {"name": "other"}])
async def test_an_id_is_not_given_twice(other: dict[str, Any]) -> None:
    """An id that belongs to a crawl with other seeds or options is refused."""
    stage = Stage()
    await stage.control.start(replace(PLAN, id="run-1"))
    with pytest.raises(Conflict, match="'run-1' belongs to a crawl with other seeds or options"):
        await stage.control.start(replace(PLAN, id="run-1", **other))
    assert len(stage.world.sent) == 1


async def test_a_crawl_of_the_same_second_has_an_id_of_its_own() -> None:
    """A short crawl may have ended by then, or its name may be another's; twice asked is one."""
    stage = Stage()
    first = await stage.control.start(PLAN)
    assert await stage.control.start(PLAN) == first
    stage.world.crawls[first.id] = replace(first, state=State.FINISHED)
    again = await stage.control.start(PLAN)
    slower = await stage.control.start(replace(PLAN, delay_ms=5))
    ids = [first.id, again.id, slower.id]
    assert [run_id(first.name, NOW_MS + later_ms) for later_ms in (0, 1000, 2000)] == ids
    assert await stage.control.start(PLAN) == again


async def test_two_starts_of_one_key_at_once_are_one_crawl() -> None:
    """Whoever comes second finds the first one's crawl, at whichever effect they meet."""
    stage = Stage()

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


async def test_a_key_stands_for_one_plan() -> None:
    """Under any name, and as long as the crawl is kept; another key is another crawl."""
    stage = Stage()
    crawl = await stage.control.start(PLAN, "order 1")
    stage.clock.at_ms += DAY_MS
    stage.world.crawls[crawl.id] = done = replace(crawl, state=State.FINISHED)
    assert await stage.control.start(PLAN, "order 1") == done
    for other in (replace(PLAN, name="other"), replace(PLAN, delay_ms=5)):
        with pytest.raises(Conflict, match="belongs to a crawl with other seeds or options"):
            await stage.control.start(other, "order 1")
    assert (await stage.control.start(PLAN, "order 2")).id != crawl.id


async def test_a_create_without_a_trace_is_a_conflict() -> None:
    """A crawl that is taken and yet cannot be read is not started."""
    stage = Stage()

    async def forget(effect: str, moment: Moment) -> None:
        if (effect, moment) == ("crawls.create", Moment.AFTER):
            stage.world.crawls.clear()

    await stage.control.start(PLAN)
    stage.gate = forget
    with pytest.raises(Conflict):
        await stage.control.start(PLAN)


async def test_a_crawl_is_found_by_id_name_or_age() -> None:
    """An id means itself, a name its newest run, and nothing the newest run of all."""
    stage = Stage()
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


async def test_an_unknown_crawl_is_answered_with_the_nearest_one() -> None:
    """A mistyped id is not found, and the one that was meant is named."""
    stage = Stage()
    with pytest.raises(UnknownCrawl, match="no crawl yet"):
        await stage.control.find()
    with pytest.raises(UnknownCrawl, match=r"'x'$"):
        await stage.control.find("x")
    await stage.control.start(replace(PLAN, name="bookshop"))
    with pytest.raises(UnknownCrawl, match="did you mean bookshop"):
        await stage.control.find("bokshop")


async def test_status_is_the_crawl_and_its_books() -> None:
    """Counters are added up over all shards, and time stands still once the crawl has ended."""
    stage = Stage()
    crawl = await stage.control.start(PLAN)
    stage.world.shards[crawl.id, 3] = ShardItem(counts={"claimed": 2, "fetched": 1})
    stage.count(crawl, claimed=3, failed=1)
    stage.clock.at_ms += 5_000
    status = await stage.control.status(crawl.id)
    assert (status.counters.claimed, status.counters.done, status.elapsed_ms) == (5, 2, 5_000)
    stage.world.crawls[crawl.id] = replace(crawl, finished_at_ms=NOW_MS + 2_000)
    assert (await stage.control.status()).elapsed_ms == 2_000


async def test_pages_are_read_over_all_days_of_a_crawl() -> None:
    """Pages of other crawls are left out, and so are other outcomes and those beyond the limit."""
    stage = Stage()
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


async def test_a_page_is_found_on_its_newest_day() -> None:
    """The newest record of a URL wins, from whichever crawl; within a day all are shown."""
    stage = Stage()
    for name in ("a", "b", "c"):
        await stage.control.start(replace(PLAN, id=name))
    stage.clock.at_ms += 2 * DAY_MS
    stage.put("a", f"{SEED}x", NOW_MS)
    second = stage.put("b", f"{SEED}x", NOW_MS + DAY_MS)
    third = stage.put("c", f"{SEED}x", NOW_MS + DAY_MS + 5)
    for number in range(50):  # neighbours in all shards, before and behind
        stage.put("b", f"{SEED}{number}", NOW_MS + DAY_MS)
    assert await stage.control.page("HTTPS://EXAMPLE.COM/x#y") == (third, second)
    only = await stage.control.find("b")
    assert await stage.control.page(f"{SEED}x", only) == (second,)
    assert await stage.control.page(f"{SEED}unknown") == ()
    with pytest.raises(ValueError, match="not an absolute URL"):
        await stage.control.page("x")


async def test_a_page_is_found_under_each_crawls_own_url() -> None:
    """A crawl that strips other parameters has another URL for the same page."""
    stage = Stage()
    url = f"{SEED}x?utm_id=1&ref=2"
    await stage.control.start(replace(PLAN, id="usual"))
    await stage.control.start(replace(PLAN, id="all", keep_parameters=True))
    await stage.control.start(replace(PLAN, id="own", strip_parameters=("ref",)))
    usual = stage.put("usual", f"{SEED}x?ref=2", NOW_MS)
    whole = stage.put("all", url, NOW_MS)
    own = stage.put("own", f"{SEED}x", NOW_MS)
    assert set(await stage.control.page(url)) == {usual, whole, own}
    longer = f"{SEED}x?ref=2&utm_id={'1' * 2_083}"
    assert set(await stage.control.page(longer)) == {usual, own}


async def test_records_past_their_retention_are_not_looked_for() -> None:
    """A crawl without an end is asked only for the days whose records are kept."""
    stage = Stage()
    stage.world.crawls["default"] = default_crawl(NOW_MS - 400 * DAY_MS)
    days: list[str] = []

    async def note(effect: str, moment: Moment) -> None:
        if (effect, moment) == ("pages.read", Moment.BEFORE):
            days.append(effect)

    stage.gate = note
    assert await stage.control.page(SEED) == ()
    assert len(days) == 31


# --- hosts and what was left out ----------------------------------------------------------------


async def test_hosts_are_those_that_the_books_count_and_others_that_are_asked_for() -> None:
    """In the order of the references, then those that were named; each once."""
    stage = Stage()
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


async def test_hosts_of_a_crawl_of_an_older_version_are_named() -> None:
    """Where the books count none, the first ones are shown without counts."""
    stage = Stage()
    crawl = await stage.control.start(PLAN)
    stage.world.crawls[crawl.id] = replace(crawl, hosts_counted=())
    (view,) = await stage.control.hosts()
    assert (view.host, view.claimed) == ("https://example.com", None)


async def test_a_report_says_what_was_left_out() -> None:
    """Counts of the books, examples of records and of what workers kept."""
    stage = Stage()
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


async def test_a_report_says_where_the_requests_went() -> None:
    """By all records, or by so many as it may look at; then it says that there are more."""
    stage = Stage()
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
    exact = (await stage.control.report(**ports, records_max=30)).requests
    assert not exact.unread


async def test_a_run_knows_what_the_one_before_came_to() -> None:
    """Where both are alike and the first one's claims do not hold any more; as of its start."""
    stage = Stage()
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
    assert again.pages_before is None  # run-3 has not, either
    del stage.world.crawls["run-3"], stage.world.crawls["run-4"]
    compared = await stage.control.start(replace(plan, id="run-5"))
    assert compared.pages_before == 9
    assert await stage.control.start(replace(plan, id="run-5")) == compared
