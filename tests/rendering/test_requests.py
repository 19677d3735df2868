"""Requests of a page, their answers, and the final HTML."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from orbweaver.model.errors import Transient
from orbweaver.parsing.page import parse
from orbweaver.rendering.renderer import Renderer
from orbweaver.rendering.task import (
    RenderRules,
    ResourceAnswer,
    ResourceRefused,
    ResourceRequest,
)
from tests.rendering.stage import (
    LINKS,
    NEEDS_BROWSER,
    Site,
    file,
    links_into,
    links_of,
    page,
    rendered,
    scripted,
    task_of,
    text_of,
)

pytestmark = NEEDS_BROWSER


async def test_shared_scripts_are_requested_once(renderer: Renderer) -> None:
    files = {
        "/app.js": file(f"fetch('/data').then(() => {{ {links_into()} }})"),
        "/style.css": file("a {color: red}", "text/css"),
        "/private.js": file("", **{"Cache-Control": "no-store"}),
        "/data": file("x", "text/plain"),
    }
    head = (
        "<link rel=stylesheet href=/style.css><script defer src=/app.js></script>"
        "<script defer src=/private.js></script>"
    )
    site = Site(files, delay_s=0.05)
    results = await asyncio.gather(*(rendered(renderer, page("", head), site) for _ in range(4)))
    assert [links_of(one) for one in results] == [LINKS] * 4
    asked = Counter(site.paths())
    assert asked == {"/app.js": 1, "/style.css": 1, "/private.js": 4, "/data": 4}
    assert sum(one.counts.cached for one in results) == 6
    assert sum(one.counts.asked for one in results) == asked.total()


async def test_requests_follow_rules(renderer: Renderer) -> None:
    html = page(
        "<img src=/a.png onload=\"document.body.append('pixel ')\">"
        "<script src=https://cdn.example.net/lib.js></script>"
        "<script src=https://www.googletagmanager.com/gtm.js></script>"
        "<iframe src=https://ads.example.net/frame></iframe><script>"
        "fetch('https://api.shop.example/data', {headers: {'X-Requested-With': 'page'}})"
        ".then((answer) => answer.text()).then((text) => document.body.append(text));"
        "fetch('https://api.example.net/data').catch(() => document.body.append(' refused'));"
        "new EventSource('/events')</script>"
    )
    open_to_all = {"Access-Control-Allow-Origin": "https://shop.example"}
    site = Site({"/data": file("data of the site's", "text/plain", **open_to_all)})
    result = await rendered(renderer, html, site)
    text = text_of(result)
    assert "pixel" in text
    assert "data of the site's" in text
    assert "refused" in text
    hosts = Counter(one.url.split("/")[2] for one in site.asked)
    assert hosts == {"cdn.example.net": 1, "api.shop.example": 1}
    data = next(one for one in site.asked if "api" in one.url)
    assert {("Origin", "https://shop.example"), ("X-Requested-With", "page")} <= {*data.headers}
    assert result.counts.emptied == 2
    assert result.counts.refused == {"tracker": 1, "third_party": 2}
    listed = RenderRules(third_party=frozenset({"example.net"}))
    await rendered(renderer, html, site, rules=listed)
    assert Counter(one.url.split("/")[2] for one in site.asked)["api.example.net"] == 1


async def test_browser_handles_redirects_and_cookies(renderer: Renderer) -> None:
    hop = ResourceAnswer(
        status=302, headers=(("Location", "/there"), ("Set-Cookie", "hop=1; HttpOnly"))
    )
    site = Site({"/here": hop, "/there": file("arrived", "text/plain")})
    script = (
        "document.cookie = 'own=2'; fetch('/here').then((answer) => answer.text())"
        ".then((text) => document.body.append(text))"
    )
    assert "arrived" in text_of(await rendered(renderer, scripted(script), site))
    cookies = dict(site.asked[-1].headers)["Cookie"]
    assert {*cookies.split("; ")} == {"hop=1", "own=2"}
    # The next page has no cookies.
    await rendered(renderer, scripted("fetch('/there')"), site)
    assert "Cookie" not in dict(site.asked[-1].headers)


async def test_refused_requests_are_counted_by_reason(renderer: Renderer) -> None:
    class Forbidding(Site):
        waiting = 0

        async def load(self, request: ResourceRequest) -> ResourceRefused:
            return ResourceRefused(reason="robots")

    html = scripted("fetch('/a').catch(() => document.body.append('refused'))")
    result = await rendered(renderer, html, Forbidding())
    assert "refused" in text_of(result)
    assert result.counts.refused == {"robots": 1}


async def test_loader_exception_is_raised(renderer: Renderer) -> None:
    """The error is the product's, not the page's; the browser continues."""

    class Troubled(Site):
        waiting = 0

        async def load(self, request: ResourceRequest) -> ResourceAnswer:
            raise Transient("no table")

    with pytest.raises(Transient):
        await renderer.render(task_of(scripted("fetch('/a')")), Troubled())
    assert links_of(await rendered(renderer, scripted(links_into()))) == LINKS


async def test_shadow_roots_and_frames_are_in_html(renderer: Renderer) -> None:
    script = (
        "class Inner extends HTMLElement { connectedCallback() {"
        f" const root = this.attachShadow({{mode: 'open'}}); {links_into('root')} }} }}"
        "customElements.define('x-inner', Inner);"
        "class Outer extends HTMLElement { connectedCallback() {"
        " this.attachShadow({mode: 'open'}).innerHTML = '<p>outer</p><x-inner></x-inner>' } }"
        "customElements.define('x-outer', Outer);"
    )
    frame = "<!doctype html><body><a href='below'>Below</a><p>of the frame</p>"
    body = "<x-outer>slotted</x-outer><iframe src='/deep/frame'></iframe>"
    site = Site({"/deep/frame": file(frame, "text/html")})
    result = await rendered(renderer, page(f"{body}<script>{script}</script>"), site)
    found = parse(result.html, "https://shop.example/", "text/html; charset=utf-8")
    assert len(found.links) == LINKS + 1
    assert "https://shop.example/deep/below" in found.links
    for text in ("outer", "slotted", "of the frame"):
        assert text in found.text
    assert result.html.startswith(b"<!DOCTYPE html><html>")


async def test_page_cannot_change_html_reader(renderer: Renderer) -> None:
    script = (
        f"{links_into()} Object.defineProperty(Element.prototype, 'outerHTML', {{get: () => 'x'}});"
        "Element.prototype.querySelectorAll = () => []; document.createElement = () => null;"
        "window.MutationObserver = null; JSON.stringify = () => 'x'; String.prototype.slice = null"
    )
    assert links_of(await rendered(renderer, scripted(script))) == LINKS


async def test_screenshot_shows_upper_part_if_requested(renderer: Renderer) -> None:
    result = await rendered(renderer, scripted(links_into()), screenshot=True)
    assert result.screenshot is not None
    assert result.screenshot[:4] == b"RIFF"
    assert (await rendered(renderer, page("x"))).screenshot is None


async def test_pages_see_crawlers_user_agent(renderer: Renderer) -> None:
    html = scripted("document.body.append(navigator.userAgent)")
    result = await rendered(renderer, html, user_agent="orbweaver/0.1 (+https://example.com)")
    assert text_of(result).endswith("orbweaver/0.1 (+https://example.com)</body></html>")
