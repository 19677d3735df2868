"""Pages that attack the browser: truncated, failed or complete, and the next page is correct."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from orbweaver.rendering import browser
from orbweaver.rendering.renderer import Renderer
from orbweaver.rendering.task import (
    NotRendered,
    RenderCut,
    Rendered,
    RenderFailure,
    RenderLimits,
    ResourceAnswer,
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
    task_of,
)

pytestmark = NEEDS_BROWSER

SHOW = links_into()
# A page's action after its links exist, and the limit that stops it.
HOSTILE = {
    "endless loop": ("for (;;);", RenderCut.TIME),
    "endless loop later": ("setTimeout(() => { for (;;); }, 20)", RenderCut.TIME),
    "endless loop in granted time": ("setTimeout(() => { for (;;); }, 1500)", RenderCut.TIME),
    "endless promises": ("const again = () => { Promise.resolve().then(again) }; again()",
                         RenderCut.TIME),
    "endless history": ("for (let i = 0; ; i += 1) history.pushState({}, '', '/' + i)",
                        RenderCut.TIME),
    "dialogs": ("for (let i = 0; i < 200; i += 1) { alert(i); confirm(i); prompt(i) }", None),
    "asks before it is left": (
        ("addEventListener('beforeunload', (event) => event.preventDefault());"
         "location.href = '/elsewhere'"), None),
    "windows": ("for (let i = 0; i < 40; i += 1) window.open('/popup' + i)", RenderCut.POPUPS),
    "downloads": (
        ("for (let i = 0; i < 20; i += 1) { const one = document.createElement('a');"
         " one.download = 'file'; one.href = URL.createObjectURL(new Blob(['x']));"
         " one.click(); }"), None),
    "prints": ("for (let i = 0; i < 50; i += 1) print()", None),
    "states": ("for (let i = 0; i < 500; i += 1) history.pushState(i, '', '/state' + i)", None),
    "leaves at once": ("location.href = '/elsewhere'", None),
    "leaves later": ("setTimeout(() => { location.href = '/elsewhere' }, 1000)", None),
    "reloads": ("location.reload()", None),
    "leaves without end": (
        "let i = 0; setInterval(() => { i += 1; location.href = '/elsewhere' + i }, 1)",
        RenderCut.NAVIGATIONS),
    "redirects without end": ("fetch('/redirects').catch(() => 0)", None),
    "frames without end": (
        ("setInterval(() => { const one = document.createElement('iframe');"
         " one.src = '/frame' + Math.random(); document.body.append(one); }, 1)"),
        RenderCut.REQUESTS),
    "pictures without end": (
        "let i = 0; setInterval(() => { i += 1; new Image().src = '/image' + i }, 0)",
        RenderCut.REQUESTS),
    "buttons pressed": (
        ("fetch('/buy', {method: 'POST', body: 'x'}).catch(() => 0);"
         "fetch('/buy', {method: 'DELETE'}).catch(() => 0); navigator.sendBeacon('/buy', 'x');"
         "const form = document.createElement('form'); form.method = 'post';"
         "form.action = '/buy'; document.body.append(form); form.submit()"), None),
    "files of the machine": (
        ("fetch('file:///etc/passwd').catch(() => 0); new Image().src = 'file:///etc/passwd';"
         "const one = document.createElement('iframe'); one.src = 'file:///etc/passwd';"
         "document.body.append(one); location.href = 'file:///etc/passwd'"), None),
}  # fmt: skip
FILES = {"/redirects": ResourceAnswer(status=302, headers=(("Location", "/redirects"),))}
LIMITS = RenderLimits(
    total_s=3, reading_s=20, paused_max=150, memory_bytes_max=600_000_000, quiet_s_max=1
)


@pytest.fixture
async def hardened(tmp_path: Path) -> AsyncIterator[Renderer]:
    """Open a renderer with limits short enough for a test."""
    async with Renderer(PROGRAM, LIMITS, parent=str(tmp_path)) as made:
        yield made


async def test_hostile_pages_are_read_or_cut(hardened: Renderer) -> None:
    site = Site(FILES)
    async with asyncio.TaskGroup() as group:
        tasks = {
            name: group.create_task(rendered(hardened, scripted(f"{SHOW} {script}"), site))
            for name, (script, _) in HOSTILE.items()
        }
    results = {name: one.result() for name, one in tasks.items()}
    found = {name: links_of(one) for name, one in results.items()}
    assert found == dict.fromkeys(HOSTILE, LINKS)
    cuts = {name: one.cut for name, one in results.items()}
    expected = {name: cut for name, (_, cut) in HOSTILE.items()}
    # On a busy machine the time limit can act before another one.
    wrong = {name for name in cuts if cuts[name] not in (expected[name], RenderCut.TIME)}
    assert not wrong, cuts
    assert {one.method for one in site.asked} <= {"GET"}
    assert not [path for path in site.paths() if path.startswith(("/buy", "/elsewhere", "/popup"))]
    gone = {name for name, one in results.items() if one.navigations}
    assert {"leaves at once", "leaves later", "reloads", "leaves without end"} <= gone
    assert results["leaves at once"].redirected
    assert not results["leaves later"].redirected
    assert results["buttons pressed"].counts.refused["method"] >= 2
    assert hardened.folder is not None
    assert not list(hardened.folder.rglob("file*"))


# Scripts that use memory without end.
GREEDY = {
    "heap": "const all = []; for (;;) all.push({one: [all.length], two: 'x' + all.length})",
    "elements": (
        "for (;;) document.documentElement.append(Math.random(), document.createElement('p'))"
    ),
}


@pytest.mark.parametrize("name", ["heap", pytest.param("elements", marks=pytest.mark.long)])
async def test_endless_memory_use_is_stopped(hardened: Renderer, name: str) -> None:
    """The engine's limit stops heap growth; the memory watch or the time limit stops elements."""
    result = await hardened.render(task_of(scripted(GREEDY[name])), Site())
    if isinstance(result, NotRendered):
        assert result.reason is not RenderFailure.START
    else:
        assert result.cut in (RenderCut.TIME, RenderCut.HTML)
    assert links_of(await rendered(hardened, scripted(SHOW))) == LINKS


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel bounds no process")
async def test_memory_limit_of_process_refuses_buffers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browser, "_WATCH_S", 60.0)
    script = (
        "const all = []; try { for (;;) all.push(new Uint8Array(8e6).fill(7)); } catch (error) {"
        f" {SHOW} document.body.append(all.length) }}"
    )
    async with Renderer(PROGRAM, parent=str(tmp_path)) as renderer:
        result = await rendered(renderer, scripted(script))
    assert links_of(result) == LINKS
    taken = int(re.findall(rb"(\d+)</body>", result.html)[0])
    assert 10 <= taken <= RenderLimits().process_bytes_max / 8e6


async def test_killed_page_process_fails_page_at_once(hardened: Renderer) -> None:
    class Killing(Site):
        waiting = 0

        async def load(self, request: object) -> ResourceAnswer:
            assert hardened.browser is not None
            pages = [one for one in hardened.browser.memory() if one.renders]
            for one in pages:
                os.kill(one.pid, 9)
            return ResourceAnswer(status=200)

    script = "".join(f"fetch('/{place}');" for place in range(3))
    result = await hardened.render(task_of(scripted(script)), Killing())
    assert isinstance(result, NotRendered)
    assert result.reason in (RenderFailure.CRASHED, RenderFailure.NO_ANSWER)
    assert links_of(await rendered(hardened, scripted(SHOW))) == LINKS


async def test_page_limits_are_enforced_and_counted(tmp_path: Path) -> None:
    limits = RenderLimits(requests_max=5, bytes_max=3_000, html_chars_max=2_000)
    asks = "".join(f"fetch('/{place}').catch(() => 0);" for place in range(9))
    big = "fetch('/big').catch(() => 0); fetch('/big?2').catch(() => 0)"
    body = file("x" * 2_000, "text/plain")
    async with Renderer(PROGRAM, limits, parent=str(tmp_path)) as renderer:
        many = await rendered(renderer, scripted(asks), Site())
        assert (many.counts.asked, many.counts.refused) == (5, {"requests": 4})
        large = await rendered(renderer, scripted(big), Site({"/big": body, "/big?2": body}))
        assert (large.counts.bytes, large.counts.refused) == (4_000, {"bytes": 1})
        long = await rendered(renderer, page("x" * 5_000))
        assert (len(long.html), long.cut) == (2_000, RenderCut.HTML)
        assert isinstance(long, Rendered)
