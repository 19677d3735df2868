"""Run one browser: pause all requests, assign targets to pages, watch the memory.

A target is a page, frame, worker or popup. Its requests are paused before its scripts run. Requests
that belong to no page are refused.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from orbweaver.rendering.launch import FENCE, BrowserProgram
from orbweaver.rendering.process import (
    BrowserGone,
    BrowserProcess,
    CommandFailed,
    Connection,
    ProcessMemory,
    is_running,
    kill,
)
from orbweaver.rendering.task import START_S, RenderLimits

_WATCH_S = 0.5
# If memory has grown by this much since the last check, the next check follows after 0.1 s.
_GROWN_BYTES, _WATCH_SOON_S = 64 * 1024 * 1024, 0.1
_CLOSE_S = 5.0
# If a browser exceeds its memory limit by this factor, all its processes are killed, not just one.
BEYOND = 1.5
_ALL = [{"urlPattern": "*"}]


class BrowserPage(Protocol):
    """A page of a browser. It receives the events of its browser context."""

    def attached(self, session: str, target: dict[str, Any]) -> None:
        """Prepare a new target of the page. The target is paused until all commands are sent."""

    def handle_event(self, session: str, method: str, event: dict[str, Any]) -> None: ...

    def browser_gone(self) -> None: ...


class Browser:
    """A running browser. If `is_worn` is True, it gets no further pages."""

    def __init__(self, process: BrowserProcess, memory_bytes_max: int) -> None:
        self._process = process
        self._memory_bytes_max = memory_bytes_max
        self._pages: dict[str, BrowserPage] = {}
        self._sessions: dict[str, BrowserPage] = {}
        self._connection: Connection | None = None
        self._watching: asyncio.Task[None] | None = None
        self._shared: frozenset[int] = frozenset()
        self.pages_taken = 0
        self.pages_open = 0
        self.is_worn = False
        self.strays = 0
        self.memory_bytes_highest = 0
        self.version = ""
        self.user_agent = ""

    @classmethod
    async def start(
        cls,
        program: BrowserProgram,
        limits: RenderLimits,
        *,
        parent: str | None = None,
        fence: Mapping[str, tuple[str, ...]] = FENCE,
    ) -> Browser:
        """Start a browser. Raises OSError, BrowserGone, CommandFailed, TimeoutError.

        `parent` is the folder for the browser's own folder, `fence` the flags that disable its
        network.
        """
        process = BrowserProcess.start(program, limits.process_bytes_max, parent, fence)
        browser = cls(process, limits.memory_bytes_max)
        try:
            async with asyncio.timeout(START_S):
                await browser._connect()
        except BaseException:
            await browser.end()
            raise
        return browser

    @property
    def folder(self) -> Path:
        return self._process.folder

    @property
    def connection(self) -> Connection:
        assert self._connection is not None  # noqa: S101 - set at the start
        return self._connection

    async def _connect(self) -> None:
        self._connection = await Connection.over(
            self._process.connection, self._on_event, self._on_end
        )
        said = await self.connection.call("Browser.getVersion")
        self.version, self.user_agent = str(said["product"]), str(said["userAgent"])
        await self.connection.call("Fetch.enable", patterns=_ALL)
        await self.connection.call(
            "Target.setAutoAttach", autoAttach=True, waitForDebuggerOnStart=True, flatten=True
        )
        self._watching = asyncio.create_task(self._watch())

    async def open(self, page: BrowserPage) -> str:
        """Open a blank page in its own browser context. Return the context's id.

        `page` receives the events of the context.
        """
        try:
            made = await self.connection.call("Target.createBrowserContext", disposeOnDetach=True)
        except BaseException:
            self.is_worn = True  # the browser may have created a context whose id is unknown
            raise
        context = str(made["browserContextId"])
        self._pages[context] = page
        try:
            self.connection.post(
                "Browser.setDownloadBehavior", behavior="deny", browserContextId=context
            )
            await self.connection.call(
                "Target.createTarget", url="about:blank", browserContextId=context
            )
            if not self._shared:
                self._shared = await asyncio.to_thread(self._process.shared)
        except BaseException:
            await self.close(context)
            raise
        return context

    def is_whole(self) -> bool:
        """Return True if no process that all pages share has ended since the start."""
        # The browser restarts such a process when it has ended, but requests during that time are
        # lost.
        whole = all(map(is_running, self._shared))
        self.is_worn = self.is_worn or not whole
        return whole

    async def close(self, context: str) -> None:
        page = self._pages.pop(context, None)
        self._sessions = {key: one for key, one in self._sessions.items() if one is not page}
        try:
            async with asyncio.timeout(_CLOSE_S):
                await self.connection.call("Target.disposeBrowserContext", browserContextId=context)
        except (BrowserGone, CommandFailed, TimeoutError):
            self.is_worn = True

    def fence(self, session: str) -> None:
        """Pause the requests of a target, and attach to all targets that it opens."""
        self.connection.post("Fetch.enable", session, patterns=_ALL)
        self.connection.post(
            "Target.setAutoAttach",
            session,
            autoAttach=True,
            waitForDebuggerOnStart=True,
            flatten=True,
        )

    def memory(self) -> list[ProcessMemory]:
        return self._process.memory()

    async def end(self) -> None:
        self.is_worn = True
        if self._watching is not None:
            self._watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watching
        if self._connection is not None:
            await self._connection.close()
        await self._process.end()

    def _on_event(self, session: str | None, method: str, event: dict[str, Any]) -> None:
        if method == "Target.attachedToTarget":
            self._on_attached(event["sessionId"], event["targetInfo"])
        elif session is None:
            if method == "Fetch.requestPaused":
                self._refuse_stray(None, event)
        elif (page := self._sessions.get(session)) is not None:
            page.handle_event(session, method, event)
        elif method == "Fetch.requestPaused":
            self._refuse_stray(session, event)

    def _on_attached(self, session: str, target: dict[str, Any]) -> None:
        self.fence(session)
        page = self._pages.get(target.get("browserContextId", ""))
        if page is not None:
            self._sessions[session] = page
            page.attached(session, target)
        self.connection.post("Runtime.runIfWaitingForDebugger", session)

    def _refuse_stray(self, session: str | None, event: dict[str, Any]) -> None:
        self.strays += 1
        number = event["requestId"]
        self.connection.post(
            "Fetch.failRequest", session, requestId=number, errorReason="BlockedByClient"
        )

    def _on_end(self) -> None:
        self.is_worn = True
        for page in self._pages.values():
            page.browser_gone()

    async def _watch(self) -> None:
        """Check the memory regularly.

        Above the limit, kill the page process with the most memory.
        """
        held = before = 0
        while True:
            grows = before and held - before >= _GROWN_BYTES
            await asyncio.sleep(_WATCH_SOON_S if grows else _WATCH_S)
            found = await asyncio.to_thread(self.memory)
            before, held = held, sum(one.pss_bytes for one in found)
            self.memory_bytes_highest = max(self.memory_bytes_highest, held)
            if held <= self._memory_bytes_max:
                continue
            self.is_worn = True
            pages = [one for one in found if one.renders]
            if held > BEYOND * self._memory_bytes_max or not pages:
                self._process.kill()
            else:
                kill(max(pages, key=lambda one: one.pss_bytes).pid)
