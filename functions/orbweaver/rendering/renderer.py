"""Render pages concurrently, and replace browsers.

A browser is replaced after `RenderLimits.pages_max` pages, or if it exceeds its memory limit, does
not answer, or violates the protocol. The new browser gets the next pages. The old one ends when
its open pages are done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from orbweaver.rendering.browser import Browser
from orbweaver.rendering.launch import FENCE, BrowserProgram
from orbweaver.rendering.page_rendering import render_page
from orbweaver.rendering.paused_requests import SharedAssets
from orbweaver.rendering.process import BrowserGone, CommandFailed, reap_all, remove_left_folders
from orbweaver.rendering.task import (
    NotRendered,
    Rendered,
    RenderFailure,
    RenderLimits,
    RenderResult,
    RenderTask,
    ResourceLoader,
)

_STARTS_MAX = 3
# Time until killed processes have ended on a busy machine.
_CLOSE_S = 60.0


class Renderer:
    """Renders pages in a browser. `program` is its path, or a function that returns the program.

    `parent` is the folder for browsers' folders, `fence` the flags that disable the network.
    """

    def __init__(
        self,
        program: str | Callable[[], BrowserProgram],
        limits: RenderLimits | None = None,
        *,
        parent: str | None = None,
        fence: Mapping[str, tuple[str, ...]] = FENCE,
    ) -> None:
        self._program = program
        self._limits = limits or RenderLimits()
        self._parent = parent
        self._fence = fence
        self._assets = SharedAssets()
        self._tabs = asyncio.Semaphore(self._limits.tabs)
        self._starting = asyncio.Lock()
        self._browser: Browser | None = None
        self._starts_failed = 0
        self.browsers_started = 0
        self.memory_bytes_highest = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        async with self._starting:
            browser, self._browser = self._browser, None
            if browser is not None:
                await self._end(browser)
            await reap_all(_CLOSE_S)

    @property
    def browser(self) -> Browser | None:
        """The browser that gets the next page, unless it must be replaced."""
        return self._browser

    @property
    def folder(self) -> Path | None:
        return None if self._browser is None else self._browser.folder

    async def render(self, task: RenderTask, loader: ResourceLoader) -> RenderResult:
        """Render a page. Raises exceptions of the loader."""
        waiting = asyncio.timeout(task.wait_s)
        try:
            async with waiting:
                await self._tabs.acquire()
        except TimeoutError:
            return NotRendered(reason=RenderFailure.BUSY, detail="others are being rendered")
        now = asyncio.get_running_loop().time
        began_s = now()
        try:
            result = await self._render(task, loader, self._limits)
            gone = isinstance(result, NotRendered) and result.reason is RenderFailure.BROWSER_GONE
            # If the browser ended, this page is rendered once more, because another page may have
            # been the cause. Both attempts share one time limit, because this page may have been
            # the cause.
            left_s = self._limits.total_s - (now() - began_s)
            if gone and left_s > 0 and not _is_over(waiting):
                result = await self._render(task, loader, replace(self._limits, total_s=left_s))
        finally:
            self._tabs.release()
        return result

    async def _render(
        self, task: RenderTask, loader: ResourceLoader, limits: RenderLimits
    ) -> RenderResult:
        try:
            browser = await self._take()
        except (OSError, BrowserGone, CommandFailed, TimeoutError) as error:
            self._starts_failed += 1
            detail = f"the browser does not start: {error!r}"
            return NotRendered(reason=RenderFailure.START, detail=detail)
        if browser is None:
            return NotRendered(reason=RenderFailure.START, detail="the browser does not start")
        try:
            result = await render_page(browser, task, loader, self._assets, limits)
            if isinstance(result, Rendered) and not browser.is_whole():
                detail = "a process that pages share has ended"
                return NotRendered(
                    reason=RenderFailure.BROWSER_GONE, detail=detail, counts=result.counts
                )
            return result
        finally:
            browser.pages_open -= 1
            if browser is not self._browser and not browser.pages_open:
                await self._end(browser)

    async def _take(self) -> Browser | None:
        """Return the browser for one more page, or None after too many failed starts."""
        async with self._starting:
            browser = self._browser
            if browser is None or browser.is_worn or browser.pages_taken >= self._limits.pages_max:
                self._browser = None
                if browser is not None and not browser.pages_open:
                    await self._end(browser)
                if self._starts_failed >= _STARTS_MAX:
                    return None
                if not self.browsers_started:
                    await asyncio.to_thread(remove_left_folders, self._parent)
                browser = self._browser = await Browser.start(
                    await self._find_program(),
                    self._limits,
                    parent=self._parent,
                    fence=self._fence,
                )
                self.browsers_started += 1
                self._starts_failed = 0
            browser.pages_open += 1
            browser.pages_taken += 1
            return browser

    async def _find_program(self) -> BrowserProgram:
        program = self._program
        if isinstance(program, str):
            return BrowserProgram(path=program)
        return await asyncio.to_thread(program)

    async def _end(self, browser: Browser) -> None:
        high = max(self.memory_bytes_highest, browser.memory_bytes_highest)
        self.memory_bytes_highest = high
        await browser.end()


def _is_over(waiting: asyncio.Timeout) -> bool:
    until_s = waiting.when()
    return until_s is not None and asyncio.get_running_loop().time() >= until_s
