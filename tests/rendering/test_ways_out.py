"""The browser has no network: a page's attempts, with some of the protections switched off."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from orbweaver.rendering import browser as browsers
from orbweaver.rendering.launch import FENCE, BrowserProgram
from orbweaver.rendering.renderer import Renderer
from orbweaver.rendering.task import (
    Rendered,
    RenderLimits,
    RenderResult,
    RenderRules,
    RenderTask,
    ResourceAnswer,
    ResourceRequest,
)
from tests.rendering.stage import HTML, NEEDS_BROWSER, PROGRAM
from tests.rendering.ways_out import HELD_S, Listeners, answer_of, listening

pytestmark = NEEDS_BROWSER

ATTEMPTS_MIN = 45
# Loaded too, so that they reach the product's fetcher.
ALL_KINDS = RenderRules(load=frozenset({"image", "font", "media"}))


class Fetched:
    """A fetcher that answers without a network, and lets a page wait for its attempts."""

    def __init__(self) -> None:
        self.urls: list[str] = []

    waiting = 0

    async def load(self, request: ResourceRequest) -> ResourceAnswer:
        self.urls.append(request.url)
        path = "/" + request.url.partition("://")[2].partition("/")[2]
        if path == "/hold":
            await asyncio.sleep(HELD_S)
        kind, body = answer_of(path)
        headers = (("Content-Type", kind), ("Access-Control-Allow-Origin", "*"))
        return ResourceAnswer(status=200, headers=headers, body=body)


async def tried(
    folder: Path, without: str = "", program: BrowserProgram | None = None
) -> tuple[Listeners, RenderResult]:
    """Render the page with all attempts, without some of the protections."""
    given = program or BrowserProgram(path=PROGRAM)
    fence = {name: flags for name, flags in FENCE.items() if name not in without.split()}
    limits = RenderLimits(total_s=30, requests_max=200)
    async with (
        listening() as listeners,
        Renderer(lambda: given, limits, parent=str(folder), fence=fence) as renderer,
    ):
        task = RenderTask(
            url=f"http://127.0.0.1:{listeners.port}/",
            document=ResourceAnswer(status=200, headers=HTML, body=listeners.html),
            rules=ALL_KINDS,
        )
        result = await renderer.render(task, Fetched())
    return listeners, result


def unpaused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browsers, "_ALL", [{"urlPattern": "none:*"}])


async def test_attempts_arrive_without_network_protections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpaused(monkeypatch)
    listeners, _ = await tried(tmp_path, " ".join(FENCE))
    assert len(listeners.kinds()) >= ATTEMPTS_MIN, sorted(listeners.kinds())
    assert listeners.datagrams


async def test_no_attempt_reaches_network(tmp_path: Path) -> None:
    listeners, result = await tried(tmp_path)
    assert (listeners.connections, listeners.datagrams) == (0, 0), listeners.paths
    assert isinstance(result, Rendered), result
    counts = result.counts
    assert counts.asked + counts.emptied + sum(counts.refused.values()) >= ATTEMPTS_MIN, counts


async def test_requests_without_interception_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpaused(monkeypatch)
    listeners, _ = await tried(tmp_path)
    assert (listeners.connections, listeners.datagrams) == (0, 0), listeners.paths


@pytest.mark.parametrize("without", ["proxy", "bypass", "resolver", "features"])
async def test_any_one_network_protection_can_be_missing(tmp_path: Path, without: str) -> None:
    listeners, _ = await tried(tmp_path, without)
    assert (listeners.connections, listeners.datagrams) == (0, 0), listeners.paths


@pytest.mark.parametrize("without", ["proxy resolver", "bypass resolver"])
async def test_missing_pair_of_protections_is_detected(tmp_path: Path, without: str) -> None:
    """Interception alone leaks: sockets and preloads are never intercepted."""
    listeners, _ = await tried(tmp_path, without)
    assert "speculation-prefetch" in listeners.kinds(), listeners.paths
    assert listeners.connections > len(listeners.paths)


async def test_webrtc_flags_are_needed(tmp_path: Path) -> None:
    """Otherwise a page would send datagrams past the proxy."""
    listeners, _ = await tried(tmp_path, "webrtc")
    assert listeners.datagrams
