"""Debian's Chromium, driven by the DevTools protocol over a WebSocket."""

# ruff: noqa: ASYNC110, ASYNC220, ASYNC240 - what a browser shows is looked at again and again

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

NAMES = ("chromium", "chromium-browser", "google-chrome", "chromium-headless-shell")
AXE = Path(__file__).parent / "console" / "node_modules" / "axe-core" / "axe.min.js"
WAIT_S = 120.0
LOOK_S = 0.05
# Chromium's error for a call to a page that is being left.
LEFT = "Inspected target navigated or closed"


def installed() -> str | None:
    return next(filter(None, map(shutil.which, NAMES)), None)


class PageLeft(Exception):
    """The page was left before it answered."""


class Tab:
    """A tab: its calls and events."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self.events: list[dict[str, Any]] = []
        self.task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for message in self._socket:
            told = json.loads(message.data)
            if (number := told.get("id")) is not None:
                self._waiting.pop(number).set_result(told)
            else:
                self.events.append(told)

    async def call(self, method: str, **given: Any) -> Any:
        number = next(self._numbers)
        reply = self._waiting[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": given})
        told = await asyncio.wait_for(reply, WAIT_S)
        if told.get("error", {}).get("message") == LEFT:
            raise PageLeft
        assert "error" not in told, told
        return told["result"]

    async def run(self, script: str) -> Any:
        """Return the value of an expression, which may be a promise."""
        told = await self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    async def until(self, script: str, wait_s: float = WAIT_S) -> Any:
        """Wait until an expression is true; return its value."""
        try:
            async with asyncio.timeout(wait_s):
                while True:
                    with contextlib.suppress(PageLeft):  # Repeated on the next page.
                        if found := await self.run(script):
                            return found
                    await asyncio.sleep(LOOK_S)
        except TimeoutError:
            text = await self.run("document.body?.innerText")
            raise AssertionError(f"{script} does not come true:\n{text}") from None

    async def go(self, url: str) -> None:
        await self.call("Page.navigate", url=url)

    async def see(self, text: str) -> None:
        await self.until(f"document.body?.innerText.includes({json.dumps(text)})")

    async def click(self, text: str, of: str = "button, a, summary") -> None:
        find = (
            f"[...document.querySelectorAll({json.dumps(of)})]"
            f".find((one) => one.innerText.trim() === {json.dumps(text)} && !one.disabled)"
        )
        await self.until(f"Boolean({find})")
        await self.run(f"{find}.click()")

    async def fill(self, label: str, text: str) -> None:
        find = (
            "[...document.querySelectorAll('label')].find((one) =>"
            f" one.innerText.trim().startsWith({json.dumps(label)}))?.querySelector"
            "('input, textarea, select')"
        )
        await self.until(f"Boolean({find})")
        await self.run(
            f"{{const field = {find}; field.value = {json.dumps(text)};"
            " field.dispatchEvent(new Event('input', {bubbles: true}));"
            " field.dispatchEvent(new Event('change', {bubbles: true}))}"
        )

    async def press(self, key: str, code: int = 0) -> None:
        text = {"Enter": "\r", " ": " "}.get(key, "")
        given = {"key": key, "code": key, "windowsVirtualKeyCode": code, "text": text}
        await self.call("Input.dispatchKeyEvent", type="keyDown", **given)
        await self.call("Input.dispatchKeyEvent", type="keyUp", key=key, code=key)

    async def look(self, width: int, height: int, theme: str = "light") -> None:
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        given = {"prefers-color-scheme": theme, "prefers-reduced-motion": "reduce"}
        features = [{"name": name, "value": value} for name, value in given.items()]
        await self.call("Emulation.setEmulatedMedia", features=features)

    async def picture(self, path: Path, *, whole: bool = True) -> None:
        told = await self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(told["data"]))

    async def faults(self, where: str) -> list[str]:
        """Return the serious accessibility faults that axe finds. `where` names the page."""
        if not await self.run("'axe' in window"):
            await self.run(AXE.read_text() + "; null")
        found = await self.run(
            "axe.run(document, {resultTypes: ['violations']}).then((found) => found.violations"
            ".filter((one) => ['serious', 'critical'].includes(one.impact)).map((one) =>"
            " `${one.id}: ${one.nodes.map((node) => node.html.slice(0, 120)).join(' | ')}`))"
        )
        return [f"{where}: {one}" for one in found]

    def requests(self) -> list[str]:
        """Return the URLs requested since the tab was opened."""
        return [
            event["params"]["request"]["url"]
            for event in self.events
            if event["method"] == "Network.requestWillBeSent"
        ]

    def mistakes(self) -> list[str]:
        """Return exceptions and logged errors of the page."""
        found = [
            json.dumps(event["params"]["exceptionDetails"])
            for event in self.events
            if event["method"] == "Runtime.exceptionThrown"
        ]
        logged = (event["params"]["entry"] for event in self.events if "Log." in event["method"])
        return found + [one["text"] for one in logged if one["level"] == "error"]


@asynccontextmanager
async def opened() -> AsyncIterator[Tab]:
    program = installed()
    assert program is not None
    with tempfile.TemporaryDirectory(prefix="orbweaver-", ignore_cleanup_errors=True) as folder:
        words = [program, "--headless=new", "--no-sandbox", "--remote-debugging-port=0"]
        words += [f"--user-data-dir={folder}", "--disable-gpu", "--no-first-run", "--mute-audio"]
        words += ["--disable-background-networking", "--disable-component-update", "about:blank"]
        process = subprocess.Popen(
            words,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, "HOME": folder},
        )
        try:
            async with aiohttp.ClientSession() as session:
                address = await _address(Path(folder) / "DevToolsActivePort", session)
                async with session.ws_connect(address, max_msg_size=0) as socket:
                    tab = Tab(socket)
                    for domain in ("Page", "Runtime", "Network", "Log"):
                        await tab.call(f"{domain}.enable")
                    yield tab
                    tab.task.cancel()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


async def _address(file: Path, session: aiohttp.ClientSession) -> str:
    async with asyncio.timeout(WAIT_S):
        while not (file.is_file() and file.read_text().count("\n")):
            await asyncio.sleep(LOOK_S)
        port = int(file.read_text().splitlines()[0])
        while True:
            async with session.get(f"http://127.0.0.1:{port}/json/list") as reply:
                pages = [one for one in await reply.json() if one["type"] == "page"]
            if pages:
                return str(pages[0]["webSocketDebuggerUrl"])
            await asyncio.sleep(LOOK_S)
