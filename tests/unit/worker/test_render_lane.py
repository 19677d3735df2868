"""Pages for workers with a browser, handled by a worker without one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from orbweaver.budget.budget_rules import COUNTED
from orbweaver.frontier.journal import Journal, Ledger, Requeue, outbox
from orbweaver.frontier.messages import Pack
from orbweaver.model.crawl import Crawl, LimitPart
from orbweaver.model.crawl_settings import RenderMode, RenderRule
from orbweaver.model.settings import Settings
from orbweaver.model.target import Target, TargetKind
from orbweaver.worker.rendering_gain import LearnedKinds, is_sample
from orbweaver.worker.rounds import Round
from orbweaver.worker.shutdown import ShutdownSignal
from tests.unit.stage import CRAWL, SITE, Stage, answer
from tests.unit.worker.test_fetch_pack import visit
from tests.unit.worker.test_rendering_choice import AUTO, FRAME, SHELL, Browser, kind

ALWAYS = replace(CRAWL, render=RenderMode.ALWAYS)
LANE = Settings.of(render_queue_url="https://queue.invalid/render")
PLAIN = b"<title>Page</title><p>text"


def stage_of(pages: Mapping[str, bytes]) -> Stage:
    stage = Stage(settings=LANE)
    for path, body in pages.items():
        stage.web.put(SITE + path, answer(200, body, content_type="text/html"))
    return stage


async def sent(stage: Stage, paths: Sequence[str], crawl: Crawl) -> Journal:
    return await visit(stage, [Target(url=SITE + path, depth=1) for path in paths], crawl)


def asked(stage: Stage) -> list[str]:
    asked = [request.url.removeprefix(SITE) for request in stage.web.requests]
    return [path for path in asked if path != "/robots.txt"]


async def test_pages_with_possible_gain_are_sent_to_render_lane() -> None:
    stage = stage_of({"/shell": SHELL, "/x/frame": FRAME, "/plain": PLAIN})
    journal = await sent(stage, ("/shell", "/x/frame", "/plain"), AUTO)
    again = [item.target for item in journal.returning]
    assert [(one.url, one.render) for one in again] == [
        (f"{SITE}/shell", True),
        (f"{SITE}/x/frame", True),
    ]
    assert [one.url for one in journal.records] == [f"{SITE}/plain"]
    assert journal.counts["render.sent_asked"] == journal.counts["deferrals"] == 2
    # The bytes of these pages were received nevertheless.
    assert journal.counts[COUNTED[LimitPart.BYTES]] == len(SHELL) + len(FRAME) + len(PLAIN)


async def test_pages_always_rendered_are_sent_unrequested() -> None:
    stage = stage_of({"/a": PLAIN})
    journal = await sent(stage, ("/a",), ALWAYS)
    assert [item.target.render for item in journal.returning] == [True]
    assert journal.counts["render.sent_unasked"] == 1
    rule = RenderRule(match="/app/", mode=RenderMode.ALWAYS)
    await sent(stage, ("/app/b",), replace(AUTO, render_rules=(rule,)))
    assert asked(stage) == []
    listed = Target(url=f"{SITE}/sitemap.xml", depth=0, kind=TargetKind.SITEMAP)
    await visit(stage, [listed], ALWAYS)
    assert asked(stage) == ["/sitemap.xml"]


async def test_crawl_without_rendering_sends_no_page() -> None:
    stage = stage_of({"/shell": SHELL})
    journal = await sent(stage, ("/shell",), CRAWL)
    assert [one.needs_rendering for one in journal.records] == [True]
    assert not journal.returning


async def learned(gains: bool) -> tuple[Stage, list[str]]:
    """Let a worker with a browser render similar pages.

    Return another worker, and more such pages.
    """
    first = Stage(renderer=Browser(adds=lambda _url: gains))
    shown = kind("a", FRAME, 3)
    for path, body in shown.items():
        first.web.put(SITE + path, answer(200, body, content_type="text/html"))
    journal = await sent(first, list(shown), AUTO)
    others = kind("a", FRAME, 3, first=1_000)
    stage = stage_of(others)
    stage.world.crawls[AUTO.id] = AUTO
    ledger = Ledger(pack="p", children=())
    await stage.packs.commit(AUTO, ledger, journal.counts)
    return stage, list(others)


async def test_kind_known_to_gain_is_not_requested_here() -> None:
    stage, others = await learned(gains=True)
    journal = await sent(stage, others, AUTO)
    assert (asked(stage), len(journal.returning)) == ([], 3)


async def test_kind_without_gain_stays_here_except_samples() -> None:
    stage, others = await learned(gains=False)
    sample = next(path for n in range(9_999) if is_sample(SITE + (path := f"/a/{n}")))
    stage.web.put(SITE + sample, answer(200, FRAME, content_type="text/html"))
    journal = await sent(stage, [*others, sample], AUTO)
    assert [item.target.url for item in journal.returning] == [SITE + sample]
    assert {one.render_why for one in journal.records} == {"kind_gains_nothing"}


@pytest.mark.parametrize("marked_too", [False, True])
def test_shape_with_two_kinds_is_expected_if_both_gain(*, marked_too: bool) -> None:
    learned = LearnedKinds()
    url = f"{SITE}/a/1"
    assert not learned.expects(url)
    learned.learn(learned.key(url, marked=True), marked=True, gained=True)
    assert learned.expects(f"{SITE}/a/2")
    assert not learned.expects(f"{SITE}/b/2")
    learned.learn(learned.key(url, marked=False), marked=False, gained=marked_too)
    assert learned.expects(url) is marked_too


async def test_sent_page_is_rendered_by_worker_with_browser() -> None:
    stage = stage_of({"/shell": SHELL, "/slow": PLAIN})
    journal = await sent(stage, ("/shell",), AUTO)
    journal = replace(
        journal, returning=(*journal.returning, replace_first(journal, f"{SITE}/slow"))
    )
    packs = [one.pack for one in outbox("p", CRAWL.id, journal, Ledger(pack="p", children=()))]
    assert [(pack.render, len(pack.targets)) for pack in packs] == [(False, 1), (True, 1)]
    browser = Stage(renderer=Browser(), settings=LANE.having(browser="/a/browser"))
    browser.web.put(f"{SITE}/shell", answer(200, SHELL, content_type="text/html"))
    done = await visit(browser, list(packs[1].targets), AUTO)
    assert [one.rendered for one in done.records] == [True]


def replace_first(journal: Journal, url: str) -> Requeue:
    (item,) = journal.returning
    return replace(item, target=Target(url=url, depth=1))


@pytest.mark.parametrize(
    ("settings", "render", "taken"),
    [
        (Settings(), False, True),
        (Settings(), True, True),
        (LANE, False, True),
        (LANE, True, False),
        (LANE.having(browser="b"), False, False),
        (LANE.having(browser="b"), True, True),
    ],
)
def test_worker_takes_packs_of_its_own_lane(
    settings: Settings, *, render: bool, taken: bool
) -> None:
    round_ = Round(clock=Stage().clock, settings=settings, deadline_ms=0, ending=ShutdownSignal())
    target = Target(url=SITE, depth=0, render=render)
    assert round_.accepts(Pack(id="p", crawl="c", at_ms=1, targets=(target,))) is taken
