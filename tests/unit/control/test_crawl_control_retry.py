"""Retrying the failed URLs of a crawl, over the memory adapters and a small site."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from orbweaver.control import rerun
from orbweaver.control.crawl_control import Control, ControlError, UnknownCrawl
from orbweaver.control.crawl_spec import CrawlSpec
from orbweaver.model.crawl import Crawl, State, Stop
from orbweaver.model.outcome import Outcome, Reason
from tests.memory import Moment
from tests.memory.world import open_gate
from tests.unit.control_stage import NOW_MS, PLAN, SEED, Killed, kill_at
from tests.unit.control_stage import Stage as Desk
from tests.unit.stage import SITE, Stage, answer, control_of, html, outcomes

HOME = f"{SITE}/"
SMALL = CrawlSpec(
    seeds=(HOME,), id="site-1", name="site", depth_max=2, delay_ms=0, obey_robots=False
)


async def crawled(plan: CrawlSpec = SMALL) -> tuple[Stage, Control]:
    stage = Stage()
    stage.web.put(HOME, html("/a", "/busy", "/gone"))
    stage.web.put(f"{SITE}/a", html("/busy", "/late"))
    stage.web.put(f"{SITE}/busy", answer(500))
    stage.web.put(f"{SITE}/late", answer(500))
    control = control_of(stage)
    await control.start(plan)
    await stage.drain()
    stage.clock.at_ms += 60_000
    return stage, control


def asked(stage: Stage, run: Crawl) -> dict[str, tuple[str, int, int]]:
    return {
        record.url.removeprefix(SITE): (str(record.reason), record.depth, record.attempt)
        for record in stage.world.pages.values()
        if record.crawl == run.id
    }


async def test_retry_requests_failed_urls_and_follows_new_links() -> None:
    stage, control = await crawled()
    assert outcomes(stage.world)[f"{SITE}/busy"] == "failed.http_server_error"
    stage.web.put(f"{SITE}/busy", html("/a", "/new"))
    stage.web.put(f"{SITE}/late", html("/too/deep"))
    stage.web.put(f"{SITE}/new", html("/too/deep"))
    (run,) = await control.retry("site")
    assert (run.id, run.name, run.retry_of) == ("site-1-retry1", "site", "site-1")
    await stage.drain()
    assert asked(stage, run) == {
        "/busy": ("ok", 1, 1),
        "/late": ("ok", 2, 1),
        "/gone": ("http_client_error", 1, 1),
        "/new": ("ok", 2, 1),
    }
    ended = stage.world.crawls[run.id]
    assert (ended.state, ended.stop) == (State.FINISHED, Stop.FINISHED)
    assert stage.counts(run)["refused.depth"] == 2
    assert [crawl.id for crawl, _ in stage.world.announced] == ["site-1", run.id]


async def test_retry_of_retry_requests_failures_again() -> None:
    stage, control = await crawled()
    (first,) = await control.retry("site")
    await stage.drain()
    stage.clock.at_ms += 60_000
    (second,) = await control.retry("site", reasons=["http_server_error"])
    assert (second.id, second.retry_of) == ("site-1-retry2", first.id)
    await stage.drain()
    assert asked(stage, second) == {
        "/busy": ("http_server_error", 1, 4),
        "/late": ("http_server_error", 2, 4),
    }
    (third,) = await control.retry("site-1", host="example.com", reasons=["http_client_error"])
    assert (third.id, third.retry_of) == ("site-1-retry3", "site-1")


async def test_retry_counts_seeds_against_page_limit() -> None:
    stage, control = await crawled(replace(SMALL, pages_max=5))
    stage.web.put(f"{SITE}/busy", html("/x", "/y", "/z"))
    (run,) = await control.retry("site")
    await stage.drain()
    assert stage.counts(run)["claimed"] == 5
    assert stage.world.crawls[run.id].stop is Stop.MAX_PAGES


async def test_retry_without_matching_failures_starts_no_run() -> None:
    _, control = await crawled()
    assert await control.retry("site", reasons=["tls"]) == ()
    assert await control.retry("site", host="other.example") == ()
    with pytest.raises(ControlError, match="did you mean dns"):
        await control.retry("site", reasons=["dsn"])
    with pytest.raises(UnknownCrawl):
        await control.retry("nobody")


# --- repeated and concurrent retries ------------------------------------------------------------


async def failed(desk: Desk, *paths: str) -> Crawl:
    crawl = await desk.control.start(replace(PLAN, id="run-1"))
    desk.world.sent.clear()
    for path in paths:
        outcome = {"outcome": Outcome.FAILED, "reason": Reason.DNS, "depth": 1}
        desk.put("run-1", f"{SEED}{path}", NOW_MS, **outcome)
    ended = replace(crawl, state=State.FINISHED, finished_at_ms=NOW_MS + 1_000)
    desk.world.crawls["run-1"] = ended
    return ended


def references(desk: Desk) -> list[str]:
    return sorted(url for seeds in desk.sent() for url in seeds.references)


async def test_retry_repeated_finds_its_unfinished_run() -> None:
    desk = Desk()
    await failed(desk, "a", "b")
    (run,) = await desk.control.retry("run-1")
    assert await desk.control.retry("run-1") == (run,)
    assert await desk.control.retry("run-1", reasons=["dns"]) == (run,)
    assert references(desk) == [
        f"{SEED}a",
        f"{SEED}a",
        f"{SEED}a",
        f"{SEED}b",
        f"{SEED}b",
        f"{SEED}b",
    ]
    assert len({seeds.id for seeds in desk.sent()}) == 1
    desk.world.sent.clear()
    desk.count(run, seeds=1)
    assert await desk.control.retry("run-1") == (run,)
    assert references(desk) == []
    desk.world.crawls[run.id] = replace(run, state=State.FINISHED)
    (another,) = await desk.control.retry("run-1")
    assert another.id == "run-1-retry2"


async def test_retry_skips_urls_of_another_running_retry() -> None:
    desk = Desk()
    await failed(desk, "a")
    desk.put("run-1", "https://other.example/b", NOW_MS, outcome=Outcome.FAILED, reason=Reason.TLS)
    (first,) = await desk.control.retry("run-1", host="other.example")
    assert first.seeds == ("https://other.example/b",)
    known, second = await desk.control.retry("run-1")
    assert known == first
    assert second.seeds == (f"{SEED}a",)


@pytest.mark.parametrize("moment", range(1, 60))
async def test_retry_repeated_after_crash_completes_one_run(moment: int) -> None:
    desk = Desk()
    await failed(desk, "a", "b")
    desk.gate = kill_at(moment)
    try:
        await desk.control.retry("run-1")
    except Killed:
        desk.gate = open_gate
        desk.clock.at_ms += 5_000
        await desk.control.retry("run-1")
    assert set(desk.world.crawls) == {"run-1", "run-1-retry1"}
    assert set(references(desk)) == {f"{SEED}a", f"{SEED}b"}
    assert len({seeds.id for seeds in desk.sent()}) == 1


async def test_retry_twice_at_once_starts_one_run() -> None:
    desk = Desk()
    await failed(desk, "a", "b")

    async def together(_effect: str, _moment: Moment) -> None:
        await asyncio.sleep(0)

    desk.gate = together
    one, other = await asyncio.gather(desk.control.retry("run-1"), desk.control.retry("run-1"))
    assert one == other
    assert set(desk.world.crawls) == {"run-1", "run-1-retry1"}


async def test_retry_skips_run_id_of_another_crawl() -> None:
    desk = Desk()
    await failed(desk, "a")
    mine = replace(PLAN, id="run-1-retry1")
    hidden = await desk.control.start(mine)
    del desk.world.crawls[hidden.id]

    async def late(effect: str, moment: Moment) -> None:
        if (effect, moment) == ("crawls.list", Moment.AFTER):
            desk.world.crawls[hidden.id] = hidden

    desk.gate = late
    (run,) = await desk.control.retry("run-1")
    assert run.id == "run-1-retry2"


async def test_retry_losing_its_number_takes_next() -> None:
    desk = Desk()
    ended = await failed(desk, "a", "b")
    theirs = replace(
        ended,
        id="run-1-retry1",
        retry_of="run-1",
        seeds=("https://x.example/",),
        state=State.RUNNING,
    )

    async def faster(effect: str, moment: Moment) -> None:
        if (effect, moment) == ("crawls.create", Moment.BEFORE):
            desk.world.crawls.setdefault(theirs.id, theirs)

    desk.gate = faster
    (run,) = await desk.control.retry("run-1")
    assert run.id == "run-1-retry2"


async def test_retry_of_many_failures_starts_several_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rerun, "SEEDS_MAX", 2)
    desk = Desk()
    await failed(desk, "a", "b", "c", "d", "e")
    runs = await desk.control.retry("run-1")
    assert [run.id for run in runs] == [f"run-1-retry{number}" for number in (1, 2, 3)]
    assert sorted(url for run in runs for url in run.seeds) == references(desk)
    assert [len(run.seeds) for run in runs] == [2, 2, 1]
    again: Sequence[Crawl] = await desk.control.retry("run-1")
    assert {run.id for run in again} == {run.id for run in runs}


async def test_retry_of_failed_sitemap_reads_it_as_sitemap() -> None:
    sitemap = f"{SITE}/sitemap.xml"
    stage, control = await crawled(replace(SMALL, sitemap_urls=(sitemap,)))
    listed = f"<urlset><url><loc>{SITE}/listed</loc></url></urlset>".encode()
    stage.web.put(sitemap, answer(200, listed, content_type="application/xml"))
    stage.web.put(f"{SITE}/listed", html())
    (run,) = await control.retry("site", reasons=["http_client_error"])
    assert run.sitemap_urls == (sitemap,)
    await stage.drain()
    assert asked(stage, run)["/listed"] == ("ok", 1, 1)
    assert asked(stage, run)["/sitemap.xml"][0] == "sitemap"
