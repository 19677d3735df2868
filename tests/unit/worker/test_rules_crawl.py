"""Crawls with rules, carried out by workers over the memory adapters."""

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
    """Make the crawl with rules."""
    return replace(PLAN, rules=rules, **more)  # type: ignore[arg-type]


async def seed(stage: Stage, crawl: Crawl) -> None:
    """Begin a crawl in this world, and take its seeds in."""
    stage.begin(crawl)
    for message in seeds_of(
        crawl.id, crawl.id, crawl.references, at_ms=crawl.started_at_ms, planned=True
    ):
        assert await stage.deliver(message) == []


def site(stage: Stage) -> None:
    """Put a small site there: a home page, two pages of a list, four of an archive."""
    stage.web.put(HOME, html("/list/1", "/archive/1", "/news"))
    stage.web.put(f"{SITE}/list/1", html("/list/2", "/a"))
    stage.web.put(f"{SITE}/list/2", html("/b"))
    stage.web.put(f"{SITE}/archive/1", html("/archive/2"))
    stage.web.put(f"{SITE}/archive/2", html("/archive/3", "/c"))
    for path in ("news", "a", "b", "c", "archive/3"):
        stage.web.put(f"{SITE}/{path}", html())


def lanes(stage: Stage) -> list[tuple[bool, tuple[str, ...]]]:
    """List the packs on the queue: whether each goes past others, and its paths."""
    packs = [(mail.express, decode(mail.body)) for mail in stage.world.sent]
    return [
        (express, tuple(target.url.removeprefix(SITE) for target in pack.targets))
        for express, pack in packs
        if isinstance(pack, Pack)
    ]


# --- depth, follow, record ----------------------------------------------------------------------


async def test_a_rule_lets_some_urls_in_deeper_and_others_less_deep() -> None:
    """Its own limit stands instead of the crawl's; what is too deep is counted as such."""
    stage = Stage()
    site(stage)
    rules = (UrlRule(match="/list/2", depth_max=9), UrlRule(match="/archive/", depth_max=0))
    await seed(stage, with_rules(*rules, depth_max=1))
    await stage.drain()
    assert set(outcomes(stage.world)) == {HOME, f"{SITE}/list/1", f"{SITE}/list/2", f"{SITE}/news"}
    assert stage.counts()["refused.depth"] == 3
    assert stage.world.crawls[PLAN.id].state is State.FINISHED


async def test_links_of_a_page_are_left_where_a_rule_says_so() -> None:
    """The page is fetched, its links are counted by themselves, and where it leads is taken."""
    stage = Stage()
    site(stage)
    stage.web.put(f"{SITE}/news", answer(301, location="/a"))
    await seed(stage, with_rules(UrlRule(match="/list/|/news", follow=False)))
    await stage.drain()
    found = outcomes(stage.world)
    assert found[f"{SITE}/list/1"] == "fetched.ok"
    assert found[f"{SITE}/a"] == "fetched.ok"
    assert f"{SITE}/list/2" not in found
    assert stage.counts()["refused.unfollowed"] == 2


async def test_what_is_not_recorded_is_counted_all_the_same() -> None:
    """However it ends: answered, refused by robots.txt, or tried in vain."""
    stage = Stage()
    site(stage)
    stage.web.put(f"{SITE}/robots.txt", answer(200, b"User-agent: *\nDisallow: /news"))
    stage.web.put(f"{SITE}/list/2", answer(500))
    await seed(stage, with_rules(UrlRule(match="/list/|/news", record=False), obey_robots=True))
    await stage.drain()
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


async def test_what_has_priority_travels_apart_and_first() -> None:
    """A pack is of one lane, from its first sending on."""
    stage = Stage()
    site(stage)
    await seed(stage, with_rules(UrlRule(match="/archive/", express=True)))
    assert lanes(stage) == [(False, ("/",))]
    await stage.deliver(stage.world.sent.pop().body)
    assert lanes(stage) == [(True, ("/archive/1",)), (False, ("/list/1", "/news"))]


async def test_priority_stays_however_a_url_comes_back() -> None:
    """Tried again, put off, set aside and cut into single URLs: it keeps its lane."""
    stage = Stage()
    stage.web.put(HOME, answer(500))
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


async def test_a_crawl_of_priority_stays_on_its_lane() -> None:
    """No rule slows a part of it down."""
    stage = Stage()
    site(stage)
    await seed(stage, with_rules(UrlRule(match="/archive/", express=False), express=True))
    await stage.deliver(stage.world.sent.pop().body)
    assert {express for express, _ in lanes(stage)} == {True}


async def test_rules_that_change_do_not_change_what_is_under_way() -> None:
    """A worker dies after its journal; whoever goes on sends the same packs, by other rules too."""
    stage = Stage()
    site(stage)
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


async def test_urls_of_a_host_are_asked_for_at_their_own_delays() -> None:
    """The quick ones first; each leaves its host alone for as long as its own rule says."""
    stage = Stage(settings=Settings(wait_s_max=20.0))
    paths = ("/slow/1", "/x", "/quick/1", "/slow/2", "/quick/2")
    urls = [SITE + path for path in paths]
    rules = (UrlRule(match="/slow/", delay_ms=4_000), UrlRule(match="/quick/", delay_ms=500))
    pack = stage.begin(with_rules(*rules, delay_ms=1_000), *urls)
    assert await stage.deliver(pack) == []
    order = [(url.removeprefix(SITE), at_ms) for url, at_ms in stage.web.asked]
    assert [path for path, _ in order] == ["/quick/1", "/quick/2", "/x", "/slow/1", "/slow/2"]
    gaps = [later - at for (_, at), (_, later) in itertools.pairwise(order)]
    # Behind a block there is its slack; two slots of four seconds are one.
    assert gaps == [500, 526, 1_050, 4_000]


async def test_robots_may_ask_for_more_than_a_rule() -> None:
    """The longest counts, as ever."""
    stage = Stage()
    stage.web.put(f"{SITE}/robots.txt", answer(200, b"User-agent: *\nCrawl-delay: 3"))
    crawl = with_rules(UrlRule(match="/quick/", delay_ms=0), delay_ms=1_000, obey_robots=True)
    pack = stage.begin(crawl, f"{SITE}/quick/1", f"{SITE}/quick/2")
    assert await stage.deliver(pack) == []
    _, (_, first_ms), (_, second_ms) = stage.web.asked
    assert second_ms - first_ms == 3_000


# --- window -------------------------------------------------------------------------------------


async def again(stage: Stage, crawl: Crawl, after_ms: int) -> set[str]:
    """Run a crawl a second time; the paths that it asks for."""
    stage.clock.at_ms = NOW_MS + after_ms
    stage.web.asked.clear()
    stage.restart()
    run = replace(crawl, id=f"again-{after_ms}", started_at_ms=stage.clock.at_ms)
    await seed(stage, run)
    await stage.drain()
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
async def test_urls_have_windows_of_their_own(after_ms: int, asked: set[str] | None) -> None:
    """The home page every hour, the archive once a month, the rest every week."""
    stage = Stage()
    site(stage)
    rules = (UrlRule(match="/$", window_s=3_600), UrlRule(match="/archive/", window_s=30 * 86_400))
    crawl = with_rules(*rules)
    await seed(stage, crawl)
    await stage.drain()
    everything = {url.removeprefix(SITE) for url in stage.web.urls}
    assert await again(stage, crawl, after_ms) == (everything if asked is None else asked)


async def test_no_run_asks_twice_whatever_the_window() -> None:
    """A window of nothing still is one request a run."""
    stage = Stage()
    site(stage)
    stage.web.put(f"{SITE}/news", html("/", "/list/1", "/news"))
    await seed(stage, with_rules(UrlRule(match="/", window_s=0)))
    await stage.drain()
    assert len(stage.web.urls) == len(set(stage.web.urls)) == 10


async def test_a_crawl_without_end_forgets_short_windows() -> None:
    """What a container remembers of claims is older than a window of minutes may be."""
    stage = Stage()
    site(stage)
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
