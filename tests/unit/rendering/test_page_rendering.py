"""A page's commands to the browser, their order, and how it notices that a page is ready."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from orbweaver.rendering.browser import Browser
from orbweaver.rendering.page_rendering import OpenPage
from orbweaver.rendering.paused_requests import SharedAssets
from orbweaver.rendering.task import RenderLimits
from tests.rendering.stage import Site, page, task_of

FRAME, SESSION = "frame", "session"
FAST = RenderLimits(quiet_s=0, quiet_s_max=0)


class FakeBrowser:
    """A browser with one target, which answers commands once `prepared` is set."""

    user_agent, worn = "", False

    def __init__(self) -> None:
        self.connection = self
        self.prepared = asyncio.Event()
        self.sent: list[str] = []
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
                return {"result": {"value": 0}}
            case "Runtime.evaluate":
                return {"result": {"value": {"html": "<p>", "cut": False}}}
        return {}

    def _hear(self, method: str, **event: Any) -> None:
        assert self._page is not None
        self._page.heard(SESSION, method, event)


def opened(browser: FakeBrowser, limits: RenderLimits = FAST) -> OpenPage:
    """Make a page of a fake browser."""
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
