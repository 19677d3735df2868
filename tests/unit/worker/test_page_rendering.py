"""Pages whose scripts are run: what they ask for goes by the rules of any request."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest

from orbweaver.frontier import warc
from orbweaver.frontier.journal import Journal
from orbweaver.frontier.stored_record import Missing, PagePart, read_stored
from orbweaver.model.crawl import Crawl
from orbweaver.model.crawl_settings import Bodies, RenderMode
from orbweaver.model.errors import Transient
from orbweaver.model.http_exchange import Failure, Request, Response
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.target import Target
from orbweaver.rendering.task import (
    NotRendered,
    RenderCounts,
    RenderCut,
    Rendered,
    RenderFailure,
    RenderResult,
    RenderTask,
    ResourceAnswer,
    ResourceLoader,
    ResourceRefused,
    ResourceRequest,
)
from orbweaver.worker.page_rendering import PageRendering
from tests.memory.outside import MemoryFiles
from tests.unit.stage import CRAWL, NOW_MS, SITE, Stage, answer, html
from tests.unit.worker.test_fetch_pack import visit

A = Target(url=f"{SITE}/a", depth=1)
AUTO = replace(CRAWL, render=RenderMode.AUTO)
ALWAYS = replace(CRAWL, render=RenderMode.ALWAYS)
API = "https://api.shop.example"
SHELL = answer(
    200,
    b"<title>Shop</title><div id=root></div><script type=module src=/app.js></script>",
    content_type="text/html; charset=latin-1",
)
MADE = b"<!DOCTYPE html><title>Made</title><a href=/made>x</a><p>caf\xc3\xa9"


@dataclass
class Browser:
    """A browser that asks for some files, and makes a page of nothing that they say."""

    asks: Sequence[ResourceRequest] = ()
    result: RenderResult = field(
        default_factory=lambda: Rendered(html=MADE, counts=RenderCounts(asked=1))
    )
    tasks: list[RenderTask] = field(default_factory=list)
    answers: list[ResourceAnswer | ResourceRefused] = field(default_factory=list)

    async def render(self, task: RenderTask, loader: ResourceLoader) -> RenderResult:
        """See the port."""
        self.tasks.append(task)
        self.answers += await asyncio.gather(*(loader.load(one) for one in self.asks))
        return self.result


class Lingering(Browser):
    """One that takes its time."""

    async def render(self, task: RenderTask, loader: ResourceLoader) -> RenderResult:
        """See the port."""
        result = await super().render(task, loader)
        await asyncio.sleep(0.3)
        return result


def asked(*urls: str) -> list[ResourceRequest]:
    """Make requests of a page."""
    sent = (("Accept", "*/*"), ("Referer", A.url), ("Cookie", "a=b"))
    return [ResourceRequest(url=url, kind="xhr", headers=sent) for url in urls]


async def rendered(browser: Browser, crawl: Crawl = AUTO, page: Response = SHELL) -> Journal:
    """Visit a page."""
    return await visit(stage_of(browser, page), [A], crawl)


def stage_of(browser: Browser | None, page: Response | Failure = SHELL) -> Stage:
    """Put a stage together that has a page, and a browser or none."""
    stage = Stage(renderer=browser)
    stage.web.put(A.url, page)
    return stage


async def test_what_scripts_made_is_the_page() -> None:
    """Title, links, body and digest are of it, and its record says so."""
    browser = Browser()
    journal = await rendered(browser)
    (record,) = journal.records
    assert (record.outcome, record.title, record.links) == (Outcome.FETCHED, "Made", 1)
    assert (record.rendered, record.needs_rendering, record.bytes) == (True, None, len(MADE))
    assert record.charset == "utf-8"
    assert [target.url for target in journal.candidates] == [f"{SITE}/made"]
    assert journal.counts["rendered"] == 1
    assert journal.counts["render.asked"] == 1
    (task,) = browser.tasks
    assert task.document.body == SHELL.body
    assert 0 <= NOW_MS - task.now_ms < 86_400_000


@pytest.mark.parametrize(
    ("mode", "page", "begun"),
    [
        (RenderMode.NEVER, SHELL, False),
        (RenderMode.AUTO, SHELL, True),
        (RenderMode.AUTO, html("/b"), False),
        (RenderMode.ALWAYS, html("/b"), True),
        (RenderMode.ALWAYS, html(refresh="0; url=/c"), False),
        (RenderMode.ALWAYS, answer(404, b"<p>none", content_type="text/html"), False),
        (RenderMode.ALWAYS, answer(302, location="/b"), False),
        (RenderMode.ALWAYS, answer(200, None, content_type="image/png"), False),
    ],
)
async def test_which_pages_are_rendered(mode: RenderMode, page: Response, *, begun: bool) -> None:
    """As the crawl says, and of the pages alone that are fetched and lead nowhere by themselves."""
    browser = Browser()
    await rendered(browser, replace(CRAWL, render=mode), page)
    assert bool(browser.tasks) is begun


async def test_without_a_browser_a_page_is_marked() -> None:
    """And fetched as ever."""
    journal = await visit(stage_of(None), [A], AUTO)
    (record,) = journal.records
    assert (record.rendered, record.needs_rendering, record.title) == (None, True, "Shop")


async def test_a_page_that_could_not_be_rendered_stays() -> None:
    """As it was fetched; that is counted by its reason."""
    result = NotRendered(reason=RenderFailure.CRASHED, detail="x")
    journal = await rendered(Browser(result=result))
    (record,) = journal.records
    assert (record.outcome, record.rendered, record.title) == (Outcome.FETCHED, None, "Shop")
    assert journal.counts["render.failed.crashed"] == 1


async def test_a_page_for_which_there_is_no_time_returns() -> None:
    """It is fetched anew, neither recorded as it is nor counted as one that failed."""
    busy = NotRendered(reason=RenderFailure.BUSY, detail="x")
    browser = Browser(result=busy)
    journal = await rendered(browser)
    assert not journal.records
    assert [(again.target, again.delay_s) for again in journal.again] == [(A, 5.0)]
    assert journal.counts["render.busy"] == 1
    assert not [key for key in journal.counts if key.startswith(("render.failed", "render.kinds"))]
    (task,) = browser.tasks
    assert task.wait_s is not None
    assert task.wait_s > 0


async def test_a_page_that_waits_for_another_of_its_kind_returns_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is not rendered once there is no time left to begin; a page that was begun is finished."""
    monkeypatch.setattr(PageRendering, "wait_s", lambda _self, _context: 0.05)
    stage = stage_of(browser := Lingering())
    others = [Target(url=f"{SITE}/kind/{name}", depth=1) for name in ("one", "two")]
    for other in others:
        stage.web.put(other.url, SHELL)
    journal = await visit(stage, others, replace(AUTO, delay_ms=0, concurrency=4))
    assert len(browser.tasks) == len(journal.records) == 1
    assert journal.records[0].rendered
    (again,) = journal.again
    assert again.target.url != journal.records[0].url
    assert journal.counts["render.busy"] == 1


async def test_a_page_that_was_cut_says_so() -> None:
    """In its record, as any other cut."""
    result = Rendered(html=MADE, counts=RenderCounts(), cut=RenderCut.TIME)
    (record,) = (await rendered(Browser(result=result))).records
    assert record.cut == "render=1"


async def test_a_page_that_left_before_it_had_loaded_redirects() -> None:
    """To where it went; one that reloads itself does not."""
    left = Rendered(
        html=MADE, counts=RenderCounts(), navigations=(f"{SITE}/there",), redirected=True
    )
    journal = await rendered(Browser(result=left))
    (record,) = journal.records
    assert (record.outcome, record.reason) == (Outcome.REDIRECTED, Reason.REFRESH)
    assert f"{SITE}/there" in [target.url for target in journal.candidates]
    again = replace(left, navigations=(f"{A.url}#top",))
    (record,) = (await rendered(Browser(result=again))).records
    assert record.outcome is Outcome.FETCHED


async def test_where_a_page_would_go_later_is_a_link() -> None:
    """And so is what it opens in windows."""
    result = Rendered(
        html=MADE,
        counts=RenderCounts(),
        navigations=(f"{SITE}/later?a=1&b=2",),
        popups=(f"{SITE}/window",),
    )
    journal = await rendered(Browser(result=result))
    found = {target.url for target in journal.candidates}
    assert found == {f"{SITE}/made", f"{SITE}/later?a=1&b=2", f"{SITE}/window"}


async def test_requests_of_pages_wait_for_slots() -> None:
    """A host is asked no sooner than its delay, by its pages and by what they ask for."""
    browser = Browser(asks=asked(*(f"{SITE}/data/{place}" for place in range(3))))
    stage = stage_of(browser)
    await visit(stage, [A, replace(A, url=f"{SITE}/b")], replace(AUTO, delay_ms=1_000))
    at = [at_ms for _, at_ms in stage.web.asked]
    assert len(at) == 5
    assert all(later - sooner >= 1_000 for sooner, later in pairwise(at)), at


async def test_requests_of_pages_go_by_robots_txt() -> None:
    """That of the host which is asked; what is disallowed is not loaded, and counted."""
    browser = Browser(asks=asked(f"{SITE}/data", f"{SITE}/private/data"))
    stage = stage_of(browser)
    stage.web.put(f"{SITE}/robots.txt", answer(200, b"User-agent: *\nDisallow: /private\n"))
    stage.web.put(f"{SITE}/data", answer(200, b"{}", content_type="application/json"))
    await visit(stage, [A], replace(AUTO, obey_robots=True))
    assert f"{SITE}/private/data" not in stage.web.urls
    assert browser.answers == [
        ResourceAnswer(status=200, headers=(("content-type", "application/json"),), body=b"{}"),
        ResourceRefused(reason="robots"),
    ]


async def test_refusals_are_counted() -> None:
    """By their reasons, as the browser counts them."""
    counts = RenderCounts(asked=2, cached=1, refused={"robots": 1, "method": 3})
    journal = await rendered(Browser(result=Rendered(html=MADE, counts=counts)), ALWAYS)
    found = {key: count for key, count in journal.counts.items() if key.startswith("render.")}
    assert found == {
        "render.asked": 2,
        "render.cached": 1,
        "render.refused.robots": 1,
        "render.refused.method": 3,
    }


async def test_requests_of_pages_are_the_crawls() -> None:
    """Its name, its headers for the host that they are for, and cookies of the page."""
    browser = Browser(asks=asked(f"{SITE}/data", f"{API}/data"))
    stage = stage_of(browser)
    crawl = replace(
        AUTO,
        user_agents=("named/1.0 (+https://example.com)",),
        host_headers=((SITE, (("X-Key", "secret"),)),),
    )
    await visit(stage, [A], crawl)
    own, other = (one for one in stage.web.requests if one.url.endswith("/data"))
    assert own.user_agent == other.user_agent == "named/1.0 (+https://example.com)"
    assert ("X-Key", "secret") in own.headers
    assert ("X-Key", "secret") not in other.headers
    assert ("Cookie", "a=b") in own.headers
    assert not [name for name, _ in own.headers if name == "Accept"]
    assert browser.tasks[0].user_agent == "named/1.0 (+https://example.com)"


async def test_a_host_that_wants_to_be_left_alone_is() -> None:
    """Also where a page's script was told so."""
    browser = Browser(asks=asked(f"{SITE}/data"))
    stage = stage_of(browser)
    stage.web.put(f"{SITE}/data", answer(429, retry_after="60"))
    await visit(stage, [A], AUTO)
    assert (await stage.hosts.look(SITE)).blocked_until_ms >= NOW_MS + 60_000


async def test_failures_of_requests_are_refusals() -> None:
    """By the reason of the fetcher, such as an address that must not be dialled."""
    browser = Browser(asks=asked(f"{SITE}/data", "http://[bad/"))
    stage = stage_of(browser)
    stage.web.put(f"{SITE}/data", Failure(reason=Reason.ADDRESS, detail="private"))
    await visit(stage, [A], AUTO)
    assert browser.answers == [ResourceRefused(reason="address"), ResourceRefused(reason="url")]


async def test_bytes_of_requests_are_the_crawls() -> None:
    """They are taken of its budget, and what does not fit is not asked for."""
    browser = Browser(asks=asked(f"{SITE}/data"))
    stage = stage_of(browser)
    stage.web.put(f"{SITE}/data", answer(200, b"x" * 5_000, content_type="text/plain"))
    journal = await visit(stage, [A], replace(AUTO, bytes_max=10**9))
    assert journal.counts["received_bytes"] >= 5_000 + len(SHELL.body or b"")


async def test_trouble_of_ours_is_no_outcome() -> None:
    """The URL comes back where a table does not answer."""

    class Troubled(Browser):
        async def render(self, task: RenderTask, loader: ResourceLoader) -> RenderResult:
            raise Transient("no table")

    journal = await rendered(Troubled())
    assert not journal.records
    assert [one.target.url for one in journal.again] == [A.url]


@dataclass
class Slow(Stage):
    """A stage whose web notes how many requests are open at once, each for a moment."""

    open_now: int = 0
    open_most: int = 0

    def hold(self) -> None:
        """Let every answer take a while."""
        fetch = self.web.fetch

        async def held(request: Request) -> Response | Failure:
            self.open_now += 1
            self.open_most = max(self.open_most, self.open_now)
            for _ in range(20):
                await asyncio.sleep(0)
            self.open_now -= 1
            return await fetch(request)

        self.web.fetch = held  # type: ignore[method-assign]


@pytest.mark.parametrize("most", [1, 2, 5, 16])
async def test_a_host_is_asked_by_no_more_at_once(most: int) -> None:
    """By pages and by what they ask for together, over all pages."""
    browser = Browser(asks=asked(*(f"{SITE}/data/{place}" for place in range(6))))
    stage = Slow(renderer=browser)
    targets = [Target(url=f"{SITE}/p/{place}", depth=1) for place in range(20)]
    for target in targets:
        stage.web.put(target.url, SHELL)
    stage.hold()
    stage.restart()
    await visit(stage, targets, replace(ALWAYS, concurrency=most))
    assert len(browser.answers) == 6 * len(targets)
    assert 1 <= stage.open_most <= most


async def test_no_slot_of_a_host_lapses_for_what_pages_ask() -> None:
    """A crawl that renders uses one slot after the other, whoever needs it."""
    browser = Browser(asks=asked(*(f"{SITE}/data/{place}" for place in range(3))))
    stage = stage_of(browser)
    pages = [replace(A, url=f"{SITE}/p/{place}") for place in range(4)]
    for page in pages:
        stage.web.put(page.url, SHELL)
    await visit(stage, pages, replace(ALWAYS, delay_ms=1_000))
    at = [at_ms for _, at_ms in stage.web.asked]
    assert len(at) == 4 * (1 + 3)
    gaps = [later - sooner for sooner, later in pairwise(at)]
    assert all(1_000 <= gap <= 1_100 for gap in gaps), gaps


@pytest.mark.parametrize(
    ("given", "bytes_", "kept"),
    [({}, 5, False), ({"screenshots": True}, 5, True), ({"screenshots": True}, 1_000_001, False)],
)
async def test_a_picture_is_stored_beside_the_body(
    given: dict[str, bool], bytes_: int, *, kept: bool
) -> None:
    """If the crawl asks for it, and it is not too large, which is counted."""
    crawl = replace(AUTO, bodies=Bodies.HTML, **given)  # type: ignore[arg-type]
    picture = bytes(bytes_) if given else None
    browser = Browser(result=Rendered(html=MADE, counts=RenderCounts(), screenshot=picture))
    stage = stage_of(browser)
    await stage.deliver(stage.begin(crawl, A.url))
    (record,) = [one for one in stage.world.pages.values() if one.url == A.url]
    assert browser.tasks[0].screenshot is crawl.screenshots
    assert (record.screenshot_length is not None) is kept
    stored = await read_stored(MemoryFiles(stage.world), record, PagePart.SCREENSHOT)
    if kept:
        assert isinstance(stored, warc.Record)
        assert (stored.type, stored.url, stored.payload) == ("resource", A.url, bytes(bytes_))
        body = await read_stored(MemoryFiles(stage.world), record, PagePart.BODY)
        assert isinstance(body, warc.Record)
        assert body.body() == MADE
    else:
        assert stored is Missing.NOT_KEPT
    assert stage.counts(crawl).get("render.screenshots_large", 0) == (bytes_ > 5)
