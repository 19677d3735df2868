"""The console over a deployed stack, with the shell's credentials only."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from localstack import emulator, layout, stack
from tests import browser
from tests.consoles import served
from tests.e2e.stand import PROGRAM
from tests.sites import child

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.stand import Stand

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.long,
    pytest.mark.timeout(300),
    pytest.mark.skipif(browser.installed() is None, reason="no Chromium is installed"),
]


async def test_console_shows_stack_and_switches_workers(stand: Stand, tmp_path: Path) -> None:
    words = (str(PROGRAM), "console", "--no-open", "--listen", "127.0.0.1:0")
    with child.start("bookshop", "--books", "20") as shop:
        options = ("--name", "watched", "--delay", "0", "--wait")
        crawl = stand.orbweaver("start", f"{shop.url}/", *options, "--json").result["crawl"]
        async with served(words, tmp_path, stand.environment) as url, browser.opened() as tab:
            await tab.go(url)
            await tab.see(f"the stack on this machine, at {stand.emulator.endpoint_url}")
            await tab.click("watched")
            await tab.see("Latest URLs")
            for screen, text in (
                (f"host?host={quote(shop.url, safe='')}", "robots.txt"),
                (f"data/{crawl}", "page 1"),
                ("letters", "Refresh"),
                ("schedules", "No schedules."),
                ("query", "the stack has no exports yet"),
                ("stack", "Switch all off"),
            ):
                await tab.run(f"location.hash = '#/{screen}'")
                await tab.see(text)
            for deed, wanted in (("off", "Disabled"), ("on", "Enabled")):
                await tab.click("Switch all off…" if deed == "off" else "Switch on")
                if deed == "off":
                    await tab.click("Switch off")
                await tab.see({"off": "off: nothing is requested", "on": "Switch all off…"}[deed])
                told = stand.orbweaver("workers", "status", "--json").result
                assert set(told["sources"].values()) == {wanted}
            assert tab.mistakes() == []


@pytest.mark.slow
async def test_demo_prints_command_to_show_its_crawl(tmp_path: Path) -> None:
    port = emulator.free_port()
    words = [sys.executable, "-m", "tests.demo", "--books", "30", "--port", str(port)]
    ran = await asyncio.to_thread(
        subprocess.run, words, cwd=layout.ROOT, capture_output=True, text=True, check=True
    )
    again, look = ran.stdout.splitlines()[-1].partition("browser: ")[2].split(" && ")
    try:
        await asyncio.to_thread(subprocess.run, again.split(), cwd=layout.ROOT, check=True)
        given = [*look.split(), "--no-open", "--listen", "127.0.0.1:0"]
        async with served(given, layout.ROOT, os.environ) as url, browser.opened() as tab:
            await tab.go(url)
            await tab.click("demo")
            await tab.click("Pages")
            await tab.until("document.querySelectorAll('tbody tr').length === 100")
            assert tab.mistakes() == []
    finally:
        await asyncio.to_thread(stack.down, port)
        shutil.rmtree(layout.INSTANCES / str(port))
