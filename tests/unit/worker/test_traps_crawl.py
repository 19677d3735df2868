"""Crawls of crawler traps: each ends with counted reasons and leaves other hosts unaffected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from orbweaver.frontier.messages import seeds_of
from orbweaver.model.crawl import Crawl, State
from orbweaver.model.crawl_settings import Scope
from orbweaver.model.http_exchange import Failure, Request, Response
from orbweaver.model.settings import Settings
from tests.unit.stage import CRAWL, NOW_MS, SITE, SmallWeb, Stage, html

GOOD = "https://good.example"
GOOD_PAGES = {f"{GOOD}/", *(f"{GOOD}/{place}" for place in range(8))}


class TrapWeb(SmallWeb):
    """Answers with pages of a trap for one host, and of a small site for another."""

    links: Callable[[str, int], list[str]]

    async def fetch(self, request: Request) -> Response | Failure:
        if request.url.startswith(GOOD):
            self.put(request.url, html(*(f"/{place}" for place in range(8))))
        else:
            self.put(request.url, html(*self.links(request.url, len(self.asked))))
        return await super().fetch(request)


def calendar(url: str, _number: int) -> list[str]:
    """Links to the next months (case 69)."""
    month = int(url.partition("month=")[2] or 0)
    return [f"/cal?month={month + step}" for step in (1, 2, 3)]


def deeper(url: str, _number: int) -> list[str]:
    """Links to two deeper folders (case 70)."""
    path = url.removeprefix(SITE).rstrip("/")
    return [f"{path}/a/", f"{path}/b/"]


def sessions_in_paths(_url: str, number: int) -> list[str]:
    """Links with a session in the path (case 71)."""
    return [f"/(S({number * 10 + link:024d}))/page{link}" for link in range(5)]


def sessions_in_queries(_url: str, number: int) -> list[str]:
    """Links with known session parameters, which are removed (case 71)."""
    return [f"/{link};jsessionid={number}?PHPSESSID={number}" for link in range(5)]


def shuffled(_url: str, number: int) -> list[str]:
    """Links with more and more parameters in every order (case 72)."""
    names = [f"p{number // step % 7}" for step in (1, 7, 49)]
    return ["/list?" + "&".join(f"{name}=1" for name in names[:size]) for size in (1, 2, 3)]


def growing(url: str, number: int) -> list[str]:
    """Links to names that grow by one character (case 77)."""
    return [f"{url}x", f"{url}y{number}"]


def wildcard(url: str, _number: int) -> list[str]:
    """Links to subdomains of this host (case 74)."""
    host = url.partition("://")[2].partition("/")[0]
    return [f"https://x1.{host}/", f"https://x2.{host}/", f"https://x1.x1.{host}/"]


SMALL = Settings.of(folder_urls_max=40, query_urls_max=20)


@pytest.mark.parametrize(
    ("links", "scope", "fetched_max", "reason"),
    [
        (calendar, Scope.HOST, 30, "refused.pattern"),
        (deeper, Scope.HOST, 20, "refused.repetition"),
        (sessions_in_paths, Scope.HOST, 60, "refused.pattern"),
        (sessions_in_queries, Scope.HOST, 6, None),
        (shuffled, Scope.HOST, 60, "refused.pattern"),
        (growing, Scope.HOST, 60, "refused.pattern"),
        (wildcard, Scope.DOMAIN, 30, "refused.repetition"),
    ],
)
async def test_trap_is_bounded_and_other_host_is_crawled(
    links: Callable[[str, int], list[str]], scope: Scope, fetched_max: int, reason: str | None
) -> None:
    stage = Stage(settings=SMALL)
    stage.web = TrapWeb(stage.clock)
    stage.web.links = links
    stage.restart()
    crawl = replace(CRAWL, scope=scope, seeds_planned=1, depth_max=12, concurrency=4)
    await run(stage, crawl, f"{SITE}/", f"{GOOD}/")
    assert stage.world.crawls[crawl.id].state is State.FINISHED
    asked = stage.web.urls
    assert {url for url in asked if url.startswith(GOOD)} == GOOD_PAGES
    assert len(asked) - len(GOOD_PAGES) <= fetched_max
    if reason is not None:
        assert stage.counts()[reason] > 0


async def test_index_is_requested_in_one_order() -> None:
    orders = [f"?C={column};O={order}" for column in "NMSD" for order in "AD"]
    stage = Stage().serve({"/": html("/pub/?C=M;O=D")})
    stage.web.put(f"{SITE}/pub/?C=M;O=D", html(*orders, "/", "a.html", "b/"))
    stage.web.put(f"{SITE}/pub/b/", html(*orders, "/pub/"))
    stage.web.put(f"{SITE}/pub/", html(*orders, "/", "a.html", "b/"))
    stage.web.put(f"{SITE}/pub/a.html", html())
    await run(stage, replace(CRAWL, seeds_planned=1), f"{SITE}/")
    paths = {url.removeprefix(SITE) for url in stage.web.urls}
    assert paths == {"/", "/pub/?C=M;O=D", "/pub/", "/pub/a.html", "/pub/b/"}
    assert stage.counts()["refused.index_order"] == 7 + 7 + 8


async def test_trap_like_seed_is_requested() -> None:
    stage = Stage()
    await run(stage, replace(CRAWL, seeds_planned=1), f"{SITE}/a/a/a/a")
    assert stage.web.urls == [f"{SITE}/a/a/a/a"]


async def run(stage: Stage, crawl: Crawl, *urls: str) -> None:
    stage.world.crawls[crawl.id] = crawl
    (seeds,) = seeds_of(crawl.id, crawl.id, urls, at_ms=NOW_MS, planned=True)
    await stage.deliver(seeds)
    await stage.drain(5_000)


@pytest.mark.parametrize(
    ("tracking", "asked"),
    [
        (None, [f"{SITE}/", f"{SITE}/a?ref=1"]),
        (("ref",), [f"{SITE}/", f"{SITE}/a?utm_id=2"]),
        ((), [f"{SITE}/", f"{SITE}/a?ref=1&utm_id=2"]),
    ],
)
async def test_crawl_uses_its_own_tracking_parameters(
    tracking: tuple[str, ...] | None, asked: list[str]
) -> None:
    stage = Stage()
    stage.web.put(f"{SITE}/", html("/a?ref=1&utm_id=2", "/a?ref=1&utm_id=2#b"))
    plain = "?".join(asked[-1].split("?")[:1])
    stage.web.put(asked[-1], html(plain + "?ref=1&utm_id=2"))
    crawl = replace(CRAWL, seeds_planned=1, tracking=tracking)
    await run(stage, crawl, f"{SITE}/", f"{SITE}/a?ref=1&utm_id=2")
    assert sorted(stage.web.urls) == asked
