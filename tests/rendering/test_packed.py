"""The packed AWS browser, run locally: it renders and has no network."""

from __future__ import annotations

import asyncio
import os
import platform
import sys
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from infra import browser
from infra.asset import ROOT, STORE
from orbweaver.rendering.launch import FENCE, BrowserProgram, PackedBrowser
from orbweaver.rendering.renderer import Renderer
from orbweaver.rendering.task import RenderLimits
from tests.rendering.stage import LINKS, Site, file, links_into, links_of, page, rendered, scripted
from tests.rendering.test_ways_out import ATTEMPTS_MIN, tried, unpaused

# npm fetches it.
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        (sys.platform, platform.machine()) != ("linux", browser.ARCHITECTURE),
        reason="it is built for Linux on x86_64",
    ),
]
CERTAIN_TEXT = "Grüße, 漢字, العربية, हिन्दी, 🕸 <b>bold</b> <i>italic</i> <code>code</code>"


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> PackedBrowser:
    parent = tmp_path_factory.mktemp("unpacked")
    return PackedBrowser(folder=browser.obtain(ROOT, STORE), parent=parent)


@pytest.fixture(scope="module")
def program(packed: PackedBrowser) -> BrowserProgram:
    return packed.unpacked()


@pytest.fixture
async def packed_renderer(packed: PackedBrowser, tmp_path: Path) -> AsyncIterator[Renderer]:
    limits = RenderLimits(total_s=30, reading_s=20)
    async with Renderer(packed.unpacked, limits, parent=str(tmp_path)) as made:
        yield made


async def test_packed_browser_renders_concurrent_pages(packed_renderer: Renderer) -> None:
    late = scripted(f"setTimeout(() => {{ {links_into()} }}, 2000)")
    fetched = page(
        "<main></main><script>fetch('/links.js').then((one) => one.text()).then((text) =>"
        " new Function(text)())</script>"
    )
    site = Site({"/links.js": file(links_into("document.querySelector('main')"))})
    pages = [rendered(packed_renderer, html, site) for html in (late, fetched) * 10]
    assert [links_of(result) for result in await asyncio.gather(*pages)] == [LINKS] * 20
    measured = scripted(
        "document.body.innerHTML += `<p id=p>" + CERTAIN_TEXT + "</p>`;"
        "const wide = document.getElementById('p').getBoundingClientRect().height;"
        f"if (wide > 5) {{ {links_into()} }}"
    )
    assert links_of(await rendered(packed_renderer, measured)) == LINKS
    assert packed_renderer.browsers_started == 1
    assert packed_renderer.browser is not None
    assert packed_renderer.browser.version.partition("/")[2].startswith("153.")


async def test_packed_browser_timer_pages_end_before_the_limit(packed_renderer: Renderer) -> None:
    html = scripted(f"setTimeout(() => {{ {links_into()} document.body.append(Date()) }}, 200)")
    results = await asyncio.gather(*(rendered(packed_renderer, html) for _ in range(80)))
    assert Counter(result.cut for result in results) == {None: 80}
    assert len({result.html for result in results}) == 1
    assert links_of(results[0]) == LINKS


async def test_packed_browser_works_on_one_slow_processor(packed_renderer: Renderer) -> None:
    """Shared processes survive the first pages, as they must on Lambda."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        pages = [rendered(packed_renderer, scripted(links_into())) for _ in range(8)]
        assert [links_of(result) for result in await asyncio.gather(*pages)] == [LINKS] * 8
    finally:
        os.sched_setaffinity(0, before)
    assert packed_renderer.browsers_started == 1


async def test_packed_browser_takes_screenshot(packed_renderer: Renderer) -> None:
    result = await rendered(packed_renderer, page(f"<p>{CERTAIN_TEXT}</p>"), screenshot=True)
    assert result.screenshot is not None
    assert result.screenshot[8:12] == b"WEBP"


async def test_packed_browser_reaches_no_network(program: BrowserProgram, tmp_path: Path) -> None:
    listeners, result = await tried(tmp_path, program=program)
    assert (listeners.connections, listeners.datagrams) == (0, 0), listeners.paths
    counts = result.counts
    assert counts.asked + counts.emptied + sum(counts.refused.values()) >= ATTEMPTS_MIN, counts


async def test_protections_hold_without_request_interception(
    program: BrowserProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpaused(monkeypatch)
    held, _ = await tried(tmp_path, program=program)
    assert (held.connections, held.datagrams) == (0, 0), held.paths
    open_, _ = await tried(tmp_path, " ".join(FENCE), program)
    assert len(open_.kinds()) >= ATTEMPTS_MIN, sorted(open_.kinds())


@pytest.mark.parametrize("without", ["proxy", "bypass", "resolver", "features"])
async def test_any_one_network_protection_can_be_missing(
    program: BrowserProgram, tmp_path: Path, without: str
) -> None:
    listeners, _ = await tried(tmp_path, without, program)
    assert (listeners.connections, listeners.datagrams) == (0, 0), listeners.paths


@pytest.mark.parametrize("without", ["proxy resolver", "bypass resolver", "webrtc"])
async def test_missing_pair_of_protections_is_detected(
    program: BrowserProgram, tmp_path: Path, without: str
) -> None:
    listeners, _ = await tried(tmp_path, without, program)
    assert listeners.connections + listeners.datagrams > 0
