"""Opens pages with Playwright for bench/app_rendering.py, run by another Python.

    PYTHON playwright_pages.py BROWSER TABS OUT < URLS

Writes URLs with their HTML as JSON. It waits until the network is idle, as most users of Playwright
do.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path


async def pages_of(program: str, tabs: int, urls: list[str]) -> list[tuple[str, str]]:
    from playwright.async_api import async_playwright  # type: ignore[import-not-found]

    free = asyncio.Semaphore(tabs)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])

        async def one(url: str) -> tuple[str, str]:
            async with free:
                context = await browser.new_context()
                page = await context.new_page()
                await page.goto(url, wait_until="networkidle")
                html = await page.content()
                await context.close()
                return url, html

        found = await asyncio.gather(*map(one, urls))
        await browser.close()
    return list(found)


if __name__ == "__main__":
    _, browser, number, out = sys.argv
    made = asyncio.run(pages_of(browser, int(number), sys.stdin.read().split()))
    Path(out).write_text(json.dumps(made))
