"""The preview of a crawl: one request for its first page, and a decision on each link."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from orbweaver.adapters.local.reader import InPlaceReader
from orbweaver.control.definition import parse
from orbweaver.control.seed_preview import LINKS_SHOWN, SeedPreview, SeedPreviewer
from orbweaver.control.spec_checks import crawl_of
from orbweaver.model.http_exchange import Failure
from orbweaver.model.outcome import Reason
from orbweaver.model.settings import Settings
from orbweaver.politeness.host_health import HostHealth
from tests.memory import ManualClock, MemoryHosts, World
from tests.unit.stage import NOW_MS, SITE, SmallWeb, answer, html

ROBOTS = answer(200, b"User-agent: *\nDisallow: /private\nCrawl-delay: 2\n")


@dataclass
class Desk:
    """A previewer, a small site and the shared host states."""

    clock: ManualClock = field(default_factory=lambda: ManualClock(NOW_MS))
    world: World = field(default_factory=World)

    def __post_init__(self) -> None:
        self.web = SmallWeb(self.clock)
        self.hosts = MemoryHosts(self.world)
        self.web.put(f"{SITE}/robots.txt", ROBOTS)

    async def preview(self, **definition: Any) -> SeedPreview:
        previewer = SeedPreviewer(
            fetcher=self.web,
            reader=InPlaceReader(),
            hosts=self.hosts,
            health=HostHealth(hosts=self.hosts, clock=self.clock, random=Random(1)),
            clock=self.clock,
            settings=Settings(),
        )
        document = {"seeds": [f"{SITE}/"], **definition}
        return await previewer.preview(crawl_of(parse(document), NOW_MS))


@pytest.fixture
def desk() -> Desk:
    return Desk()


async def test_preview_names_decision_and_rule_of_each_link(desk: Desk) -> None:
    paths = ("/a", "/login", "/private/x", "/a/photo.zip", "https://elsewhere.example/")
    desk.web.put(f"{SITE}/", html(*paths, title="Shop"))
    found = await desk.preview(
        scope={"exclude": ["/login"], "include": ["/a", "/private"]},
        rules=[{"match": "/a$", "delay": "5s"}],
    )
    said = {link.url.removeprefix(SITE): (link.refused, link.rule) for link in found.links}
    host = f"same host as the linking page ({SITE})"
    assert said == {
        "/a": (None, f"scope host: {host}; rules[0]: delay 5 s"),
        "/login": ("exclude", "scope.exclude: /login is found in it"),
        "/private/x": ("robots", "robots.txt, line 2: Disallow: /private"),
        "/a/photo.zip": ("content_type", "its name says that it is no page (photo.zip)"),
        "https://elsewhere.example/": (
            "scope",
            f"scope host: https://elsewhere.example is not {SITE}, the host of the linking page",
        ),
    }
    assert found.counts == {"taken": 1, "exclude": 1, "robots": 1, "content_type": 1, "scope": 1}
    assert (found.title, found.status, found.robots) == ("Shop", 200, "no rule matches")


async def test_preview_requests_page_and_robots_txt_with_delay(desk: Desk) -> None:
    desk.web.put(f"{SITE}/", html("/a", title="Shop"))
    await desk.preview()
    (robots, robots_ms), (first, first_ms) = desk.web.asked
    assert (robots, first) == (f"{SITE}/robots.txt", f"{SITE}/")
    assert first_ms - robots_ms >= 1_000
    await desk.preview()
    assert len(desk.web.asked) == 3, "robots.txt is known by then"
    assert desk.web.asked[2][1] - first_ms >= 2_000
    assert not desk.world.sent
    assert not desk.world.crawls


@pytest.mark.parametrize(
    ("definition", "refused", "rule"),
    [
        ({"limits": {"depth": 0}}, "depth", "limits.depth = 0"),
        ({"rules": [{"match": "/a$", "depth": 0}]}, "depth", "rules[0]: depth 0"),
        ({"rules": [{"match": "/$", "follow": False}]}, "unfollowed", "follow = false"),
        ({"scope": {"include": ["/b"]}}, "include", "scope.include: none"),
    ],
)
async def test_preview_names_depth_rule_or_pattern_of_refusal(
    desk: Desk, definition: dict[str, Any], refused: str, rule: str
) -> None:
    desk.web.put(f"{SITE}/", html("/a", title="Shop"))
    (link,) = (await desk.preview(**definition)).links
    assert link.refused == refused
    assert rule in link.rule


async def test_preview_follows_redirects_as_a_crawl(desk: Desk) -> None:
    www = "https://www.example.com"
    desk.web.put(f"{SITE}/", answer(301, location=f"{www}/"))
    desk.web.put(f"{www}/", html("/a", title="Shop"))
    found = await desk.preview()
    assert (found.url, found.redirects) == (f"{www}/", (f"{SITE}/",))
    assert [(link.url, link.refused) for link in found.links] == [(f"{www}/a", None)]
    desk.web.put(f"{www}/", answer(302, location=f"{www}/"))
    found = await desk.preview()
    assert found.why is not None
    assert not found.links


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (answer(404), "HTTP 404"),
        (answer(200, None, content_type="application/pdf"), "content_type"),
        (Failure(reason=Reason.CONNECT, detail="refused"), "no connection: refused"),
        (answer(301, location="http://"), "it is not an http or https URL"),
    ],
)
async def test_preview_without_page_gives_reason_and_no_links(given: Any, why: str) -> None:
    desk = Desk()
    desk.web.put(f"{SITE}/", given)
    found = await desk.preview()
    assert why in (found.why or "")
    assert not found.links


async def test_preview_of_forbidden_page_names_line_of_robots_txt(desk: Desk) -> None:
    found = await desk.preview(seeds=[f"{SITE}/private/"])
    assert found.why == "robots.txt forbids it: line 2: Disallow: /private"
    assert desk.web.urls == [f"{SITE}/robots.txt"]


async def test_preview_of_host_without_slots_names_reservations(desk: Desk) -> None:
    await desk.hosts.reserve(SITE, 10, 10_000, NOW_MS, NOW_MS + 100_000)
    why = (await desk.preview()).why or ""
    assert "more: crawls have reserved these slots, also crawls that are paused now" in why
    assert desk.web.asked == []


async def test_preview_of_503_blocks_host_for_all_crawls(desk: Desk) -> None:
    desk.web.put(f"{SITE}/", answer(503, retry_after="600"))
    assert "503" in ((await desk.preview()).why or "")
    asked = len(desk.web.asked)
    assert "more: it answered 429 or 503; no request" in ((await desk.preview()).why or "")
    assert len(desk.web.asked) == asked
    assert (await desk.hosts.read_host(SITE)).blocked_until_ms >= NOW_MS + 600_000


async def test_preview_counts_all_links_and_shows_some(desk: Desk) -> None:
    desk.web.put(f"{SITE}/", html(*(f"/{number}" for number in range(1_000)), title="Shop"))
    found = await desk.preview()
    assert (len(found.links), found.more) == (LINKS_SHOWN, 1_000 - LINKS_SHOWN)
    assert found.counts == {"taken": 1_000}


async def test_preview_of_sitemap_only_crawl_requests_nothing(desk: Desk) -> None:
    found = await desk.preview(seeds=[], sitemaps=[f"{SITE}/sitemap.xml"])
    assert "sitemaps only" in (found.why or "")
    assert not desk.web.asked
