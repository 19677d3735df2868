"""Texts on the console's screens: in a browser, over an idle store."""

from __future__ import annotations

import re
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from orbweaver.model.crawl import State, Stop
from tests import browser
from tests.integration.test_console import type_toml
from tests.unit.console.stage import RUN, TOKEN, opened
from tests.unit.stage import NOW_MS, SITE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from orbweaver.model.crawl import Crawl
    from tests.browser import Tab
    from tests.unit.console.stage import Stage

# The last column of a run's hosts.
ASKED_NEXT = "section[aria-labelledby=hosts] tbody td:last-child"
pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(browser.installed() is None, reason="no Chromium is installed"),
]


@asynccontextmanager
async def watched(folder: Path, crawl: Crawl = RUN) -> AsyncIterator[tuple[Stage, Tab]]:
    async with opened(folder) as stage, browser.opened() as tab:
        await stage.ports.crawls.create(crawl)
        await tab.go(f"{stage.url}#token={TOKEN}")
        await tab.see(crawl.name)
        yield stage, tab
        assert tab.mistakes() == []


async def test_legend_names_only_drawn_lines(tmp_path: Path) -> None:
    names = "[...document.querySelectorAll('.legend li')].map((one) => one.className)"
    async with watched(tmp_path) as (stage, tab):
        await tab.run(f"location.hash = '#/run/{RUN.id}'")
        await tab.see("is missing until then")
        assert await tab.run(names) == ["done"]
        stage.clock.at_ms += 10_000
        await tab.until("document.querySelector('path.found').getAttribute('d').includes('L')")
        assert await tab.run(names) == ["found", "done"]


async def test_settings_are_shown_in_readable_units(tmp_path: Path) -> None:
    settings = (
        "Object.fromEntries([...document.querySelectorAll('section[aria-labelledby=settings] dt')]"
        ".map((one) => [one.innerText, one.nextElementSibling.innerText]))"
    )
    field = (
        "[...document.querySelectorAll('dialog label')].find((one) => one.innerText.includes"
        "('limits.duration'))?.querySelector('input').value"
    )
    crawl = replace(RUN, duration_max_s=7 * 86_400, delay_ms=1_500, exclude=("/a$", "/b$"))
    crawl = replace(crawl, pages_max=1_000_000)
    async with watched(tmp_path, crawl) as (_, tab):
        await tab.run(f"location.hash = '#/run/{RUN.id}'")
        await tab.see("Settings")
        told = await tab.run(settings)
        assert (told["Time limit"], told["Page limit"]) == ("7 d", "1,000,000")
        assert told["Delay per host"] == "1.5 s"
        assert told["Exclude URLs matching"] == "/a$\n/b$"
        await tab.click("Edit…")
        assert await tab.until(field) == "7d"
        await tab.fill("Time limit", "90m")
        await tab.click("Preview")
        said = await tab.until("document.querySelector('dialog table')?.innerText")
        assert said.splitlines()[-1:] == ["Time limit limits.duration\t7 d\t90 min"]


async def test_host_with_past_block_shows_its_time(tmp_path: Path) -> None:
    ended = replace(RUN, state=State.FINISHED, stop=Stop.FINISHED, finished_at_ms=NOW_MS)
    async with watched(tmp_path, ended) as (stage, tab):
        await stage.ports.hosts.block(SITE, NOW_MS + 1_000, 1, NOW_MS)
        stage.clock.at_ms += 10_000
        await tab.run(f"location.hash = '#/host?host={SITE}'")
        await tab.see("reset after 30 min without one")
        assert "in a row; Retry-After" not in await tab.run("document.body.innerText")
        stage.clock.at_ms += 30 * 60_000
        await tab.see("none recently")
        await tab.run(f"location.hash = '#/run/{RUN.id}'")
        await tab.until(f"document.querySelector('{ASKED_NEXT}')?.innerText.startsWith('none')")


async def test_paused_run_shows_no_current_request(tmp_path: Path) -> None:
    async with watched(tmp_path, replace(RUN, state=State.PAUSED)) as (_, tab):
        await tab.run(f"location.hash = '#/run/{RUN.id}'")
        await tab.until(f"document.querySelector('{ASKED_NEXT}')?.innerText === 'after resume'")


async def test_time_of_other_day_has_date_and_zone(tmp_path: Path) -> None:
    async with watched(tmp_path) as (stage, tab):
        await tab.run(f"location.hash = '#/run/{RUN.id}'")
        await tab.see("Settings")
        for zone, said in (
            ("UTC", "started 2026-11-21 08:59:00 UTC"),
            ("Asia/Kolkata", "started 2026-11-21 14:29:00 UTC+05:30"),
            ("America/St_Johns", "started 2026-11-21 05:29:00 UTC\N{MINUS SIGN}03:30"),
        ):
            await tab.call("Emulation.setTimezoneOverride", timezoneId=zone)
            stage.clock.at_ms += 10_000
            await tab.see(said)
        now = await tab.run("import('/lib.js').then((file) => file.moment(Date.now()))")
        assert re.fullmatch(r"\d\d:\d\d:\d\d", now)


async def test_sentence_with_utc_times_shows_local_times(tmp_path: Path) -> None:
    """The server writes times of an explanation in UTC."""
    async with watched(tmp_path) as (_, tab):
        await tab.call("Emulation.setTimezoneOverride", timezoneId="Asia/Kolkata")
        said = "import('/lib.js').then((file) => file.localTimes('on 2026-11-21 08:59:00 UTC'))"
        assert await tab.run(said) == "on 2026-11-21 14:29:00 UTC+05:30"


async def test_duration_has_its_two_largest_units(tmp_path: Path) -> None:
    told = {0: "0 s", 59.6: "1 min", 257: "4 min 17 s", 7_500: "2 h 5 min", 273_660: "3 d 4 h"}
    async with watched(tmp_path) as (_, tab):
        said = f"import('/lib.js').then((file) => {[*told]}.map(file.duration))"
        assert await tab.run(said) == [*told.values()]


@pytest.mark.parametrize("width", [320, 375, 768, 1280])
async def test_all_controls_fit_window(tmp_path: Path, width: int) -> None:
    outside = (
        "[...document.querySelectorAll('header *, button, a.button, input, select, textarea')]"
        ".filter((one) => !one.closest('.scroll, .skip') && (one.getBoundingClientRect().right >"
        " innerWidth + 1 || one.getBoundingClientRect().left < -1)).map((one) => one.outerHTML)"
    )
    async with watched(tmp_path) as (_, tab):
        await tab.look(width, 800)
        for screen, text in (
            ("", RUN.name),
            (f"run/{RUN.id}", "Settings"),
            ("new", "toml"),
        ):
            await tab.run(f"location.hash = '#/{screen}'")
            await tab.see(text)
            assert await tab.run(outside) == [], screen
            assert await tab.run("document.documentElement.scrollWidth") <= width, screen
        places = "[...document.querySelectorAll('nav a')].map((one) => one.innerText)"
        assert {"Runs", "Dead letters", "Query"} <= set(await tab.run(places))
        await tab.fill("Seeds", f"https://example.com/{'a/' * 200}")
        field = "document.querySelector('textarea.toml')"
        await tab.until(f"{field}.value.includes('a/a/a')")
        if width < 760:
            assert await tab.run(f"{field}.scrollWidth <= {field}.clientWidth")


async def test_draft_is_kept_until_started(tmp_path: Path) -> None:
    field = "document.querySelector('textarea.toml')?.value"
    async with watched(tmp_path) as (_, tab):
        await tab.click("New crawl")
        await tab.until("document.querySelector('textarea.toml')?.value.includes('seeds = []')")
        await tab.fill("Seeds", "https://example.com/")
        await tab.until(f"{field}.includes('example.com')")
        await tab.click("Runs")
        await tab.see(RUN.name)
        await tab.click("New crawl")
        await tab.until(f"{field}?.includes('example.com')")
        await type_toml(tab, "seeds = [")
        await tab.see("not valid TOML")
        await tab.call("Page.reload")
        await tab.until(f"{field} === 'seeds = ['")
        await tab.click("Clear")
        await tab.until("document.querySelector('textarea.toml')?.value.includes('seeds = []')")
        await tab.fill("Seeds", "https://example.com/")
        await tab.see("Estimate:")
        await tab.click("Start")
        await tab.see("Settings")
        await tab.click("New crawl")
        await tab.until("document.querySelector('textarea.toml')?.value.includes('seeds = []')")


async def test_mistyped_address_shows_message(tmp_path: Path) -> None:
    async with watched(tmp_path) as (_, tab):
        await tab.run("location.hash = '#/nothing/100%'")
        await tab.see("Page not found")
        await tab.call("Page.reload")
        await tab.see("Page not found")


async def test_address_of_restarted_console_opens_same_screen(tmp_path: Path) -> None:
    async with watched(tmp_path) as (stage, tab):
        await tab.click("Schedules")
        await tab.see("No schedules.")
        await tab.run("localStorage.setItem('orbweaver-console-token', 'of-an-earlier-start')")
        await tab.run(f"location.href = '{stage.url}#token={TOKEN}'")
        await tab.until("location.hash === '#/schedules'")
        await tab.see("No schedules.")


async def test_number_with_thousands_separator_is_accepted(tmp_path: Path) -> None:
    async with watched(tmp_path) as (_, tab):
        await tab.run("location.hash = '#/new'")
        await tab.until("document.querySelector('textarea.toml')?.value.includes('seeds = []')")
        await tab.fill("Page limit", "20,000")
        await tab.until("document.querySelector('textarea.toml').value.includes('pages = 20000')")
        await tab.fill("Page limit", "-1")
        await tab.see("-1 does not fit: give 1 to 100,000,000")
        await tab.run(f"location.hash = '#/run/{RUN.id}'")
        await tab.click("Edit…")
        await tab.fill("Page limit", "2,000")
        await tab.fill("Time limit", "")
        await tab.click("Preview")
        said = await tab.until("document.querySelector('dialog table')?.innerText")
        assert said.splitlines()[-1].startswith("Page limit limits.pages\t")
        assert said.endswith("\t2,000")
