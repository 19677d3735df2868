"""The console in a browser, over a store that crawls a local site."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import PageRecord
from tests import browser
from tests.consoles import BEGUN, check_explained, check_run, served
from tests.sites import graph
from tests.sites.server import Answer
from tests.unit.console.stage import RUN, TOKEN, opened
from tests.unit.stage import NOW_MS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractAsyncContextManager

    from tests.browser import Tab
    from tests.sites.graph import Graph

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(browser.installed() is None, reason="no Chromium is installed"),
]

FUNCTIONS = Path(__file__).parents[2] / "functions"
# On a busy machine, effects that wait for a frame run late.
LATE_EFFECTS = """{
  const after = window.setTimeout;
  window.requestAnimationFrame = (act) => after(act, 1500);
  window.setTimeout = (act, ms) => after(act, ms && ms <= 150 ? 1500 : ms);
  true
}"""
COMMAND = "import sys; from orbweaver.cli.main import main; sys.exit(main())"
PAGES, REQUESTS_MAX = 60, 8
SIZES = ((1280, 800), (390, 844))


@pytest.fixture
def site() -> Iterator[Graph]:
    pages = {
        f"/{number}": graph.page(
            f"Page {number} <b>of</b> the shop",
            [f"/{link}" for link in range(3 * number + 1, 3 * number + 4)],
            text=f"This is what page {number} has to say, and no other page says it.",
        )
        for number in range(PAGES)
        if number % 17 != 5
    }
    robots = Answer(
        body=b"User-agent: *\nDisallow: /9\n", headers=(("Content-Type", "text/plain"),)
    )
    with graph.serve_in_background({**pages, "/robots.txt": robots}) as served:
        yield served


def words(*given: str) -> list[str]:
    return [sys.executable, "-c", COMMAND, *given]


def cli(folder: Path, *given: str) -> Any:
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{FUNCTIONS}:{FUNCTIONS.parent}"}
    done = subprocess.run(
        words(*given), cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def console(folder: Path) -> AbstractAsyncContextManager[str]:
    """Run the console command with its own worker; return the printed address."""
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{FUNCTIONS}:{FUNCTIONS.parent}"}
    given = words("console", "--no-open", "--workers", "1", "--listen", "127.0.0.1:0")
    return served(given, folder, environment)


async def test_crawl_is_watched_steered_and_explained(site: Graph, tmp_path: Path) -> None:
    async with console(tmp_path) as url, browser.opened() as tab:
        begun = await asyncio.to_thread(
            cli,
            tmp_path,
            "start",
            f"{site.url}/0",
            # So slow that even a busy machine pauses well before the later limit.
            *("--name", "shop", "--delay", "2s"),
            *("--bodies", "html", "--json"),
        )
        crawl = begun["crawl"]

        def status() -> Any:
            return cli(tmp_path, "status", crawl, "--json")

        await tab.go(url)
        await tab.see("shop")
        assert "token" not in await tab.run("location.href")
        asked = tab.requests()
        first = asked[: next(n for n, one in enumerate(asked, 1) if "/api/overview" in one)]
        assert len(first) <= REQUESTS_MAX, first
        await tab.click("shop")
        await tab.see("Time left:")
        # A message returned before its first page is visible only after a one-minute round.
        await tab.until(BEGUN)
        await tab.click("Pause")
        await tab.until("document.querySelector('h1 ~ .state')?.innerText.includes('paused')")
        await check_run(tab, status)
        await tab.click("Edit…")
        await tab.fill("Delay per host", "0ms")
        await tab.fill("Page limit", "40")
        await tab.click("Preview")
        said = await tab.until("document.querySelector('dialog table')?.innerText")
        assert ("40" in said, "2 s\t0 s" in said) == (True, True)
        assert cli(tmp_path, "status", crawl, "--json")["state"] == "paused"
        await tab.click("Apply")
        await tab.until("!document.querySelector('dialog')")
        await tab.click("Resume")
        await tab.until("document.querySelector('h1 ~ .state')?.innerText.includes('finished')")
        await check_run(tab, status)
        assert cli(tmp_path, "status", crawl, "--json")["stop"] == "max_pages"
        await _look_around(tab, site, crawl, tmp_path)
        # The browser logs the refused query.
        refused = "Failed to load resource: the server responded with a status of 400 (Bad Request)"
        assert tab.mistakes() == [refused]


TOML = "document.querySelector('textarea.toml')"


async def type_toml(tab: Tab, text: str) -> None:
    await tab.run(
        f"{{const field = {TOML}; field.value = {json.dumps(text)};"
        " field.dispatchEvent(new Event('input', {bubbles: true}))}"
    )


async def test_crawl_is_defined_previewed_and_started(site: Graph, tmp_path: Path) -> None:
    async with console(tmp_path) as url, browser.opened() as tab:
        await tab.go(url)
        await tab.click("New crawl")
        await tab.see("Follow links to")
        await tab.fill("Seeds", f"{site.url}/0")
        await tab.fill("Exclude URLs matching", "/7$")
        await tab.until(f"{TOML}.value.includes('exclude = [\"/7$\"]')")
        written = await tab.run(f"{TOML}.value")
        await type_toml(tab, f'{written}\n[politeness]\ndelay = "0s"\ndely = 5\n')
        problems = "document.querySelector('.problems')?.innerText"
        await tab.until(f"{problems}?.includes('did you mean politeness.delay?')")
        assert "line 11" in await tab.run(problems)
        await type_toml(tab, f'{written}\n[politeness]\ndelay = "0s"\n')
        await tab.see("Estimate:")
        fields = "[...document.querySelectorAll('.fields input')].map((one) => one.value)"
        assert "0s" in await tab.run(fields)
        await tab.click("Preview")
        await tab.see("Page 0 <b>of</b> the shop")
        rows = await tab.run(
            "[...document.querySelectorAll('tbody tr')].map((row) =>"
            " [...row.cells].slice(0, 2).map((cell) => cell.innerText))"
        )
        assert rows == [[f"{site.url}/{number}", "taken"] for number in (1, 2, 3)]
        old = "document.body.innerText.includes('preview again')"
        assert not await tab.run(old)
        await tab.fill("Page limit", "900")
        await tab.until(old)
        await tab.see("Estimate:")
        await tab.click("Preview")
        await tab.until(f"!{old}")
        await tab.click("Start")
        await tab.until("document.querySelector('h1 ~ .state')?.innerText.includes('finished')")
        status = cli(tmp_path, "status", "--json")
        assert status["outcomes"]["fetched"] > 10
        assert f"{site.url}/7" not in {row["url"] for row in pages_of(tmp_path, status["crawl"])}
        assert tab.mistakes() == []


def cli_rows(folder: Path, *given: str) -> list[Any]:
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{FUNCTIONS}:{FUNCTIONS.parent}"}
    done = subprocess.run(
        words(*given), cwd=folder, env=environment, capture_output=True, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def pages_of(folder: Path, crawl: str) -> list[Any]:
    return cli_rows(folder, "pages", crawl, "--json")


async def test_site_is_mapped_and_two_runs_compared(site: Graph, tmp_path: Path) -> None:
    options = ("--name", "shop", "--delay", "0", "--window", "0s", "--wait", "--json")
    async with console(tmp_path) as url, browser.opened() as tab:
        runs = []
        for text in ("costs 5 euro", "costs 7 euro"):
            site.scripts["/1"] = graph.page("One <b>", ["/4", "/5"], text=f"This book {text}.")
            begun = await asyncio.to_thread(cli, tmp_path, "start", f"{site.url}/0", *options)
            runs.append(begun["crawl"])
        before, after = runs
        await tab.go(url)
        await tab.click("shop")
        await tab.click("Map")
        await _see_areas(tab)
        await tab.click(after)
        await tab.click("changes since then")
        await tab.click("Compare")
        await tab.until("Boolean(document.querySelector('.diff ins'))")
        marked = (
            "[...document.querySelectorAll('.diff del, .diff ins')].map((one) => one.innerText)"
        )
        assert await tab.run(marked) == ["5", "7"]
        assert before in await tab.run("location.hash")
        assert tab.mistakes() == []


async def _see_areas(tab: Tab) -> None:
    """Check one host's sections: each has room for its label and a colour of its value."""
    await tab.see("smaller sections")
    areas = (
        "[...document.querySelectorAll('.areas li')].map((one) => [one.className,"
        " one.querySelector('span').innerText.split(' · ')[1],"
        " one.clientWidth > 60 && [...one.querySelectorAll('div, a, strong, span')]"
        ".every((part) => part.scrollWidth <= part.clientWidth)])"
    )
    for width, height in SIZES[::-1]:
        await tab.look(width, height)
        await tab.until(f"({areas}).every((one) => one[2])")
    found = await tab.run(areas)
    assert len(found) > 10
    assert all((colour == "heat-0") == (told == "0 % failed") for colour, told, _ in found), found
    assert "heat-0" in {colour for colour, _, _ in found}
    await tab.fill("Colour", "depth")
    await tab.see("from 10")
    # No page is that deep, so none has the colour of such depths.
    assert {colour for colour, _, _ in await tab.run(areas)} <= {"heat-0", "heat-1", "heat-2"}


async def test_rules_are_tried_on_stored_pages(site: Graph, tmp_path: Path) -> None:
    options = ("--name", "shop", "--delay", "0", "--wait", "--json")
    async with console(tmp_path) as url, browser.opened() as tab:
        await asyncio.to_thread(cli, tmp_path, "start", f"{site.url}/0", *options)
        await tab.go(url)
        await tab.click("shop")
        await tab.click("Try rules")
        await tab.see("Found on this page")
        rules = '[[items]]\nname = "pages"\nmatch = "/"\n[items.fields]\n'
        await type_toml(tab, f'{rules}heading = {{ css = "title", required = true }}\n')
        await tab.until(
            "[...document.querySelectorAll('td')].some((one) => one.innerText.includes('<b>of'))"
        )
        await type_toml(tab, f'{rules}heading = {{ css = "title[" }}\n')
        await tab.until("document.querySelector('.problems')?.innerText.includes('line 5')")
        await type_toml(tab, "# nothing yet\n")
        await tab.see("Add a table [[items]] to see items.")
        await type_toml(tab, f'{rules}heading = "title"\nnothing = ".nothing"\n')
        await tab.until("!document.querySelector('.problems')")
        await tab.click("Run on 50 pages")
        await tab.see("0 %")
        shares = "[...document.querySelectorAll('[aria-labelledby=coverage] td:last-child')]"
        assert await tab.run(f"{shares}.map((one) => one.innerText)") == ["100 %", "0 %"]
        assert tab.mistakes() == []


async def test_recurring_crawl_is_scheduled_and_removed(site: Graph, tmp_path: Path) -> None:
    async with console(tmp_path) as url, browser.opened() as tab:
        await tab.go(url)
        await tab.see("New crawl")
        await tab.run(LATE_EFFECTS)
        await tab.click("New crawl")
        await tab.see("Follow links to")
        definition = f'name = "nightly"\nseeds = ["{site.url}/0"]\n[schedule]\nevery = "6h"\n'
        await type_toml(tab, definition)
        await tab.click("Save schedule")
        await tab.see("every 6h")
        listed = cli(tmp_path, "schedule", "list", "--json")
        assert (listed["name"], listed["expression"]) == ("nightly", "rate(6 hours)")
        await tab.click("Remove…")
        await tab.click("Remove")
        await tab.see("No schedules.")
        assert tab.mistakes() == []


async def _look_around(tab: Tab, site: Graph, crawl: str, folder: Path) -> None:
    host = quote(site.url, safe="")
    explain = ("explain", f"{site.url}/1", "--crawl", crawl, "--json")
    # The slot of the run's last request can be in the future, and is shown until it is over.
    said = await asyncio.to_thread(cli, folder, *explain)
    while "can be requested from" in str(said):
        said = await asyncio.to_thread(cli, folder, *explain)
    await tab.run(f"location.hash = '#/explain?url={host}%2F1&crawl={crawl}'")
    await check_explained(tab, said)
    await tab.click("Show")
    await tab.until("Boolean(document.querySelector('iframe.stored'))")
    assert await tab.run("document.querySelector('iframe').sandbox.length") == 0
    assert await tab.run("document.querySelector('iframe').contentDocument") is None
    await tab.run(f"location.hash = '#/host?host={host}&url={host}%2F9'")
    await tab.see("line 2: Disallow: /9")
    assert "Disallow: /9" in await tab.run("document.querySelector('.decides').innerText")
    await tab.run(f"location.hash = '#/data/{crawl}'")
    await tab.see("Page 1 <b>of</b> the shop")
    rows = await tab.run("document.querySelectorAll('tbody tr').length")
    assert rows == cli(folder, "status", crawl, "--json")["done"]
    await tab.run(f"location.hash = '#/data/{crawl}?outcome=unchanged'")
    await tab.see("No pages match this filter.")
    await tab.run(f"location.hash = '#/data/{crawl}'")
    await _ask(tab, crawl, folder)


async def _ask(tab: Tab, crawl: str, folder: Path) -> None:
    """Run a saved and a typed query; the rows equal the command's."""
    await asyncio.to_thread(cli, folder, "export", "--crawl", crawl, "--json")
    await tab.click("Query with SQL")
    await tab.until("document.querySelector('textarea.sql')?.value.includes('WHERE crawl =')")
    await tab.fill("Saved", "outcomes")
    sql = await tab.run("document.querySelector('textarea.sql').value")
    assert sql.startswith("-- How the pages of each crawl ended")
    await tab.click("Run")
    await tab.until("Boolean(document.querySelector('[aria-label=Rows] tbody tr'))")
    shown = await tab.run(
        "[...document.querySelectorAll('[aria-label=Rows] tbody tr')].map((row) =>"
        " [...row.cells].slice(0, 4).map((cell) => cell.innerText))"
    )
    said = cli_rows(folder, "query", "--saved", "outcomes", "--format", "json")
    names = ("crawl", "outcome", "reason", "pages")
    assert shown == [[str(row[name]) for name in names] for row in said]
    assert await tab.run("document.querySelectorAll('.chart rect').length") == len(said)
    await tab.run(
        "{const field = document.querySelector('textarea.sql'); field.value = 'SELECT nothing';"
        " field.dispatchEvent(new Event('input', {bubbles: true}))}"
    )
    await tab.click("Run")
    await tab.see("Binder Error")
    sql = "document.querySelector('textarea.sql')"
    await tab.run(f"{sql}.value = 'SELECT outco'; {sql}.dispatchEvent(new Event('input'))")
    await tab.click("outcome", of=".suggested button")
    assert await tab.run(f"{sql}.value") == "SELECT outcome"
    # An error must not have rows of an earlier query below it.
    assert not await tab.run("Boolean(document.querySelector('[aria-label=Rows]'))")


HOSTILE = (
    "<img src=x onerror=hacked()>",
    "<script>hacked()</script>",
    '"><svg onload=hacked()>',
    "javascript:hacked()",
    "${hacked()}",
    "</title></table><iframe srcdoc='<script>parent.hacked()</script>'>",
    '{"type":"script","props":{"dangerouslySetInnerHTML":{"__html":"x"}}}',
    "\u202e\u2066<b>\x00\ufeff",
    "&lt;script&gt;hacked()&lt;/script&gt;",
    "<a href='javascript:hacked()'>click</a><style>*{display:none}</style>",
)


async def test_a_thousand_hostile_texts_are_shown_as_text(tmp_path: Path) -> None:
    async with opened(tmp_path) as stage, browser.opened() as tab:
        await stage.ports.crawls.create(RUN)
        records = [
            PageRecord(
                crawl=RUN.id,
                url=f"https://example.com/{number}?{quote(HOSTILE[number % 10])}",
                outcome=Outcome.FAILED if number % 3 else Outcome.FETCHED,
                reason=Reason.TIMEOUT if number % 3 else Reason.OK,
                fetched_at=NOW_MS - 1_000,
                depth=0,
                title=None if number % 3 else f"{number} {HOSTILE[number % 10]}",
                error=f"{number} {HOSTILE[number % 10]}",
            )
            for number in range(1_000)
        ]
        await stage.ports.pages.store(records)
        await tab.call(
            "Page.addScriptToEvaluateOnNewDocument",
            source="window.hacked = () => { window.was = 1 }",
        )
        await tab.go(f"{stage.url}#token={TOKEN}")
        await tab.see("Runs")
        await tab.run(f"location.hash = '#/data/{RUN.id}'")
        made, seen = "main :is(img, script, svg, iframe, style, object, embed, b)", 0
        for page in range(1, 11):
            await tab.see(f"page {page}")
            await tab.until("document.querySelectorAll('tbody tr').length === 100")
            assert await tab.run(f"document.querySelectorAll({json.dumps(made)}).length") == 0
            links = await tab.run("[...document.querySelectorAll('main a')].map((one) => one.href)")
            assert all(link.startswith(str(stage.url)) for link in links)
            seen += await tab.run("document.querySelectorAll('tbody tr').length")
            if page < 10:
                await tab.click("Next")
        assert seen == 1_000
        assert await tab.run("window.was") is None
        # The browser's own controls have images.
        asked = [one for one in tab.requests() if not one.startswith("data:")]
        assert [one for one in asked if not one.startswith(str(stage.url))] == []
        assert tab.mistakes() == []


@pytest.mark.skipif(not browser.AXE.is_file(), reason="`make setup` installs axe-core")
@pytest.mark.parametrize(
    "looks",
    [
        pytest.param(((SIZES[0], "light"), (SIZES[1], "dark")), id="wide light, narrow dark"),
        pytest.param(
            ((SIZES[0], "dark"), (SIZES[1], "light")),
            id="wide dark, narrow light",
            marks=pytest.mark.long,
        ),
    ],
)
async def test_screens_have_no_serious_accessibility_fault(
    site: Graph, tmp_path: Path, looks: tuple[tuple[tuple[int, int], str], ...]
) -> None:
    async with console(tmp_path) as url, browser.opened() as tab:
        begun = await asyncio.to_thread(
            cli,
            tmp_path,
            "start",
            f"{site.url}/0",
            *("--name", "shop", "--delay", "0", "--links", "--json"),
        )
        crawl, host = begun["crawl"], quote(site.url, safe="")
        (tmp_path / "nightly.toml").write_text(
            f'name = "nightly"\nseeds = ["{site.url}/0"]\n[schedule]\ncron = "0 3 * * ? *"\n'
        )
        await asyncio.to_thread(
            cli, tmp_path, "schedule", "put", "--config", "nightly.toml", "--json"
        )
        slow = await asyncio.to_thread(
            cli, tmp_path, "start", f"{site.url}/0", "--name", "slow", "--delay", "60s", "--json"
        )
        await tab.go(url)
        await tab.see("shop")
        await tab.run(f"location.hash = '#/run/{crawl}'")
        await tab.until("document.querySelector('h1 ~ .state')?.innerText.includes('finished')")
        await asyncio.to_thread(cli, tmp_path, "export", "--crawl", crawl, "--json")
        dialogs = {
            f"run/{slow['crawl']}": ("Edit…", "Cancel…"),
            "schedules": ("Remove…",),
        }
        screens = {
            "": "finished",
            f"run/{crawl}": "Outcomes",
            f"run/{slow['crawl']}": "Time left:",
            "query": "Saved",
            f"explain?url={host}%2F1&crawl={crawl}": "1 page links here",
            "explain": "why not",
            f"host?host={host}&url={host}%2F9": "line 2",
            "letters": "no dead letters",
            f"rules/{crawl}": "Found on this page",
            "new": "crawl.toml",
            "stack": "Dollars by day",
            "schedules": "nightly",
            f"data/{crawl}": "Page 1",
            f"report/{crawl}": "Kinds of URL",
            f"map/{crawl}?at={host}": "Section",
            f"changes?before={crawl}&after={crawl}": "the content is the same",
            f"audit/{crawl}": "did not run",
            f"audit/{slow['crawl']}": "is not exported",
        }
        found: list[str] = []
        for (width, height), theme in looks:
            await tab.look(width, height, theme)
            for screen, text in screens.items():
                await tab.run(f"location.hash = '#/{screen}'")
                await tab.see(text)
                if screen == "query":
                    await tab.click("Run")
                    await tab.until("Boolean(document.querySelector('.chart rect'))")
                where = f"{screen or 'runs'} {theme} {width}"
                found += await tab.faults(where)
                assert await tab.run("document.documentElement.scrollWidth") <= width, where
                for name in dialogs.get(screen, ()):
                    await tab.click(name)
                    await tab.until("Boolean(document.querySelector('dialog[open]'))")
                    found += await tab.faults(f"{where} {name}")
                    await tab.click("Close")
                    await tab.until("!document.querySelector('dialog')")
        assert found == []
