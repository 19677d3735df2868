"""Every number on the console's screens equals a command's, at a fixed time.

tests/console_numbers.py maps each number to a command, and gives the reason for each exception.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from orbweaver.app.store_ports import StorePorts
from orbweaver.model.settings import Settings
from tests import browser, console_output
from tests import console_numbers as numbers
from tests.integration.test_console import cli, cli_rows, console, type_toml
from tests.sites import graph

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.browser import Tab
    from tests.sites.graph import Graph

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(browser.installed() is None, reason="no Chromium is installed"),
]

PAGES, LOOKS_MAX = 40, 100
SLOW = """name = "slow"
seeds = ["{url}/0"]
[limits]
pages = 1500
bytes = 5000000
dollars = 0.25
duration = "90m"
[politeness]
delay = "200ms"
"""
NIGHTLY = 'name = "nightly"\nseeds = ["{url}/0"]\n[limits]\npages = 500\n'
RECURS = '[schedule]\ncron = "0 3 * * ? *"\n'


@pytest.fixture
def site() -> Iterator[Graph]:
    pages = {
        f"/{number}": graph.page(
            f"Page {number}",
            [*(f"/{link}" for link in range(3 * number + 1, 3 * number + 4)), f"/list?at={number}"],
            text=f"What page {number} has to say.",
        )
        for number in range(PAGES)
        if number % 17 != 5
    }
    pages |= {"/7": graph.redirect("/8"), "/list": graph.page("A list")}
    with graph.serve_in_background({**pages, "/robots.txt": graph.robots(RULES)}) as served:
        yield served


SHORT = ("--name", "short", "--delay", "0", "--window", "0s", "--max-pages", "4", "--wait")
RULES = "User-agent: *\nDisallow: /9\n"


class Numbers:
    """A browser, and commands."""

    def __init__(self, tab: Tab, folder: Path) -> None:
        self.tab = tab
        self.folder = folder
        self.wrong: list[str] = []

    async def says(self, *words: str) -> Any:
        return await asyncio.to_thread(cli, self.folder, *words, "--json")

    async def lists(self, *words: str, form: str = "--json") -> list[Any]:
        return await asyncio.to_thread(cli_rows, self.folder, *words, *form.split())

    async def check(self, screen: str, address: str, text: str, said: Any) -> None:
        """Open a screen and compare its numbers."""
        await self.tab.run(f"location.hash = '#/{address}'")
        await self.tab.see(text)
        await self.compare(screen, said)

    async def compare(self, screen: str, said: Any) -> None:
        self.wrong += await numbers.differences(self.tab, screen, said)


@pytest.mark.long
async def test_every_number_equals_a_commands(site: Graph, tmp_path: Path) -> None:
    async with console(tmp_path) as url, browser.opened() as tab:
        both = Numbers(tab, tmp_path)
        options = ("--name", "shop", "--delay", "0", "--window", "0s", "--links", "--wait")
        first = (await both.says("start", f"{site.url}/0", *options))["crawl"]
        site.scripts["/1"] = graph.page("One", ["/4", "/5"], text="It says something else now.")
        second = (await both.says("start", f"{site.url}/0", *options))["crawl"]
        for crawl in (first, second):
            await both.says("export", "--crawl", crawl)
        slow = await _paused(both, site)
        await tab.go(url)
        await tab.see("shop")
        await _runs(both, second, slow)
        await _tables(both, site, first, second)
        await _whole(both, site, [first, second, slow])
        await _asked(both, site, second)
        await _audited(both, first, second)
        await _spared(both, site)
        assert not both.wrong, "\n".join(both.wrong)
        assert tab.mistakes() == []


async def _paused(both: Numbers, site: Graph) -> str:
    (both.folder / "slow.toml").write_text(SLOW.format(url=site.url))
    slow: str = (await both.says("start", "--config", "slow.toml"))["crawl"]
    for _ in range(LOOKS_MAX):
        if (await both.says("status", slow))["done"] >= 3:
            break
    await both.says("pause", slow)
    before, status = None, await both.says("status", slow)
    while status["queue"]["in_work"] or status["done"] != before:
        before, status = status["done"], await both.says("status", slow)
    assert status["state"] == "paused"
    return slow


async def _runs(both: Numbers, second: str, slow: str) -> None:
    statuses = [await both.says("status", crawl) for crawl in (slow, second)]
    of_names = Counter({"slow": 1, "shop": 2})
    # The console reads running crawls more often than the list of runs.
    await both.tab.see(statuses[0]["left_text"])
    await both.check("runs", "", "shop", console_output.runs_of(statuses, of_names))
    for status in statuses:
        assert status["budgets"] or status["name"] == "shop"
        await both.tab.run(f"location.hash = '#/run/{status['crawl']}'")
        await both.tab.until(f"document.querySelector('h1')?.innerText === '{status['crawl']}'")
        await both.tab.see("Latest URLs")
        await both.tab.click("Show table")
        await both.tab.until("Boolean(document.querySelector('figure tbody tr'))")
        again = await both.says("status", status["crawl"])
        await both.compare("run", console_output.run_of(again))


async def _spared(both: Numbers, site: Graph) -> None:
    """Check the links that a run at its limit did not request."""
    short = await both.says("start", f"{site.url}/0", *SHORT)
    report = console_output.report_of(await both.says("report", short["crawl"]))
    assert report["spared"]
    await both.check("report", f"report/{short['crawl']}", "Links not requested", report)


async def _tables(both: Numbers, site: Graph, first: str, second: str) -> None:
    """Check a run's lists: requests, pages, sections, changes, explanation."""
    report = console_output.report_of(await both.says("report", second))
    await both.check("report", f"report/{second}", "Kinds of URL", report)
    pages = [await both.lists("pages", crawl) for crawl in (first, second)]
    await both.check("data", f"data/{second}", "Page 1", console_output.data_of(pages[1]))
    await both.tab.run(f"location.hash = '#/map/{second}'")
    await both.tab.see("Section")
    drawn = await both.tab.run("document.querySelectorAll('.areas li').length")
    assert drawn > 1
    await both.compare("map", console_output.sections_of(pages[1], site.url, drawn))
    changed = console_output.differences_of(*pages)
    await both.check(
        "changes", f"changes?before={first}&after={second}", "the content is the same", changed
    )
    asked = f"{site.url}/1"
    said = console_output.explained_of(await both.says("explain", asked, "--crawl", second))
    address = f"explain?url={quote(asked, safe='')}&crawl={second}"
    await both.check("explain", address, said["told_backlinks"], said)


async def _whole(both: Numbers, site: Graph, crawls: list[str]) -> None:
    """Check the screens without a run: hosts, dead letters, schedules, queues, days."""
    views = [await both.says("hosts", crawl) for crawl in reversed(crawls)]
    longest = max(view["delay_ms"] for view in views)
    host = {"views": views, "delay_ms": longest, "failures": views[0]["failures"]}
    await both.check("host", f"host?host={quote(site.url, safe='')}", "No answer", host)
    ports = StorePorts(Settings(), both.folder / ".orbweaver")
    for reason in ("failed 5 times", "failed 5 times", "odd"):
        await ports.queue.dead_letter(json.dumps({"url": f"{site.url}/{reason[0]}"}), reason)
    await ports.aclose()
    letters = console_output.letters_of(await both.lists("dlq", "list"))
    await both.check("letters", "letters", "odd", letters)
    (both.folder / "nightly.toml").write_text(NIGHTLY.format(url=site.url) + RECURS)
    await both.says("schedule", "put", "--config", "nightly.toml")
    listed = await both.lists("schedule", "list")
    for one in listed:
        one["first"], later = one["next"][0], one["next"][1:]
        one["later"] = ", ".join(map(numbers.moment, later))
    await both.check("schedules", "schedules", "nightly", {"schedules": listed})
    statuses = [await both.says("status", crawl) for crawl in crawls]
    day = datetime.fromtimestamp(time.time(), tz=UTC).date().isoformat()
    await both.check(
        "stack", "stack", "Dollars by day", console_output.days_of(statuses[-1], statuses, day)
    )


async def _audited(both: Numbers, first: str, second: str) -> None:
    """Check an audit of a run, and since the earlier run."""
    for since in ("", first):
        options = ("--since", since) if since else ()
        await both.lists("audit", second, *options, form="--format json --out audit.json")
        report = console_output.audit_of(json.loads((both.folder / "audit.json").read_text()))
        await both.check("audit", f"audit/{second}?since={since}", "found nothing", report)
        if not since:
            await both.tab.run("location.hash = '#/'")
            await both.tab.until("!document.querySelector('table.found')")


async def _asked(both: Numbers, site: Graph, second: str) -> None:
    tab = both.tab
    (both.folder / "new.toml").write_text(NIGHTLY.format(url=site.url))
    await tab.run("location.hash = '#/new'")
    await tab.see("Follow links to")
    await type_toml(tab, NIGHTLY.format(url=site.url))
    await tab.see("Estimate:")
    await both.compare("new", await both.says("estimate", "new.toml"))
    await tab.run("location.hash = '#/query'")
    await tab.see("Saved")
    await tab.fill("Saved", "outcomes")
    await tab.click("Run")
    await tab.until("Boolean(document.querySelector('[aria-label=Rows] tbody tr'))")
    found = await both.lists("query", "--saved", "outcomes", form="--format json")
    rows = [
        {"cells": " | ".join("none" if one is None else str(one) for one in row.values())}
        for row in found
    ]
    await both.compare("query", {"rows": rows, "number": len(rows)})
