"""Render one page in a browser: open it, wait for it, read it, close it.

A page is ready when it has loaded, has no open request, and its document has been unchanged for a
moment. Then the timers of its scripts fire immediately, in virtual time, until that changes
nothing.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import Callable
from typing import Any

from orbweaver.rendering.browser import Browser
from orbweaver.rendering.page_scripts import CHANGES, WORLD, determinism, html_of_page
from orbweaver.rendering.paused_requests import PausedRequests, SharedAssets
from orbweaver.rendering.process import BrowserGone, CommandFailed
from orbweaver.rendering.task import (
    NotRendered,
    RenderCut,
    Rendered,
    RenderFailure,
    RenderLimits,
    RenderResult,
    RenderTask,
    ResourceLoader,
)

# Size of the window. It is as high as a long page, because some pages load content only when it
# becomes visible.
WIDTH, HEIGHT = 1_280, 12_000
SCREENSHOT_HEIGHT = 1_600
_PLAYBACK_RATE = 100
_BLANK = "about:blank"
_LOOK_S = 0.05
_WAITED_S = 0.25


class PageCrashed(Exception):
    """The browser process of the page has ended."""


async def render_page(
    browser: Browser,
    task: RenderTask,
    loader: ResourceLoader,
    assets: SharedAssets,
    limits: RenderLimits,
) -> RenderResult:
    """Render a page. If the browser fails, returns a `NotRendered`.

    Raises exceptions of the loader.
    """
    page = OpenPage(browser, task, loader, assets, limits)
    try:
        return await page.render()
    except PageCrashed:
        failure, detail = RenderFailure.CRASHED, "the page's process ended"
    except BrowserGone:
        failure, detail = RenderFailure.BROWSER_GONE, "the browser ended"
    except (CommandFailed, TimeoutError) as error:
        browser.is_worn = True
        failure, detail = RenderFailure.NO_ANSWER, str(error) or "the page did not answer"
    return NotRendered(reason=failure, detail=detail, counts=page.requests.counts())


class OpenPage:
    """A page of a browser, from opening to closing it."""

    def __init__(
        self,
        browser: Browser,
        task: RenderTask,
        loader: ResourceLoader,
        assets: SharedAssets,
        limits: RenderLimits,
    ) -> None:
        self._browser = browser
        self._connection = browser.connection
        self._task = task
        self._limits = limits
        self._changed = asyncio.Event()
        self.requests = PausedRequests(
            self._connection, task, loader, assets, limits, self._requests_changed
        )
        self._session: str | None = None
        self._frame = ""
        self._popups: dict[str, str] = {}  # target ids of new windows, by session
        self._committed = False
        self._loaded = False
        self._left_early = False
        self._crashed = False
        self._gone = False
        self._granted = False
        self._world: int | None = None
        self._deadline: asyncio.Timeout | None = None

    async def render(self) -> RenderResult:
        async with asyncio.timeout(self._limits.total_s):
            context = await self._browser.open(self)
        try:
            cut = await self._wait()
            try:
                async with asyncio.timeout(self._limits.reading_s) as self._deadline:
                    self._check()
                    return await self._read(cut)
            except TimeoutError:
                self._check()
                raise
        finally:
            await self.requests.close()
            await self._browser.close(context)

    # --- events of the browser ----------------------------------------------------------------

    def attached(self, session: str, target: dict[str, Any]) -> None:
        post = self._connection.post
        if target["type"] == "page" and self._session is not None:
            self._popups[session] = target["targetId"]
            return
        if target["type"] not in ("page", "iframe"):
            return
        script = determinism(self._task.now_ms)
        post("Page.enable", session)
        post("Page.addScriptToEvaluateOnNewDocument", session, source=script)
        post("Network.setBypassServiceWorker", session, bypass=True)
        post("Animation.enable", session)
        post("Animation.setPlaybackRate", session, playbackRate=_PLAYBACK_RATE)
        if target["type"] == "iframe":
            return
        self._session, self._frame = session, target["targetId"]
        agent = " ".join(filter(None, (self._browser.user_agent, self._task.user_agent)))
        post("Inspector.enable", session)
        post("Emulation.setUserAgentOverride", session, userAgent=agent, acceptLanguage="en-US")
        post("Emulation.setTimezoneOverride", session, timezoneId="UTC")

    def handle_event(self, session: str, method: str, event: dict[str, Any]) -> None:
        match method:
            case "Fetch.requestPaused":
                self._on_paused(session, event)
            case "Page.javascriptDialogOpening":
                # Accept the dialog of a page that asks whether to leave it. Dismiss all other
                # dialogs.
                accept = event["type"] == "beforeunload"
                self._connection.post("Page.handleJavaScriptDialog", session, accept=accept)
            case "Page.frameNavigated" if session == self._session:
                self._committed = self._committed or self._is_document(event["frame"])
            case "Page.loadEventFired" if session == self._session:
                self._loaded = self._loaded or self._committed
            case "Inspector.targetCrashed" if session == self._session:
                self._crashed = True
                self._stop_waiting()
            case "Emulation.virtualTimeBudgetExpired" if session == self._session:
                self._granted = False
            case _:
                return
        self._changed.set()

    def _is_document(self, frame: dict[str, Any]) -> bool:
        """Return True if a frame shows the page, and not the blank document of a new target."""
        return bool(frame["id"] == self._frame and frame["url"] != _BLANK)

    def browser_gone(self) -> None:
        self._gone = True
        self._stop_waiting()

    def _requests_changed(self) -> None:
        self._changed.set()
        if self.requests.trouble is not None:
            self._stop_waiting()

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            # The timeout may already have ended, which raises RuntimeError.
            with contextlib.suppress(RuntimeError):
                self._deadline.reschedule(0)

    def _on_paused(self, session: str, event: dict[str, Any]) -> None:
        popup = session in self._popups
        is_document = event["resourceType"] == "Document"
        main = is_document and not popup and event.get("frameId") == self._frame
        known = self.requests.paused > 0
        self.requests.take(session, event, main=main, popup=popup)
        if popup:
            self._connection.post("Target.closeTarget", targetId=self._popups[session])
        # If scripts navigate away, the page counts as loaded, because its document will not change
        # any more.
        if main and known and not self._loaded:
            self._loaded = self._left_early = True

    # --- waiting ------------------------------------------------------------------------------

    async def _wait(self) -> RenderCut | None:
        """Wait until the page is ready or a limit is reached. Return the reached limit, or None."""
        cut: RenderCut | None = None
        try:
            async with asyncio.timeout(self._limits.total_s) as self._deadline:
                extending = asyncio.create_task(self._extend(self._deadline))
                try:
                    await self._wait_until_idle()
                finally:
                    extending.cancel()
                cut = self._limit_reached()
        except TimeoutError:
            self._check()
            cut = RenderCut.TIME
        # A page that has reached a limit is read in its current state, so its scripts are stopped.
        if cut is not None:
            self._connection.post("Emulation.setVirtualTimePolicy", self._session, policy="pause")
            self._connection.post("Runtime.terminateExecution", self._session)
        return cut

    async def _extend(self, deadline: asyncio.Timeout) -> None:
        """Extend the deadline while all open requests wait because of politeness delays."""
        left_s = self._limits.waiting_s
        while left_s > 0:
            await asyncio.sleep(_WAITED_S)
            until_s = deadline.when()
            if until_s is not None and not deadline.expired() and self.requests.only_waits:
                deadline.reschedule(until_s + _WAITED_S)
                left_s -= _WAITED_S

    async def _navigate(self) -> None:
        """Navigate to the page, after its process has accepted all commands before that."""
        # The process answers commands in order, so the last answer confirms all commands. If the
        # document arrived before that, its load event and the script for its start could be lost.
        await self._connection.call(
            "Emulation.setDeviceMetricsOverride",
            self._session,
            width=WIDTH,
            height=HEIGHT,
            deviceScaleFactor=1,
            mobile=False,
        )
        self._connection.post("Page.navigate", self._session, url=self._task.url)

    async def _wait_for_load(self) -> None:
        """Wait until the page has loaded, or until two checks in a row find it idle."""
        # A page that calls `window.stop`, or never closes a document that it writes, has no load
        # event.
        before: tuple[int, int] | None = None
        while self.requests.open or not self._loaded:
            if self._limit_reached():
                return
            self._changed.clear()
            try:
                async with asyncio.timeout(self._limits.idle_s):
                    await self._changed.wait()
            except TimeoutError:
                can_be_idle = self._committed and not self.requests.open
                activity = await self._activity() if can_be_idle else None
                if activity is not None and activity == before:
                    return
                before = activity

    async def _wait_until_idle(self) -> None:
        await self._navigate()
        await self._wait_for_load()
        await self._wait_until_quiet()
        for _ in range(self._limits.grants_max):
            before = await self._activity()
            if self._limit_reached():
                return
            self._granted = True
            # Virtual time does not advance while a request of the page is open.
            await self._connection.call(
                "Emulation.setVirtualTimePolicy",
                self._session,
                policy="pauseIfNetworkFetchesPending",
                budget=self._limits.grant_ms,
            )
            await self._wait_for(lambda: not self._granted and not self.requests.open)
            if await self._activity() == before:
                return
            await self._wait_until_quiet()

    async def _wait_for(self, ready: Callable[[], bool]) -> None:
        while not ready() and self._limit_reached() is None:
            self._changed.clear()
            await self._changed.wait()

    def _check(self) -> None:
        if self.requests.trouble is not None:
            raise self.requests.trouble
        if self._gone:
            raise BrowserGone
        if self._crashed:
            raise PageCrashed

    def _limit_reached(self) -> RenderCut | None:
        if len(self.requests.navigations) >= self._limits.navigations_max:
            return RenderCut.NAVIGATIONS
        if len(self._popups) > self._limits.popups_max:
            return RenderCut.POPUPS
        return RenderCut.REQUESTS if self.requests.paused > self._limits.paused_max else None

    async def _wait_until_quiet(self) -> None:
        """Wait until the document has not changed for `quiet_s`, at most `quiet_s_max`."""
        now = asyncio.get_running_loop().time
        ends = now() + self._limits.quiet_s_max
        before, since = await self._activity(), now()
        while (
            now() < ends and now() - since < self._limits.quiet_s and self._limit_reached() is None
        ):
            await asyncio.sleep(_LOOK_S)
            activity = await self._activity()
            if activity != before or self.requests.open:
                before, since = activity, now()

    async def _activity(self) -> tuple[int, int]:
        return int(await self._evaluate(CHANGES)), self.requests.paused

    # --- reading ------------------------------------------------------------------------------

    async def _evaluate(self, script: str) -> Any:
        if self._world is None:
            made = await self._connection.call(
                "Page.createIsolatedWorld", self._session, frameId=self._frame, worldName=WORLD
            )
            self._world = int(made["executionContextId"])
        said = await self._connection.call(
            "Runtime.evaluate",
            self._session,
            expression=script,
            contextId=self._world,
            returnByValue=True,
        )
        if "value" not in said["result"]:
            raise CommandFailed(str(said.get("exceptionDetails", said)))
        return said["result"]["value"]

    async def _read(self, cut: RenderCut | None) -> Rendered:
        screenshot = await self._screenshot() if self._task.screenshot else None
        script = html_of_page(self._limits.html_chars_max)
        try:
            said = await self._evaluate(script)
        except CommandFailed:  # stopping the page's scripts also stopped this script
            said = await self._evaluate(script)
        if said["cut"]:
            cut = cut or RenderCut.HTML
        requests = self.requests
        return Rendered(
            html=said["html"].encode("utf-8", "replace"),
            counts=requests.counts(),
            navigations=tuple(dict.fromkeys(requests.navigations)),
            redirected=self._left_early,
            popups=tuple(dict.fromkeys(requests.popups)),
            cut=cut,
            screenshot=screenshot,
        )

    async def _screenshot(self) -> bytes | None:
        """Take a screenshot of the top of the page.

        Return None if the page does not draw in time.
        """
        clip = {"x": 0, "y": 0, "width": WIDTH, "height": SCREENSHOT_HEIGHT, "scale": 1}
        with contextlib.suppress(TimeoutError, CommandFailed):
            async with asyncio.timeout(self._limits.reading_s / 2):
                taken = await self._connection.call(
                    "Page.captureScreenshot", self._session, format="webp", quality=80, clip=clip
                )
                return base64.b64decode(taken["data"])
        return None
