"""Cookies of a crawl: returned to their host by all workers, never shared with other crawls."""

from __future__ import annotations

import gzip
import json
import logging
from collections.abc import Mapping
from dataclasses import asdict, replace

import pytest

from orbweaver.frontier.messages import child_id
from orbweaver.model.crawl_settings import Bodies, Scope
from orbweaver.model.http_exchange import Response
from tests.unit.stage import CRAWL, SITE, Stage, answer, fail_on, html, noting, outcomes

OTHER = "https://other.example"
SECRET = "s3cr3t"
KEEPING = replace(CRAWL, cookies=True, scope=Scope.ANY, bodies=Bodies.ALL)


def setting(response: Response, *lines: str) -> Response:
    headers = {**response.headers, "set-cookie": lines[0]}
    return replace(response, headers=headers, cookies=tuple(line.encode() for line in lines))


def sent(stage: Stage) -> Mapping[str, str | None]:
    """Return the Cookie header of the last request to each URL."""
    return {one.url: dict(one.headers).get("Cookie") for one in stage.web.requests}


async def test_crawl_without_cookies_stores_none() -> None:
    effects: list[str] = []
    stage = Stage(gate=noting(effects)).serve({"/a": setting(html("/b"), f"sid={SECRET}")})
    stage.web.put(f"{SITE}/b", html())
    await stage.crawl(CRAWL, f"{SITE}/a")
    assert set(sent(stage).values()) == {None}
    assert stage.world.cookies == {}
    assert not [effect for effect in effects if "cookies" in effect]


async def test_login_redirects_keep_cookies_across_workers() -> None:
    stage = Stage().serve({"/login": setting(answer(302, location="/check"), "step=1", "sid=x")})
    stage.web.put(f"{SITE}/check", setting(answer(302, location="/home"), f"sid={SECRET}; Path=/"))
    stage.web.put(f"{SITE}/home", html())
    await stage.deliver(stage.begin(KEEPING, f"{SITE}/login"))
    for _ in range(3):
        stage.restart()
        await stage.drain()
    assert sent(stage) == {
        f"{SITE}/login": None,
        f"{SITE}/check": "step=1; sid=x",
        f"{SITE}/home": f"step=1; sid={SECRET}",
    }
    assert outcomes(stage.world)[f"{SITE}/home"] == "fetched.ok"


@pytest.mark.parametrize(
    ("location", "cookies", "said", "end", "error"),
    [
        ("/a", True, 1, "fetched.ok", None),
        (f"{SITE}/a#top", True, 2, "fetched.ok", None),
        ("?utm_source=x", True, 1, "fetched.ok", None),
        ("/a", True, 9, "failed.redirect_limit", "it leads to itself, also with the cookies"),
        ("/a", False, 9, "failed.redirect_limit", "itself and sets a cookie: --cookies sends"),
    ],
)
async def test_redirect_to_itself_with_cookie_is_requested_again(
    location: str, cookies: bool, said: int, end: str, error: str | None
) -> None:
    """A session may set two cookies. An endless loop ends after three requests."""
    stage = Stage()
    redirects = [setting(answer(302, location=location), f"c{n}={n}") for n in range(said)]
    stage.web.put(f"{SITE}/a", *redirects, html("/b"))
    stage.web.put(f"{SITE}/b", html())
    await stage.deliver(stage.begin(replace(KEEPING, cookies=cookies), f"{SITE}/a"))
    for _ in range(4):
        stage.restart()
        await stage.drain()
    requests = [one for one in stage.web.requests if one.url == f"{SITE}/a"]
    assert len(requests) == (min(said, 2) + 1 if cookies else 1)
    assert outcomes(stage.world)[f"{SITE}/a"] == end
    (record,) = [one for one in stage.world.pages.values() if one.url == f"{SITE}/a"]
    assert (error or "") in (record.error or "")
    assert (f"{SITE}/b" in outcomes(stage.world)) is (error is None)


async def test_cookies_are_separate_per_crawl_and_site() -> None:
    stage = Stage().serve({"/robots.txt": setting(answer(404), "robots=1")})
    stage.web.put(f"{OTHER}/robots.txt", answer(404))
    stage.web.put(
        f"{SITE}/a", setting(html(f"{OTHER}/b", "/c"), f"sid={SECRET}", "x=1; Domain=com")
    )
    stage.web.put(f"{SITE}/c", html())
    stage.web.put(f"{OTHER}/b", setting(html(f"{SITE}/d"), "theirs=1"))
    stage.web.put(f"{SITE}/d", html())
    crawl = replace(KEEPING, obey_robots=True)
    await stage.crawl(crawl, f"{SITE}/a")
    seen = sent(stage)
    assert seen[f"{SITE}/c"] == seen[f"{SITE}/d"] == f"sid={SECRET}"
    assert seen[f"{OTHER}/b"] is None
    assert seen[f"{SITE}/robots.txt"] is None
    assert stage.world.cookies.keys() == {(crawl.id, "example.com"), (crawl.id, "other.example")}
    second = replace(crawl, id="site-2")
    await stage.deliver(stage.begin(second, f"{SITE}/c", pack=child_id("second", 0)))
    await stage.drain()
    assert sent(stage)[f"{SITE}/c"] is None


async def test_refused_cookies_are_counted() -> None:
    stage = Stage().serve({"/a": setting(html(), "x=1; Domain=com", "", "ok=1")})
    await stage.deliver(stage.begin(KEEPING, f"{SITE}/a"))
    counters = await stage.crawls.counters(stage.world.crawls[KEEPING.id])
    assert counters.total["cookies.refused"] == 2


async def test_configured_cookie_takes_precedence() -> None:
    stage = Stage()
    given = (("cookie", "sid=mine"), ("DNT", "1"))
    crawl = replace(KEEPING, seeds=(f"{SITE}/",), headers=given)
    stage.web.put(f"{SITE}/a", setting(html("/b"), "sid=theirs", "more=1"))
    stage.web.put(f"{SITE}/b", html())
    await stage.crawl(crawl, f"{SITE}/a")
    assert dict(stage.web.requests[-1].headers) == {"DNT": "1", "Cookie": "sid=mine; more=1"}


async def test_cookies_are_in_no_record_log_or_file(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for crawl in (KEEPING, replace(KEEPING, id="site-2", cookies=False)):
        stage = Stage().serve({"/a": setting(html("/b"), f"sid={SECRET}; Path=/"), "/b": html()})
        await stage.crawl(crawl, f"{SITE}/a")
        world = stage.world
        said = json.dumps(
            [
                [asdict(record) for record in world.pages.values()],
                [mail.body for mail in world.sent],
                [vars(record) for record in caplog.records],
                repr(stage.web.requests) + repr(stage.web.asked) + repr(stage.world.crawls),
            ],
            default=str,
        )
        assert SECRET not in said
        stored = b"".join(archived(stage))
        assert (SECRET.encode() in stored) is not crawl.cookies
        assert b"x" in stored


def archived(stage: Stage) -> list[bytes]:
    return [
        gzip.decompress(body) for key, body in stage.world.files.items() if key.endswith(".warc.gz")
    ]


@pytest.mark.parametrize("effect", ["hosts.cookies", "hosts.keep_cookies"])
async def test_failed_cookie_table_loses_no_page(effect: str) -> None:
    stage = Stage(gate=fail_on(effect)).serve({"/a": setting(html("/b"), f"sid={SECRET}")})
    stage.web.put(f"{SITE}/b", html())
    await stage.deliver(stage.begin(KEEPING, f"{SITE}/a"))
    for _ in range(3):
        await stage.drain()
    assert outcomes(stage.world) == {f"{SITE}/a": "fetched.ok", f"{SITE}/b": "fetched.ok"}
    assert sent(stage)[f"{SITE}/b"] == f"sid={SECRET}"
