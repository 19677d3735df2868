"""Continuation of an earlier run: only URLs that its journals left out are requested."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orbweaver.control.crawl_spec import CrawlSpec
from orbweaver.frontier.erase_rule import with_erased
from orbweaver.frontier.messages import Past, SeedsMessage, decode, encode, past_of
from orbweaver.model.crawl import Crawl, State, Stop
from orbweaver.model.crawl_settings import Bodies, Scope
from orbweaver.model.item_rules import Field, ItemRule
from orbweaver.worker.link_dedup import LEFT_MAX
from tests.unit.stage import SITE, Stage, answer, control_of, html, outcomes

PLAN = CrawlSpec(seeds=(f"{SITE}/0",), name="x", delay_ms=0, obey_robots=False)


def site(pages: int = 40) -> Stage:
    """Serve pages that link to four others each, to the first page, and to another host."""
    stage = Stage()
    for page in range(pages):
        links = [f"/{page * 4 + more}" for more in range(1, 5) if page * 4 + more < pages]
        away = (f"https://away.example/{page}", "/private/1") if page == 0 else ()
        stage.web.put(f"{SITE}/{page}", html(*links, "/0", *away))
    stage.web.put(f"{SITE}/private/1", html())
    stage.web.put("https://away.example/0", html())
    return stage


async def crawl(stage: Stage, *, after_ms: int = 60_000, **options: Any) -> Crawl:
    stage.clock.at_ms += after_ms
    begun = await control_of(stage).start(replace(PLAN, **options))
    await stage.drain()
    ended = stage.world.crawls[begun.id]
    assert ended.state is State.FINISHED
    return ended


async def test_raised_limit_requests_difference() -> None:
    stage = site()
    await crawl(stage, pages_max=10)
    assert len(stage.web.urls) == 10
    second = await crawl(stage, pages_max=25)
    assert (second.stop, second.pages_carried, len(stage.web.urls)) == (Stop.MAX_PAGES, 10, 25)
    third = await crawl(stage, pages_max=1_000)
    assert (third.stop, len(third.resumes)) == (Stop.FINISHED, 2)
    assert len(stage.web.urls) == len(set(stage.web.urls)) == 41


async def test_erased_link_of_earlier_run_is_not_requested() -> None:
    stage = site()
    first = await crawl(stage, pages_max=10)
    stage.world.crawls[first.id] = with_erased(first, [f"{SITE}/11"], stage.clock.at_ms)
    second = await crawl(stage, pages_max=1_000)
    assert second.resumes == (first.id,)
    assert f"{SITE}/11" not in stage.web.urls
    assert len(stage.web.urls) == 40


async def test_container_with_cached_crawl_reads_it_again() -> None:
    """Crawls are cached for five seconds, and this run starts one second later."""
    stage = site()
    await crawl(stage, pages_max=10)
    second = await crawl(stage, after_ms=1_000, pages_max=25)
    assert (len(stage.web.urls), second.pages_carried) == (25, 10)


async def test_same_limit_requests_nothing() -> None:
    stage = site()
    await crawl(stage, pages_max=10)
    again = await crawl(stage, pages_max=10)
    assert (again.stop, again.pages_own) == (Stop.MAX_PAGES, 0)
    assert len(stage.web.urls) == 10


async def test_greater_depth_requests_deeper_pages() -> None:
    stage = site()
    for depth, pages in ((1, 6), (2, 22), (5, 41)):
        await crawl(stage, depth_max=depth)
        assert len(stage.web.urls) == len(set(stage.web.urls)) == pages


async def test_wider_scope_or_patterns_request_excluded_pages() -> None:
    stage = site(5)
    await crawl(stage, exclude=("/private/",))
    assert f"{SITE}/private/1" not in stage.web.urls
    await crawl(stage)
    assert stage.web.urls[-1] == f"{SITE}/private/1"
    await crawl(stage, scope=Scope.ANY)
    assert stage.web.urls[-1] == "https://away.example/0"
    assert len(stage.web.urls) == len(set(stage.web.urls)) == 7


async def test_claims_of_cancelled_packs_are_requested() -> None:
    stage = site()
    control = control_of(stage)
    first = await control.start(PLAN)
    (seeds,) = [decode(mail.body) for mail in stage.world.sent]
    stage.world.sent.clear()
    assert isinstance(seeds, SeedsMessage)
    await stage.deliver(seeds)  # the first page is claimed, and its pack never delivered
    await control.cancel(first.id)
    stage.world.sent = [mail for mail in stage.world.sent if "close" in mail.body]
    await stage.drain()
    ended = stage.world.crawls[first.id]
    assert (ended.state, stage.web.urls) == (State.FINISHED, [])
    await crawl(stage)
    assert len(stage.web.urls) == len(set(stage.web.urls)) == 41


async def test_links_beyond_journal_limit_are_counted() -> None:
    stage = Stage()
    links = [f"/{place}" for place in range(LEFT_MAX + 7)]
    stage.web.put(f"{SITE}/0", html(*links))
    first = await crawl(stage, depth_max=0)
    assert stage.counts(first)["left_beyond"] == 6  # one of them is the page itself
    lefts = [journal.left for journal in stage.world.journals.values() if journal.left]
    assert list(map(len, lefts)) == [LEFT_MAX]


async def test_link_is_remembered_once_per_container() -> None:
    stage = Stage()
    for page in range(5):
        stage.web.put(f"{SITE}/{page}", html("/1", "/2", "/3", "/4", "https://away.example/"))
    await crawl(stage)
    left = [target.url for journal in stage.world.journals.values() for target in journal.left]
    assert left == ["https://away.example/"] * 2  # at each depth


def test_past_message_survives_encoding() -> None:
    message = past_of("new", "new", Past(run="old", packs=("a", "b")), 3, 1_000)
    assert decode(encode(message)) == message
    for broken in ('["old", 3]', "[]", '"old"', '["o","1","2","3","4","5","6"]'):
        body = f'{{"v":1,"seeds":"s","crawl":"c","at":1,"urls":[],"past":{broken}}}'
        assert "past is a run" in str(decode(body))


async def test_refetch_requests_pages_without_text_once() -> None:
    stage = site(9)
    await crawl(stage, pages_max=6)
    await crawl(stage, pages_max=8, texts=True)
    control, plan = control_of(stage), replace(PLAN, pages_max=8, texts=True)
    assert await control.outdated_pages(plan) == (6, frozenset({"texts"}))
    assert len(stage.web.urls) == 8
    stage.clock.at_ms += 60_000
    (run,) = await control.refetch(plan)
    await stage.drain()
    assert (run.texts, sorted(run.seeds)) == (True, sorted(stage.web.urls[:6]))
    assert sorted(stage.web.urls[8:]) == sorted(run.seeds)
    assert stage.world.crawls[run.id].state is State.FINISHED
    assert await control.outdated_pages(plan) == (0, frozenset())
    stage.clock.at_ms += 60_000
    assert await control.refetch(plan) == ()
    assert await control.refetch(replace(plan, texts=False)) == ()


async def test_refetch_with_page_limit_requests_at_most_this_many() -> None:
    stage = site(9)
    await crawl(stage)
    control, plan = control_of(stage), replace(PLAN, pages_max=6, texts=True)
    for requested, left in ((6, 4), (4, 0)):
        stage.clock.at_ms += 60_000
        before = len(stage.web.urls)
        (run,) = await control.refetch(plan)
        await stage.drain()
        assert len(run.seeds) == len(stage.web.urls) - before == requested
        stage.clock.at_ms += 60_000
        assert (await control.outdated_pages(plan))[0] == left
    assert await control.refetch(plan) == ()


async def test_raised_bodies_option_requests_omitted_types() -> None:
    stage = Stage().serve({"/0": html("/file", "/1", "/set.zip"), "/1": html()})
    stage.web.put(f"{SITE}/file", answer(200, b"%PDF-1.4 x", content_type="application/pdf"))
    await crawl(stage)
    assert outcomes(stage.world)[f"{SITE}/set.zip"] == "skipped.content_type"
    assert f"{SITE}/set.zip" not in stage.web.urls
    stage.clock.at_ms += 60_000
    plan = replace(PLAN, bodies=Bodies.ALL)
    assert await control_of(stage).outdated_pages(plan) == (2, frozenset({"bodies"}))
    (run,) = await control_of(stage).refetch(plan)
    assert sorted(run.seeds) == [f"{SITE}/file", f"{SITE}/set.zip"]
    await stage.drain()
    assert f"{SITE}/set.zip" in stage.web.urls


async def test_refetch_after_rule_edit_replaces_items_of_matching_pages() -> None:
    """A second edit before all pages are requested again counts each page once."""
    stage = Stage().serve({"/0": html("/item/1", "/item/2", "/other")})
    for path in ("/item/1", "/item/2", "/other"):
        stage.web.put(f"{SITE}{path}", answer(200, b"<h1>A</h1><h2>B</h2><h3>C</h3>"))
    heading, subheading, third = (
        (ItemRule(name="goods", match="/item/", fields=(Field(name="title", where=where),)),)
        for where in ("h1", "h2", "h3")
    )
    control = control_of(stage)
    await crawl(stage, items=heading)
    for items, pages_max, left in ((subheading, 1, 1), (third, 1_000, 0)):
        plan = replace(PLAN, items=items, pages_max=pages_max)
        stage.clock.at_ms += 60_000
        assert await control.outdated_pages(plan) == (2, frozenset({"items"}))
        await control.refetch(plan)
        await stage.drain()
        stage.clock.at_ms += 60_000
        assert (await control.outdated_pages(plan))[0] == left
    assert len(stage.web.urls) == 4 + 1 + 2
    newest = {record.url: record.extracted for record in stage.world.pages.values()}
    assert {item.fields["title"] for items in newest.values() for item in items} == {"C"}
    assert await control.outdated_pages(PLAN) == (0, frozenset())


@pytest.mark.parametrize("pages_max", [1_000, 3])
async def test_requested_again_counts_requests_of_this_run(pages_max: int) -> None:
    """Pages that failed in two earlier runs count once, pages beyond the limit not at all."""
    stage = Stage().serve({"/0": html("/missing/1", "/missing/2", "/missing/3", "/missing/4")})
    first = await crawl(stage)
    second = await crawl(stage)
    before = len(stage.web.urls)
    third = await crawl(stage, pages_max=pages_max)
    counts = [stage.counts(run).get("requested_again", 0) for run in (first, second, third)]
    assert counts == [0, 4, len(stage.web.urls) - before]
    assert counts[2] == min(4, pages_max - 1)
