"""Crawls with URL rules, run by workers over the memory adapters."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from orbweaver.frontier.messages import Pack, decode, seeds_of
from orbweaver.model.crawl import Crawl, State
from orbweaver.model.page_record import DAY_MS
from orbweaver.model.settings import Settings
from orbweaver.model.url_rules import UrlRule
from tests.memory import Moment
from tests.unit.stage import CRAWL, NOW_MS, SITE, Stage, answer, html, kill_on, outcomes, survives

HOME = f"{SITE}/"
PLAN = replace(CRAWL, seeds=(HOME,), seeds_planned=1)
HOUR_MS = 3_600_000


def with_rules(*rules: UrlRule, **more: object) -> Crawl:
    return replace(PLAN, rules=rules, **more)  # type: ignore[arg-type]


async def seed(stage: Stage, crawl: Crawl) -> None:
    stage.begin(crawl)
    for message in seeds_of(
        crawl.id, crawl.id, crawl.references, at_ms=crawl.started_at_ms, planned=True
    ):
        assert await stage.deliver(message) == []


async def crawled(stage: Stage, crawl: Crawl) -> None:
    await seed(stage, crawl)
    await stage.drain()


def site() -> Stage:
    pages = {
        "/": ("/list/1", "/archive/1", "/news"),
        "/list/1": ("/list/2", "/a"),
        "/list/2": ("/b",),
        "/archive/1": ("/archive/2",),
        "/archive/2": ("/archive/3", "/c"),
        **dict.fromkeys(("/news", "/a", "/b", "/c", "/archive/3"), ()),
    }
    return Stage().serve({path: html(*links) for path, links in pages.items()})


def lanes(stage: Stage) -> list[tuple[bool, tuple[str, ...]]]:
    """Return queued packs: their express flag (fast queue) and their paths."""
    packs = [(mail.express, decode(mail.body)) for mail in stage.world.sent]
    return [
        (express, tuple(target.url.removeprefix(SITE) for target in pack.targets))
        for express, pack in packs
        if isinstance(pack, Pack)
    ]


# --- depth, follow, record ----------------------------------------------------------------------


async def test_rule_depth_replaces_depth_of_crawl() -> None:
    stage = site()
    rules = (UrlRule(match="/list/2", depth_max=9), UrlRule(match="/archive/", depth_max=0))
    await crawled(stage, with_rules(*rules, depth_max=1))
    assert set(outcomes(stage.world)) == {HOME, f"{SITE}/list/1", f"{SITE}/list/2", f"{SITE}/news"}
    assert stage.counts()["refused.depth"] == 3
    assert stage.world.crawls[PLAN.id].state is State.FINISHED


async def test_rule_without_follow_ignores_links() -> None:
    stage = site()
    stage.web.put(f"{SITE}/news", answer(301, location="/a"))
    await crawled(stage, with_rules(UrlRule(match="/list/|/news", follow=False)))
    found = outcomes(stage.world)
    assert found[f"{SITE}/list/1"] == "fetched.ok"
    assert found[f"{SITE}/a"] == "fetched.ok"
    assert f"{SITE}/list/2" not in found
    assert stage.counts()["refused.unfollowed"] == 2


async def test_rule_without_record_still_counts_outcomes() -> None:
    stage = site()
    stage.web.put(f"{SITE}/robots.txt", answer(200, b"User-agent: *\nDisallow: /news"))
    stage.web.put(f"{SITE}/list/2", answer(500))
    await crawled(stage, with_rules(UrlRule(match="/list/|/news", record=False), obey_robots=True))
    counts = stage.counts()
    assert not any("/list/" in url or "/news" in url for url in outcomes(stage.world))
    assert counts["claimed"] == 9
    assert (counts["skipped.robots"], counts["failed.http_server_error"]) == (1, 1)
    assert counts["fetched"] == len(outcomes(stage.world)) + 1
    assert stage.world.crawls[PLAN.id].state is State.FINISHED
    unrecorded = {
        one.url.removeprefix(SITE): f"{one.outcome}.{one.reason}"
        for journal in stage.world.journals.values()
        for one in journal.unrecorded
    }
    assert unrecorded == {
        "/list/1": "fetched.ok",
        "/list/2": "failed.http_server_error",
        "/news": "skipped.robots",
    }


# --- priority -----------------------------------------------------------------------------------


async def test_express_urls_have_own_packs_and_go_first() -> None:
    stage = site()
    await seed(stage, with_rules(UrlRule(match="/archive/", express=True)))
    assert lanes(stage) == [(False, ("/",))]
    await stage.deliver(stage.world.sent.pop().body)
    assert lanes(stage) == [(True, ("/archive/1",)), (False, ("/list/1", "/news"))]


async def test_express_flag_survives_retry_deferral_and_split() -> None:
    stage = Stage().serve({HOME: answer(500)})
    crawl = with_rules(UrlRule(match="/$", express=True), seeds=(HOME, f"{SITE}/x/"))
    await seed(stage, crawl)
    assert lanes(stage) == [(True, ("/", "/x/"))]
    body = stage.world.sent.pop().body
    assert await stage.deliver(body) == []
    assert lanes(stage) == [(True, ("/",))]
    retry = stage.world.sent.pop().body
    await stage.hosts.block(SITE, stage.clock.now_ms() + HOUR_MS, 1, stage.clock.now_ms())
    assert await stage.deliver(retry) == []
    assert lanes(stage) == [(True, ("/",))]
    stage.world.journals.clear()
    stage.world.ledgers.clear()
    stage.world.sent.clear()
    assert await stage.deliver(body, receives=2) == []
    assert lanes(stage) == [(True, ("/",)), (True, ("/x/",))]


async def test_rule_cannot_slow_express_crawl() -> None:
    stage = site()
    await seed(stage, with_rules(UrlRule(match="/archive/", express=False), express=True))
    await stage.deliver(stage.world.sent.pop().body)
    assert {express for express, _ in lanes(stage)} == {True}


async def test_changed_rules_do_not_change_journaled_pack() -> None:
    stage = site()
    rules = (
        UrlRule(match="/archive/", express=True, window_s=60),
        UrlRule(match="$", record=False),
    )
    crawl = with_rules(*rules)
    await seed(stage, crawl)
    body = stage.world.sent.pop().body
    for moment in (Moment.BEFORE, Moment.AFTER):
        stage.restart(kill_on("frontier.claim", moment))
        assert not await survives(stage.deliver(body))
        stage.world.crawls[crawl.id] = replace(crawl, rules=(UrlRule(match="/news", express=True),))
    stage.restart()
    assert await stage.deliver(body, receives=2) == []
    assert lanes(stage) == [(True, ("/archive/1",)), (False, ("/list/1", "/news"))]
    assert outcomes(stage.world) == {}
    await stage.drain()
    assert stage.counts()["fetched"] == 10
    assert stage.world.crawls[crawl.id].state is State.FINISHED


# --- delay --------------------------------------------------------------------------------------


async def test_urls_of_host_have_delay_of_their_rule() -> None:
    stage = Stage(settings=Settings.of(wait_s_max=20.0))
    paths = ("/slow/1", "/x", "/quick/1", "/slow/2", "/quick/2")
    urls = [SITE + path for path in paths]
    rules = (UrlRule(match="/slow/", delay_ms=4_000), UrlRule(match="/quick/", delay_ms=500))
    pack = stage.begin(with_rules(*rules, delay_ms=1_000), *urls)
    assert await stage.deliver(pack) == []
    order = [(url.removeprefix(SITE), at_ms) for url, at_ms in stage.web.asked]
    assert [path for path, _ in order] == ["/quick/1", "/quick/2", "/x", "/slow/1", "/slow/2"]
    gaps = [later - at for (_, at), (_, later) in itertools.pairwise(order)]
    assert gaps == [500, 500, 1_000, 4_000]


async def test_longer_crawl_delay_overrides_rule() -> None:
    stage = Stage().serve({"/robots.txt": answer(200, b"User-agent: *\nCrawl-delay: 3")})
    crawl = with_rules(UrlRule(match="/quick/", delay_ms=0), delay_ms=1_000, obey_robots=True)
    pack = stage.begin(crawl, f"{SITE}/quick/1", f"{SITE}/quick/2")
    assert await stage.deliver(pack) == []
    _, (_, first_ms), (_, second_ms) = stage.web.asked
    assert second_ms - first_ms == 3_000


# --- window -------------------------------------------------------------------------------------


async def again(stage: Stage, crawl: Crawl, after_ms: int) -> set[str]:
    stage.clock.at_ms = NOW_MS + after_ms
    stage.web.asked.clear()
    stage.restart()
    run = replace(crawl, id=f"again-{after_ms}", started_at_ms=stage.clock.at_ms)
    await crawled(stage, run)
    assert stage.world.crawls[run.id].state is State.FINISHED
    return {url.removeprefix(SITE) for url in stage.web.urls}


@pytest.mark.parametrize(
    ("after_ms", "asked"),
    [
        (30 * 60_000, set()),
        (2 * HOUR_MS, {"/"}),
        (8 * DAY_MS, {"/", "/list/1", "/list/2", "/news", "/a", "/b"}),
        (31 * DAY_MS, None),
    ],
)
async def test_rule_window_sets_interval_of_urls(after_ms: int, asked: set[str] | None) -> None:
    stage = site()
    rules = (UrlRule(match="/$", window_s=3_600), UrlRule(match="/archive/", window_s=30 * 86_400))
    crawl = with_rules(*rules)
    await crawled(stage, crawl)
    everything = {url.removeprefix(SITE) for url in stage.web.urls}
    assert await again(stage, crawl, after_ms) == (everything if asked is None else asked)


async def test_run_requests_url_once_with_zero_window() -> None:
    stage = site()
    stage.web.put(f"{SITE}/news", html("/", "/list/1", "/news"))
    await crawled(stage, with_rules(UrlRule(match="/", window_s=0)))
    assert len(stage.web.urls) == len(set(stage.web.urls)) == 10


async def test_continuous_crawl_obeys_window_of_minutes() -> None:
    stage = site()
    stage.web.put(f"{SITE}/news", html("/"))
    crawl = with_rules(UrlRule(match="/$", window_s=60), continuous=True, seeds_planned=0)
    await seed(stage, crawl)
    await stage.deliver(stage.world.sent.pop().body)
    (mail,) = stage.world.sent
    stage.world.sent.clear()
    stage.web.put(f"{SITE}/list/1", html("/list/1"))
    stage.web.put(f"{SITE}/archive/1", html("/archive/1"))
    stage.clock.at_ms += 5 * 60_000
    await stage.deliver(mail.body)
    assert lanes(stage) == [(False, ("/",))]
