"""Choice of pages to render: by rules, marks, and the gain of similar pages (kind)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import pytest

from orbweaver.frontier.journal import Journal
from orbweaver.model.crawl import Counts, Crawl
from orbweaver.model.crawl_settings import RenderMode, RenderRule
from orbweaver.model.errors import Transient
from orbweaver.model.render_rules import RenderWhy
from orbweaver.model.target import Target
from orbweaver.rendering.task import (
    NotRendered,
    RenderCounts,
    Rendered,
    RenderFailure,
    RenderResult,
    RenderTask,
    ResourceLoader,
)
from orbweaver.worker.rendering_choice import FRESH_MS, RenderingChooser
from orbweaver.worker.rendering_gain import MARKED_FIRST, SAMPLE, is_sample
from tests.unit.stage import CRAWL, SITE, Stage, answer
from tests.unit.worker.test_fetch_pack import visit

AUTO = replace(CRAWL, render=RenderMode.AUTO)
TEXT = "What the server says of it, at some length, so that nothing seems to be missing. " * 10
FRAME = f"<title>Page</title><p>{TEXT}<div id=more></div><script src=/site.js></script>".encode()
SHELL = b"<title>Page</title><div id=root></div><script type=module src=/app.js></script>"
MORE = f"<p>{TEXT}<p>{TEXT}".encode()


def always(_url: str) -> bool:
    return True


@dataclass
class Browser:
    """A browser in which scripts add text to a page if `adds(url)` is true."""

    adds: Callable[[str], bool] = always
    fails: bool = False
    asked: list[str] = field(default_factory=list)

    async def render(self, task: RenderTask, loader: ResourceLoader) -> RenderResult:
        self.asked.append(task.url)
        await asyncio.sleep(0)
        if self.fails:
            return NotRendered(reason=RenderFailure.CRASHED)
        made = MORE if self.adds(task.url) else b""
        return Rendered(html=task.document.body + made, counts=RenderCounts())


async def crawled(
    browser: Browser, pages: Mapping[str, bytes], crawl: Crawl = AUTO
) -> tuple[Journal, dict[str, RenderWhy]]:
    """Visit pages concurrently; return the journal and the render reason of each page."""
    stage = Stage(renderer=browser)
    for path, body in pages.items():
        stage.web.put(SITE + path, answer(200, body, content_type="text/html"))
    journal = await visit(stage, [Target(url=SITE + path, depth=1) for path in pages], crawl)
    why = {one.url.removeprefix(SITE): one.render_why for one in journal.records}
    return journal, {path: RenderWhy(said) for path, said in why.items() if said is not None}


def kind(name: str, body: bytes, number: int, first: int = 0) -> dict[str, bytes]:
    paths = (f"/{name}/{place}" for place in range(first, first + 10 * number))
    return dict.fromkeys([one for one in paths if not is_sample(SITE + one)][:number], body)


async def test_pages_of_gaining_kind_are_rendered() -> None:
    journal, why = await crawled(Browser(), kind("a", FRAME, 20))
    assert Counter(why.values()) == {RenderWhy.FIRST: 1, RenderWhy.KIND: 19}
    assert all(one.rendered for one in journal.records)
    assert journal.counts["rendered"] == journal.counts["render.compared"] == 20


@pytest.mark.parametrize(
    ("body", "why", "number"),
    [(FRAME, RenderWhy.NO_GAIN, 1), (SHELL, RenderWhy.MARKED, MARKED_FIRST)],
    ids=["unmarked", "marked"],
)
async def test_pages_of_kind_without_gain_are_not_rendered(
    body: bytes, why: RenderWhy, number: int
) -> None:
    """Marked pages are rendered a few times."""
    browser = Browser(adds=lambda _url: False)
    journal, found = await crawled(browser, kind("a", body, 20))
    assert Counter(found.values()) == {why: number, RenderWhy.KIND_GAINS_NOTHING: 20 - number}
    if body is SHELL:
        assert all(one.needs_rendering for one in journal.records)
    else:
        assert not any(one.rendered for one in journal.records)
        assert len(browser.asked) == 1


async def test_marked_and_unmarked_pages_are_separate_kinds() -> None:
    pages = kind("a", SHELL, 10) | kind("a", FRAME, 10, first=1_000)
    browser = Browser(adds=lambda url: int(url.rpartition("/")[2]) < 1_000)
    _, why = await crawled(browser, pages)
    assert Counter(why.values()) == {
        RenderWhy.MARKED: 10,
        RenderWhy.NO_GAIN: 1,
        RenderWhy.KIND_GAINS_NOTHING: 9,
    }


async def test_pages_without_scripts_are_not_rendered() -> None:
    data = b'<p>text<script type="application/ld+json">{}</script>'
    browser = Browser()
    _, why = await crawled(browser, {"/a": b"<p>text", "/b": data})
    assert set(why.values()) == {RenderWhy.NO_SCRIPTS}
    assert not browser.asked


async def test_sample_detects_redesign_within_200_pages() -> None:
    then = 100
    pages = {f"/a/{place}": FRAME for place in range(then + 200)}
    browser = Browser(adds=lambda url: int(url.rpartition("/")[2]) >= then)
    stage = Stage(renderer=browser)
    why: list[str | None] = []
    for path, body in pages.items():
        stage.web.put(SITE + path, answer(200, body, content_type="text/html"))
        journal = await visit(stage, [Target(url=SITE + path, depth=1)], AUTO)
        why.append(journal.records[0].render_why)
    seen = why.index(RenderWhy.SAMPLED)
    assert then <= seen < then + 200
    assert set(why[seen + 1 :]) == {RenderWhy.KIND}
    assert len([one for one in why[:then] if one == RenderWhy.NO_GAIN]) <= 2 + 3 * then / SAMPLE


async def test_render_rules_take_precedence_without_comparison() -> None:
    rules = (
        RenderRule(match="/always/", mode=RenderMode.ALWAYS),
        RenderRule(match="/never/", mode=RenderMode.NEVER),
    )
    pages = kind("always", FRAME, 2) | kind("never", SHELL, 2)
    browser = Browser(adds=lambda _url: False)
    journal, why = await crawled(browser, pages, replace(AUTO, render_rules=rules))
    assert Counter(why.values()) == {RenderWhy.ALWAYS: 2, RenderWhy.NEVER: 2}
    assert "render.compared" not in journal.counts
    ruled = replace(CRAWL, render_rules=rules)
    _, why = await crawled(browser, pages | kind("other", SHELL, 2), ruled)
    assert Counter(why.values()) == {RenderWhy.ALWAYS: 2, RenderWhy.NEVER: 2}


@pytest.mark.parametrize(
    ("body", "tried"), [pytest.param(SHELL, 20, id="noticed"), pytest.param(FRAME, 1, id="not")]
)
async def test_failed_render_spends_credit_of_unmarked_kind_only(body: bytes, tried: int) -> None:
    browser = Browser(fails=True)
    journal, why = await crawled(browser, kind("a", body, 20))
    assert len(browser.asked) == tried
    assert list(why.values()).count(RenderWhy.FAILED) == tried
    assert journal.counts["render.failed.crashed"] == tried


@dataclass
class Books:
    """Counters that workers share; a read may fail."""

    learned_now: dict[str, int] = field(default_factory=dict)
    gone: bool = False
    reads: int = 0

    async def learned(self, _crawl: Crawl) -> Counts:
        self.reads += 1
        if self.gone:
            raise Transient("no table")
        return dict(self.learned_now)


async def test_workers_learn_kinds_from_each_other() -> None:
    clock, books = Stage().clock, Books()
    one, other = (RenderingChooser(books, clock) for _ in range(2))  # type: ignore[arg-type]
    pages = [SITE + path for path in kind("a", FRAME, 4)]
    async with other.chosen(AUTO, pages[0], marked=False, scripts=True) as choice:
        assert choice.why is RenderWhy.FIRST
    async with one.chosen(AUTO, pages[0], marked=False, scripts=True) as choice:
        books.learned_now = dict(choice.learn(gained=True))
    async with other.chosen(AUTO, pages[1], marked=False, scripts=True) as choice:
        assert choice.why is RenderWhy.FIRST
    assert books.reads == 2
    clock.at_ms += FRESH_MS
    async with other.chosen(AUTO, pages[2], marked=False, scripts=True) as choice:
        assert choice.why is RenderWhy.KIND
    books.gone = True
    clock.at_ms += FRESH_MS
    async with other.chosen(AUTO, pages[3], marked=False, scripts=True) as choice:
        assert choice.why is RenderWhy.KIND
