"""Commands that a page sends to the browser, and when the page counts as ready."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, cast

from orbweaver.rendering.browser import Browser
from orbweaver.rendering.page_rendering import OpenPage
from orbweaver.rendering.paused_requests import SharedAssets
from orbweaver.rendering.task import RenderCut, Rendered, RenderLimits
from tests.rendering.stage import Site, page, task_of

FRAME, SESSION = "frame", "session"
FAST = RenderLimits(idle_s=0.001, quiet_s=0, quiet_s_max=0)


class FakeBrowser:
    """A browser with one target that answers commands once `prepared` is set.

    `loads`: the page has a load event. `changes`: answers to the first checks of the page.
    """

    user_agent, worn = "", False

    def __init__(self, *, loads: bool = True, changes: Iterable[int] = ()) -> None:
        self.connection = self
        self.prepared = asyncio.Event()
        self.sent: list[str] = []
        self.looks_before_time = 0
        self._loads = loads
        self._changes = iter(changes)
        self._page: OpenPage | None = None

    async def open(self, page: OpenPage) -> str:
        self._page = page
        page.attached(SESSION, {"type": "page", "targetId": FRAME})
        self._hear("Page.frameNavigated", frame={"id": FRAME, "url": "about:blank"})
        self._hear("Page.loadEventFired")
        return "context"

    async def close(self, context: str) -> None:
        assert context == "context"

    def post(self, method: str, session: str | None = None, **parameters: Any) -> None:
        self.sent.append(method)
        if method == "Page.navigate":
            self._hear("Page.frameNavigated", frame={"id": FRAME, "url": parameters["url"]})
            if self._loads:
                self._hear("Page.loadEventFired")

    async def call(self, method: str, session: str | None = None, **parameters: Any) -> Any:
        self.sent.append(method)
        await self.prepared.wait()
        match method:
            case "Page.createIsolatedWorld":
                return {"executionContextId": 1}
            case "Emulation.setVirtualTimePolicy":
                self._hear("Emulation.virtualTimeBudgetExpired")
            case "Runtime.evaluate" if "MutationObserver" in parameters["expression"]:
                if "Emulation.setVirtualTimePolicy" not in self.sent:
                    self.looks_before_time += 1
                return {"result": {"value": next(self._changes, 0)}}
            case "Runtime.evaluate":
                return {"result": {"value": {"html": "<p>", "cut": False}}}
        return {}

    def _hear(self, method: str, **event: Any) -> None:
        assert self._page is not None
        self._page.handle_event(SESSION, method, event)


def opened(browser: FakeBrowser, limits: RenderLimits = FAST) -> OpenPage:
    return OpenPage(cast("Browser", browser), task_of(page("")), Site(), SharedAssets(), limits)


async def test_page_navigates_after_target_has_taken_every_command() -> None:
    """A document that arrives earlier may load before its events and start script are enabled."""
    browser = FakeBrowser()
    rendering = asyncio.create_task(opened(browser).render())
    for _ in range(20):
        await asyncio.sleep(0)
    assert "Page.addScriptToEvaluateOnNewDocument" in browser.sent
    assert "Page.navigate" not in browser.sent
    browser.prepared.set()
    result = await rendering
    assert browser.sent.count("Page.navigate") == 1
    assert (result.html, result.cut) == (b"<p>", None)  # type: ignore[union-attr]


async def test_idle_page_without_load_event_is_read() -> None:
    browser = FakeBrowser(loads=False, changes=[1, 2, 2])
    browser.prepared.set()
    result = await opened(browser).render()
    assert isinstance(result, Rendered)
    assert result.cut is None
    # Three checks until it is idle, one when it is quiet, one before it gets more time.
    assert browser.looks_before_time == 5


async def test_page_changing_without_load_event_ends_at_limit() -> None:
    """A document that still grows may be loading."""
    browser = FakeBrowser(loads=False, changes=range(1_000_000))
    browser.prepared.set()
    limits = RenderLimits(total_s=0.2, idle_s=0.001)
    result = await opened(browser, limits).render()
    assert isinstance(result, Rendered)
    assert result.cut is RenderCut.TIME
