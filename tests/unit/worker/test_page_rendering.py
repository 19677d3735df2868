"""Rendered pages, whose requests follow the rules of all requests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest

from orbweaver.frontier import warc
from orbweaver.frontier.journal import Journal
from orbweaver.frontier.stored_record import Missing, PagePart, read_stored
from orbweaver.model.auth import OriginAuth
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
    """A browser that requests some files and renders a fixed page."""

    asks: Sequence[ResourceRequest] = ()
    result: RenderResult = field(
        default_factory=lambda: Rendered(html=MADE, counts=RenderCounts(asked=1))
    )
    tasks: list[RenderTask] = field(default_factory=list)
    answers: list[ResourceAnswer | ResourceRefused] = field(default_factory=list)

    async def render(self, task: RenderTask, loader: ResourceLoader) -> RenderResult:
        self.tasks.append(task)
        self.answers += await asyncio.gather(*(loader.load(one) for one in self.asks))
        return self.result


class Lingering(Browser):
    """A slow browser."""

    async def render(self, task: RenderTask, loader: ResourceLoader) -> RenderResult:
        result = await super().render(task, loader)
        await asyncio.sleep(0.3)
        return result


def asked(*urls: str) -> list[ResourceRequest]:
    sent = (("Accept", "*/*"), ("Referer", A.url), ("Cookie", "a=b"))
    return [ResourceRequest(url=url, kind="xhr", headers=sent) for url in urls]


async def rendered(browser: Browser, crawl: Crawl = AUTO, page: Response = SHELL) -> Journal:
    return await visit(stage_of(browser, page), [A], crawl)


def stage_of(browser: Browser | None, page: Response | Failure = SHELL) -> Stage:
    return Stage(renderer=browser).serve({A.url: page})


async def test_rendered_content_replaces_fetched_page() -> None:
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
async def test_render_mode_selects_pages(mode: RenderMode, page: Response, *, begun: bool) -> None:
    browser = Browser()
    await rendered(browser, replace(CRAWL, render=mode), page)
    assert bool(browser.tasks) is begun


async def test_page_is_marked_without_browser() -> None:
    journal = await visit(stage_of(None), [A], AUTO)
    (record,) = journal.records
    assert (record.rendered, record.needs_rendering, record.title) == (None, True, "Shop")


async def test_page_stays_as_fetched_after_failed_render() -> None:
    result = NotRendered(reason=RenderFailure.CRASHED, detail="x")
    journal = await rendered(Browser(result=result))
    (record,) = journal.records
    assert (record.outcome, record.rendered, record.title) == (Outcome.FETCHED, None, "Shop")
    assert journal.counts["render.failed.crashed"] == 1


async def test_page_returns_if_renderer_is_busy() -> None:
    busy = NotRendered(reason=RenderFailure.BUSY, detail="x")
    browser = Browser(result=busy)
    journal = await rendered(browser)
    assert not journal.records
    assert [(again.target, again.delay_s) for again in journal.returning] == [(A, 5.0)]
    assert journal.counts["render.busy"] == 1
    assert not [key for key in journal.counts if key.startswith(("render.failed", "render.kinds"))]
    (task,) = browser.tasks
    assert task.wait_s is not None
    assert task.wait_s > 0


async def test_page_waiting_for_its_kind_returns_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PageRendering, "wait_s", lambda _self, _context: 0.05)
    stage = stage_of(browser := Lingering())
    others = [Target(url=f"{SITE}/kind/{name}", depth=1) for name in ("one", "two")]
    for other in others:
        stage.web.put(other.url, SHELL)
    journal = await visit(stage, others, replace(AUTO, delay_ms=0, concurrency=4))
    assert len(browser.tasks) == len(journal.records) == 1
    assert journal.records[0].rendered
    (again,) = journal.returning
    assert again.target.url != journal.records[0].url
    assert journal.counts["render.busy"] == 1


async def test_render_cut_is_recorded() -> None:
    result = Rendered(html=MADE, counts=RenderCounts(), cut=RenderCut.TIME)
    (record,) = (await rendered(Browser(result=result))).records
    assert record.cut == "render=1"


async def test_navigation_before_load_is_redirect() -> None:
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


async def test_later_navigations_and_popups_are_links() -> None:
    result = Rendered(
        html=MADE,
        counts=RenderCounts(),
        navigations=(f"{SITE}/later?a=1&b=2",),
        popups=(f"{SITE}/window",),
    )
    journal = await rendered(Browser(result=result))
    found = {target.url for target in journal.candidates}
    assert found == {f"{SITE}/made", f"{SITE}/later?a=1&b=2", f"{SITE}/window"}


async def test_requests_of_page_use_slots_of_host() -> None:
    browser = Browser(asks=asked(*(f"{SITE}/data/{place}" for place in range(3))))
    stage = stage_of(browser)
    await visit(stage, [A, replace(A, url=f"{SITE}/b")], replace(AUTO, delay_ms=1_000))
    at = [at_ms for _, at_ms in stage.web.asked]
    assert len(at) == 5
    assert all(later - sooner >= 1_000 for sooner, later in pairwise(at)), at


async def test_requests_of_page_obey_robots_txt() -> None:
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


async def test_render_refusals_are_counted_by_reason() -> None:
    counts = RenderCounts(asked=2, cached=1, refused={"robots": 1, "method": 3})
    journal = await rendered(Browser(result=Rendered(html=MADE, counts=counts)), ALWAYS)
    found = {key: count for key, count in journal.counts.items() if key.startswith("render.")}
    assert found == {
        "render.asked": 2,
        "render.cached": 1,
        "render.refused.robots": 1,
        "render.refused.method": 3,
    }


async def test_requests_of_page_have_identity_of_crawl() -> None:
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


async def test_requests_of_page_have_login_of_their_origin() -> None:
    browser = Browser(asks=asked(f"{SITE}/data", f"{API}/data", f"{SITE}/logout"))
    stage = stage_of(browser)
    stage.world.secrets["secret:jar"] = json.dumps(
        [{"name": "sid", "value": "s", "domain": "example.com"}]
    )
    auth = (OriginAuth(origin=SITE, cookies="secret:jar"),)
    await visit(stage, [A], replace(AUTO, auth=auth, cookies=True))
    own, other = (one for one in stage.web.requests if one.url.endswith("/data"))
    assert dict(own.headers)["Cookie"] == "a=b; sid=s"
    assert dict(other.headers)["Cookie"] == "a=b"
    assert browser.answers[2] == ResourceRefused(reason="logout")
    assert f"{SITE}/logout" not in stage.web.urls


async def test_retry_after_of_page_request_blocks_host() -> None:
    browser = Browser(asks=asked(f"{SITE}/data"))
    stage = stage_of(browser)
    stage.web.put(f"{SITE}/data", answer(429, retry_after="60"))
    await visit(stage, [A], AUTO)
    assert (await stage.hosts.read_host(SITE)).blocked_until_ms >= NOW_MS + 60_000


async def test_failed_page_requests_are_refused_with_reason() -> None:
    browser = Browser(asks=asked(f"{SITE}/data", "http://[bad/"))
    stage = stage_of(browser)
    stage.web.put(f"{SITE}/data", Failure(reason=Reason.ADDRESS, detail="private"))
    await visit(stage, [A], AUTO)
    assert browser.answers == [ResourceRefused(reason="address"), ResourceRefused(reason="url")]


async def test_bytes_of_page_requests_count_for_crawl() -> None:
    browser = Browser(asks=asked(f"{SITE}/data"))
    stage = stage_of(browser)
    stage.web.put(f"{SITE}/data", answer(200, b"x" * 5_000, content_type="text/plain"))
    journal = await visit(stage, [A], replace(AUTO, bytes_max=10**9))
    assert journal.counts["received_bytes"] >= 5_000 + len(SHELL.body or b"")


async def test_port_failure_during_render_returns_url() -> None:
    class Troubled(Browser):
        async def render(self, task: RenderTask, loader: ResourceLoader) -> RenderResult:
            raise Transient("no table")

    journal = await rendered(Troubled())
    assert not journal.records
    assert [one.target.url for one in journal.returning] == [A.url]


@dataclass
class Slow(Stage):
    """A stage that counts open requests, each of which takes a moment."""

    open_now: int = 0
    open_most: int = 0

    def hold(self) -> None:
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
async def test_concurrency_limit_includes_page_requests(most: int) -> None:
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


async def test_page_requests_use_every_slot_of_host() -> None:
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
async def test_screenshot_is_stored_beside_body_if_small(
    given: dict[str, bool], bytes_: int, *, kept: bool
) -> None:
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
