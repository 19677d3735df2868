"""Pictures of the console's screens for docs/console.md, with a crawl of the demo shop.

    python -m tests.screens

Both themes, as WebP of at most `BYTES_MAX`: docs/console/<screen>-<theme>.webp. An own store crawls
the shop twice, so that there are changes to show.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tests import browser
from tests.consoles import served
from tests.sites import child

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.browser import Tab

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "console"
DEFINITION = ROOT / "tests" / "sites" / "bookshop" / "crawl.toml"
PROGRAM = Path(sys.executable).with_name("orbweaver")
THEMES = ("light", "dark")
WIDTH, HEIGHT, BYTES_MAX = 1280, 800, 60_000
QUALITIES = (80, 65, 50, 35)


def orbweaver(folder: Path, *words: str) -> Any:
    done = subprocess.run(
        [PROGRAM, *words, "--json"], cwd=folder, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def crawled(folder: Path, shop: str) -> tuple[str, str]:
    definition = DEFINITION.read_text().replace("http://127.0.0.1:8000/", f"{shop}/")
    (folder / "crawl.toml").write_text(
        definition.replace(
            "[politeness]", '[dedup]\nwindow = "0s"\n\n[records]\nlinks = true\n\n[politeness]'
        )
    )
    words = ("start", "--config", "crawl.toml", "--wait")
    first, second = (str(orbweaver(folder, *words)["crawl"]) for _ in range(2))
    return first, second


def book_of(folder: Path, crawl: str) -> str:
    words = [str(PROGRAM), "pages", crawl, "--outcome", "fetched", "--json"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True)
    urls = [str(json.loads(line)["url"]) for line in done.stdout.splitlines()]
    return min(url for url in urls if "/books/" in url)


def screens(first: str, second: str, shop: str, book: str) -> Mapping[str, tuple[str, str]]:
    """Return screens by name: address, and a text that shows it is loaded."""
    host = quote(shop, safe="")
    return {
        "runs": ("", "1 more run"),
        "run": (f"run/{second}", "Latest URLs"),
        "new": ("new", "Follow links to"),
        "map": (f"map/{second}?at={host}", "Section"),
        "changes": (f"changes?before={first}&after={second}", "the content is the same"),
        "audit": (f"audit/{second}?since={first}", "did not run"),
        "rules": (f"rules/{second}?url={book}", "in_stock"),
        "explain": (f"explain?url={host}%2F&crawl={second}", "Timeline"),
        "host": (f"host?host={host}", "Crawls with seeds here"),
        "letters": ("letters", "no dead letters"),
        "schedules": ("schedules", "Last run"),
        "stack": ("stack", "Dollars by day"),
        "report": (f"report/{second}", "Kinds of URL"),
        "data": (f"data/{second}?table=items", "Page"),
        "query": ("query", "Saved"),
    }


async def taken(tab: Tab, path: Path) -> int:
    """Write a screenshot as WebP in the best quality that fits; return its bytes."""
    body = b""
    for quality in QUALITIES:
        told = await tab.call("Page.captureScreenshot", format="webp", quality=quality)
        body = base64.b64decode(told["data"])
        if len(body) <= BYTES_MAX:
            break
    await asyncio.to_thread(path.write_bytes, body)
    return len(body)


async def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    with (
        child.start("bookshop", "--books", "300") as shop,
        tempfile.TemporaryDirectory(prefix="bookshop-") as name,
    ):
        folder = Path(name)
        words = (str(PROGRAM), "console", "--no-open", "--workers", "2", "--listen", "127.0.0.1:0")
        async with served(words, folder, os.environ) as url, browser.opened() as tab:
            first, second = await asyncio.to_thread(crawled, folder, shop.url)
            book = await asyncio.to_thread(book_of, folder, second)
            toml = (folder / "crawl.toml").read_text()
            recurs = toml.replace("[dedup]", '[schedule]\ncron = "0 3 * * ? *"\n\n[dedup]')
            (folder / "nightly.toml").write_text(recurs)
            put = ("schedule", "put", "--config", "nightly.toml")
            await asyncio.to_thread(orbweaver, folder, *put)
            for crawl in (first, second):
                await asyncio.to_thread(orbweaver, folder, "export", "--crawl", crawl)
            await tab.look(WIDTH, HEIGHT)
            await tab.go(url)
            await tab.see("bookshop")
            for screen, (address, text) in screens(
                first, second, shop.url, quote(book, safe="")
            ).items():
                await tab.run(f"location.hash = '#/{address}'")
                await tab.see(text)
                if screen == "query":
                    await tab.click("Run")
                    await tab.see("Chart")
                for theme in THEMES:
                    await tab.look(WIDTH, HEIGHT, theme)
                    file = FOLDER / f"{screen}-{theme}.webp"
                    print(f"{file.relative_to(ROOT)}: {await taken(tab, file):,} bytes")


if __name__ == "__main__":
    asyncio.run(main())
