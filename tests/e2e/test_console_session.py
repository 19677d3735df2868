"""A whole console session over a deployed stack; each number equals a command's."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from tests import browser, console_numbers, console_output
from tests.console_output import statements_of
from tests.consoles import (
    BEGUN,
    READINGS_MAX,
    STATE,
    check_run,
    explanation,
    goes_on_without_delay,
    served,
)
from tests.e2e.stand import PROGRAM
from tests.sites import graph

if TYPE_CHECKING:
    from pathlib import Path

    from tests.browser import Tab
    from tests.e2e.stand import Stand
    from tests.sites.graph import Graph

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.long,
    pytest.mark.timeout(300),
    pytest.mark.skipif(browser.installed() is None, reason="no Chromium is installed"),
]

PAGES = 24
TOML = "document.querySelector('textarea.toml')"
ROWS = (
    "[...document.querySelectorAll('{within} tbody tr')].map((row) =>"
    " [...row.cells].slice(0, {cells}).map((cell) => cell.innerText))"
)


class Person:
    """A user with a browser and a terminal."""

    def __init__(self, stand: Stand, tab: Tab, site: Graph, folder: Path) -> None:
        self.stand = stand
        self.tab = tab
        self.site = site
        self.folder = folder

    def says(self, *words: str) -> Any:
        """Run a command; return the last JSON line of its output."""
        return self.stand.orbweaver(*words, "--json", folder=self.folder).result

    async def says_later(self, *words: str) -> Any:
        return await asyncio.to_thread(self.says, *words)

    async def goes_to(self, screen: str) -> None:
        await self.tab.run(f"location.hash = '#/{screen}'")

    async def types(self, toml: str) -> None:
        await self.tab.until(f"Boolean({TOML})")
        await self.tab.run(
            f"{{const field = {TOML}; field.value = {json.dumps(toml)};"
            " field.dispatchEvent(new Event('input', {bubbles: true}))}"
        )

    async def starts(self, toml: str, *, previews: bool = False) -> str:
        """Define a crawl, optionally preview it, and start it; return its id."""
        await self.goes_to("new")
        await self.tab.see("Follow links to")
        await self.types(toml)
        await self.tab.see("Estimate:")
        if previews:
            await self.tab.click("Preview")
            await self.tab.see("Page 0 <b>")
            rows = await self.tab.run(ROWS.format(within="", cells=2))
            wanted = [[f"{self.site.url}/{number}", "taken"] for number in (1, 2, 3)]
            assert rows == wanted
        await self.tab.click("Start")
        await self.tab.until("location.hash.startsWith('#/run/')")
        return str(await self.tab.run("decodeURIComponent(location.hash.split('/')[2])"))

    async def checks(self, crawl: str) -> None:
        await check_run(self.tab, lambda: self.says("status", crawl))


def site_of(price: str) -> dict[str, Any]:
    """Build pages that link to three others each; one page has a price."""
    pages = {
        f"/{number}": graph.page(
            f"Page {number} <b>",
            [f"/{link}" for link in range(3 * number + 1, 3 * number + 4)],
            text=f"This is what page {number} has to say, and no other page says it.",
        )
        for number in range(PAGES)
        if number % 11 != 5
    }
    return pages | {"/1": graph.page("Page 1 <b>", ["/4", "/5"], text=f"This book costs {price}.")}


async def test_console_session_matches_commands(stand: Stand, tmp_path: Path) -> None:
    words = (str(PROGRAM), "console", "--no-open", "--listen", "127.0.0.1:0", "--from", "out")
    with graph.serve_in_background(site_of("5 euro")) as site:
        async with served(words, tmp_path, stand.environment) as url, browser.opened() as tab:
            person = Person(stand, tab, site, tmp_path)
            await tab.go(url)
            await tab.see("Runs")
            toml = (
                f'name = "session"\nseeds = ["{site.url}/0"]\n[dedup]\nwindow = "0s"\n'
                '[politeness]\ndelay = "400ms"\n[records]\nbodies = "html"\ntext = true\n'
            )
            first = await _watched(person, toml)
            await _explained(person, first)
            await _tried(person, first)
            site.scripts.update(site_of("7 euro"))
            second = await person.starts(toml.replace("400ms", "0s"))
            await tab.until(f"{STATE}?.includes('finished')", 90)
            await person.checks(second)
            await _compared(person, first, second)
            await _reported(person, second)
            await _queried(person, second)
            await _cancelled(person, toml.replace("400ms", "60s"))
            assert tab.mistakes() == []


async def _watched(person: Person, toml: str) -> str:
    """Define, preview, start, watch, pause, edit and resume a crawl until its end."""
    tab = person.tab
    crawl = await person.starts(toml, previews=True)
    await tab.see("Time left:")
    # A message returned before its first page is visible only after a one-minute round.
    await tab.until(BEGUN)
    await tab.click("Pause")
    await tab.until(f"{STATE}?.includes('paused')")
    assert (await person.says_later("status", crawl))["state"] == "paused"
    await person.checks(crawl)
    await goes_on_without_delay(tab)
    await person.checks(crawl)
    return crawl


async def _explained(person: Person, crawl: str) -> None:
    for path in ("/1", "/5"):
        asked = f"{person.site.url}{path}"
        # Console and command read at different times, and the stack may still commit a message.
        found, expected = None, None
        for _ in range(READINGS_MAX):
            await person.goes_to(f"explain?url={quote(asked, safe='')}&crawl={crawl}")
            said = await person.says_later("explain", asked, "--crawl", crawl)
            found, expected = await explanation(person.tab, said), statements_of(said)
            if found == expected:
                break
        assert found == expected, f"{found}\n{expected}"


async def _tried(person: Person, crawl: str) -> None:
    tab = person.tab
    await person.goes_to(f"rules/{crawl}")
    await tab.see("Found on this page")
    rules = '[[items]]\nname = "pages"\nmatch = "/"\n[items.fields]\n'
    await person.types(f'{rules}heading = "title"\nnone = ".none"\n')
    await tab.until(
        "[...document.querySelectorAll('td')].some((one) => one.innerText.includes('Page 0 <b>'))"
    )
    await tab.click("Run on 50 pages")
    shares = "[...document.querySelectorAll('[aria-labelledby=coverage] td:last-child')]"
    await tab.until(f"{shares}.length === 2")
    assert await tab.run(f"{shares}.map((one) => one.innerText)") == ["100 %", "0 %"]


async def _compared(person: Person, first: str, second: str) -> None:
    tab, stand = person.tab, person.stand
    pages = []
    for crawl in (first, second):
        ran = await asyncio.to_thread(stand.orbweaver, "pages", crawl, "--json")
        pages.append({row["url"]: row for row in map(json.loads, ran.out.splitlines())})
    before, after = pages
    changed = {
        url
        for url, row in after.items()
        if row["outcome"] == "fetched" and before[url]["sha256"] != row["sha256"]
    }
    await person.goes_to(f"changes?before={first}&after={second}")
    await tab.see("the content is the same")
    assert changed == {f"{person.site.url}/1"}
    said = console_output.differences_of([*before.values()], [*after.values()])
    await console_numbers.check(tab, "changes", said)
    await tab.click("Compare")
    await tab.until("Boolean(document.querySelector('.diff ins'))")
    marked = "[...document.querySelectorAll('.diff del, .diff ins')].map((one) => one.innerText)"
    assert await tab.run(marked) == ["5", "7"]


async def _reported(person: Person, crawl: str) -> None:
    said = await person.says_later("report", crawl)
    await person.goes_to(f"report/{crawl}")
    await person.tab.see("Kinds of URL")
    await console_numbers.check(person.tab, "report", console_output.report_of(said))


async def _queried(person: Person, crawl: str) -> None:
    """Run a saved query over exports; its rows equal the command's."""
    tab = person.tab
    await person.says_later("export", "--crawl", crawl)
    await person.goes_to(f"query?crawl={crawl}")
    await tab.until("document.querySelector('textarea.sql')?.value.includes('WHERE crawl =')", 60)
    await tab.fill("Saved", "outcomes")
    await tab.click("Run")
    await tab.until("Boolean(document.querySelector('[aria-label=Rows] tbody tr'))", 60)
    shown = await tab.run(ROWS.format(within="[aria-label=Rows]", cells=4))
    words = ("query", "--saved", "outcomes", "--format", "json")
    ran = await asyncio.to_thread(person.stand.orbweaver, *words, folder=person.folder)
    names = ("crawl", "outcome", "reason", "pages")
    said = [json.loads(line) for line in ran.out.splitlines()]
    assert shown == [[str(row[name]) for name in names] for row in said]


async def _cancelled(person: Person, toml: str) -> None:
    """Cancel a long run; its counts stay."""
    tab = person.tab
    crawl = await person.starts(toml)
    await tab.see("Time left:")
    await tab.click("Cancel…")
    await tab.click("Cancel the run")
    await tab.until(f"{STATE}?.includes('finished')", 60)
    status = await person.says_later("status", crawl)
    assert (status["state"], status["stop"]) == ("finished", "cancelled")
    await person.checks(crawl)
