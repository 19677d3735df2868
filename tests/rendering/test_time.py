"""Changes that a page makes later are found without waiting for them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import pytest

from orbweaver.rendering.renderer import Renderer
from orbweaver.rendering.task import (
    RenderCut,
    Rendered,
    RenderLimits,
    RenderTask,
    ResourceAnswer,
    ResourceRefused,
    ResourceRequest,
)
from tests.rendering.stage import (
    LINKS,
    NEEDS_BROWSER,
    PROGRAM,
    Site,
    file,
    links_into,
    links_of,
    page,
    rendered,
    scripted,
)
from tests.sites.mixed import FRAME, SHELL, Mixed, Section
from tests.sites.server import Asked

pytestmark = NEEDS_BROWSER

SHOW = links_into()
PAGES = {
    "at once": scripted(SHOW),
    "fetch in a timer of 2 s": scripted(
        f"setTimeout(() => fetch('/data').then(() => {{ {SHOW} }}), 2000)"
    ),
    "debounce over 900 ms": scripted(
        "const begun = Date.now(); const look = () => { const left = 900 - (Date.now() - begun);"
        f" if (left <= 0) {{ {SHOW} }} else setTimeout(look, left); }}; look();"
    ),
    "poll every 500 ms, ready at the fifth": scripted(
        "let count = 0; const timer = setInterval(() => fetch('/data').then(() => {"
        f" count += 1; if (count === 5) {{ clearInterval(timer); {SHOW} }} }}), 500)"
    ),
    "five times 400 ms and a fetch": scripted(
        "(async () => { for (let i = 0; i < 5; i += 1) {"
        " await new Promise((done) => setTimeout(done, 400)); await fetch('/data'); }"
        f" {SHOW} }})()"
    ),
    "idle callback after 1 s": scripted(
        f"setTimeout(() => requestIdleCallback(() => {{ {SHOW} }}), 1000)"
    ),
    "30 frames of an animation": scripted(
        "let count = 0; const draw = () => { count += 1;"
        f" if (count === 30) {{ {SHOW} }} else requestAnimationFrame(draw); }}; draw();"
    ),
    "animationend at 1 s": page(
        "<div id=moved>x</div><script>document.getElementById('moved')"
        f".addEventListener('animationend', () => {{ {SHOW} }})</script>",
        "<style>@keyframes in {{from {{opacity: 0}}}} #moved {{animation: in 1s}}</style>".replace(
            "{{", "{"
        ).replace("}}", "}"),
    ),
    "seen 3,000 px down": page(
        "<div style='height: 3000px'></div><div id=far>x</div><script>"
        "new IntersectionObserver((seen, observer) => { if (seen[0].isIntersecting) {"
        f" observer.disconnect(); {SHOW} }} }}).observe(document.getElementById('far'))</script>"
    ),
    "2,000 messages": scripted(
        "let count = 0; const both = new MessageChannel(); both.port1.onmessage = () => {"
        f" count += 1; if (count === 2000) {{ {SHOW} }} else both.port2.postMessage(1); }};"
        " both.port2.postMessage(1);"
    ),
    "stopped before it has loaded": scripted(f"setTimeout(() => {{ {SHOW} }}, 200); window.stop()"),
    "a frame's document that is never closed": page(
        "<iframe id=part></iframe><script>const part = document.getElementById('part')"
        f".contentDocument; part.open(); part.write('<p>x'); {SHOW}</script>"
    ),
    "fetch in a worker": scripted(f"new Worker('/worker.js').onmessage = () => {{ {SHOW} }}"),
    "poll without end": scripted(f"{SHOW} setInterval(() => fetch('/data'), 500)"),
    "change every 50 ms": scripted(
        f"{SHOW} setInterval(() => {{ document.body.dataset.at = Date.now() }}, 50)"
    ),
}
FILES = {
    "/data": file("x", "text/plain"),
    "/worker.js": file("fetch('/data').then(() => postMessage(1))"),
}


async def test_late_changes_of_page_are_found(renderer: Renderer) -> None:
    async with asyncio.TaskGroup() as group:
        tasks = {
            name: group.create_task(rendered(renderer, html, Site(FILES)))
            for name, html in PAGES.items()
        }
    results = {name: one.result() for name, one in tasks.items()}
    assert {name: links_of(one) for name, one in results.items()} == dict.fromkeys(tasks, LINKS)
    assert not {name for name, one in results.items() if one.cut is not None}


async def test_open_request_stops_page_clock(renderer: Renderer) -> None:
    html = scripted(
        f"fetch('/data').then(() => {{ {SHOW} }});"
        " setTimeout(() => { document.body.dataset.timer = 'has run' }, 2900)"
    )
    result = await rendered(renderer, html, Site(FILES, delay_s=1.0))
    assert links_of(result) == LINKS
    assert "has run" in result.html.decode()


async def test_repeated_renderings_are_equal(renderer: Renderer) -> None:
    look = (
        "const bytes = crypto.getRandomValues(new Uint8Array(8));"
        "const say = (where) => { document.body.append([where, Math.random(), bytes.join(),"
        " Date.now(), new Date().toISOString(), Date(), performance.now(), performance.timeOrigin,"
        " crypto.randomUUID(), Intl.DateTimeFormat().resolvedOptions().timeZone,"
        " navigator.language, innerWidth, innerHeight].join(' ')) };"
        "say('at once'); setTimeout(() => say('timer'), 1500);"
        "requestAnimationFrame(() => say('frame'));"
        "const frame = document.createElement('iframe'); frame.src = '/frame';"
        "document.body.append(frame);"
    )
    inner = "<body><script>document.body.append(Math.random(), ' ', Date.now())</script>"
    site = Site({"/frame": file(inner, "text/html")})
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(rendered(renderer, scripted(look), site, now_ms=1_800_000_000_000))
            for _ in range(12)
        ]
    found = {one.result().html for one in tasks}
    assert len(found) == 1, found
    assert b"2027-01-15T08:00:01" in found.pop()


@pytest.mark.long
@pytest.mark.slow
async def test_two_hundred_rerendered_pages_are_equal(renderer: Renderer) -> None:
    shells = tuple(Section(name=f"s{one}", items=12, made=SHELL) for one in "abcdefghij")
    frames = tuple(Section(name=f"f{one}", items=12, made=FRAME) for one in "abcde")
    mixed = Mixed((*shells, *frames, Section(name="t", items=20)))
    chance = Random(11)

    class Moody:
        """Answers from the site after varying delays."""

        waiting = 0

        async def load(self, request: ResourceRequest) -> ResourceAnswer:
            await asyncio.sleep(chance.uniform(0, 0.2))
            return given_by(mixed, request.url)

    async def render(path: str) -> bytes:
        document = given_by(mixed, f"https://mixed.example{path}")
        task = RenderTask(url=f"https://mixed.example{path}", document=document)
        result = await renderer.render(task, Moody())
        assert isinstance(result, Rendered), (path, result)
        return result.html

    assert len(mixed.paths) == 200
    first = await asyncio.gather(*map(render, mixed.paths))
    again = await asyncio.gather(*map(render, reversed(mixed.paths)))
    unequal = [
        path
        for path, one, other in zip(mixed.paths, first, reversed(again), strict=True)
        if one != other
    ]
    assert not unequal
    for path, html in zip(mixed.paths, first, strict=True):
        assert all(word in html.decode() for word in mixed.words_of(path)), path


def given_by(site: Mixed, url: str) -> ResourceAnswer:
    target = "/" + url.partition("://")[2].partition("/")[2]
    answer = site.answer(Asked(method="GET", target=target, host="", headers={}))
    return ResourceAnswer(status=answer.status, headers=tuple(answer.headers), body=answer.body)


@pytest.mark.parametrize("secure", [True, False])
async def test_random_uuid_is_defined_on_secure_pages_only(
    renderer: Renderer, *, secure: bool
) -> None:
    html = scripted("document.body.append(typeof crypto.randomUUID)")
    url = "https://shop.example/" if secure else "http://shop.example/"
    text = (await rendered(renderer, html, url=url)).html.decode()
    assert ("function</body>" in text) is secure, text


async def test_wait_for_host_slot_is_not_page_time(tmp_path: Path) -> None:
    class Polite(Site):
        async def load(self, request: ResourceRequest) -> ResourceAnswer | ResourceRefused:
            self.waiting += 1
            await asyncio.sleep(1.5)
            self.waiting -= 1
            return await super().load(request)

    one = f"fetch('/data').then(() => fetch('/data')).then(() => {{ {SHOW} }});"
    limits = RenderLimits(total_s=2)
    async with Renderer(PROGRAM, limits, parent=str(tmp_path)) as renderer:
        result = await rendered(renderer, scripted(one), Polite(FILES))
        assert (links_of(result), result.cut) == (LINKS, None)
        slow = await rendered(renderer, scripted(one), Site(FILES, delay_s=1.5))
    assert (links_of(slow), slow.cut) == (0, RenderCut.TIME)
