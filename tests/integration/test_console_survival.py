"""The console over hours, during failures, with two users, and by keyboard only."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from orbweaver.console.runs import CrawlRead
from orbweaver.model.errors import Transient
from tests import browser
from tests.unit.console.stage import RUN, TOKEN, opened

if TYPE_CHECKING:
    from pathlib import Path

    from tests.browser import Tab
    from tests.unit.console.stage import Stage

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(browser.installed() is None, reason="no Chromium is installed"),
]

HEAP_BYTES_MAX = 50_000_000
# A poll every two seconds for an hour. The number of nodes after some minutes is the baseline.
POLLS, EARLY, POLL_MS = 1_800, 300, 2_000
HOUR_S_MAX = 240
# Speed-up of the browser's clock and timers.
FASTER = 1_000
HURRY = (
    "{ const later = window.setTimeout; window.setTimeout = (act, ms, ...given) =>"
    f" later(act, (ms ?? 0) / {FASTER}, ...given);"
    f" const now = Date.now, began = now(); Date.now = () => began + (now() - began) * {FASTER}; }}"
)
STATE = "document.querySelector('h1 ~ .state')?.innerText"
TAB, ENTER, ESCAPE = ("Tab", 9), ("Enter", 13), ("Escape", 27)
TABS_MAX = 60


async def come(tab: Tab, stage: Stage, screen: str) -> None:
    await tab.go(f"{stage.url}#token={TOKEN}")
    await tab.see("Runs")
    await tab.run(f"location.hash = '#/{screen}'")


async def weighed(tab: Tab) -> tuple[int, int]:
    """Return heap bytes and node count after garbage collection."""
    await tab.call("HeapProfiler.collectGarbage")
    heap = await tab.call("Runtime.getHeapUsage")
    nodes = await tab.call("Memory.getDOMCounters")
    return int(heap["usedSize"]), int(nodes["nodes"])


@pytest.mark.long
@pytest.mark.timeout(400)
async def test_heap_stays_small_after_an_hour_of_watching(tmp_path: Path) -> None:
    async with opened(tmp_path) as stage, browser.opened() as tab:
        await stage.begin("/", "/a", "/b")
        look = stage.actions.runs.watching._look
        read = await look(RUN.id)
        polls, early, hour = 0, asyncio.Event(), asyncio.Event()

        async def grown(_crawl: str) -> CrawlRead:
            nonlocal polls
            polls += 1
            stage.clock.at_ms += POLL_MS
            if polls >= EARLY:
                early.set()
            if polls >= POLLS:
                hour.set()
            outcomes = {**read.shown["outcomes"], "fetched": 20 * polls, "failed": polls}
            counts = {"claimed": 50 * polls, "done": 21 * polls, "outcomes": outcomes}
            return replace(read, shown={**read.shown, **counts, "at_ms": stage.clock.at_ms})

        stage.actions.runs.watching._look = grown
        stage.actions.runs.watching._poll_ms = 0  # Requests drive the clock.
        await tab.call("Network.disable")  # Its events for 1,800 requests are unused.
        await tab.call("Page.addScriptToEvaluateOnNewDocument", source=HURRY)
        await come(tab, stage, f"run/{RUN.id}")
        await asyncio.wait_for(early.wait(), HOUR_S_MAX)
        _, nodes_early = await weighed(tab)
        await asyncio.wait_for(hour.wait(), HOUR_S_MAX)
        heap, nodes = await weighed(tab)
        assert heap <= HEAP_BYTES_MAX
        assert nodes <= 2 * nodes_early
        assert await tab.run("document.querySelectorAll('.figures dd').length") > 0
        assert tab.mistakes() == []


@pytest.mark.parametrize("why", ["the token has expired: sign in again", "no route to host"])
async def test_unreachable_stack_is_reported_until_it_returns(why: str, tmp_path: Path) -> None:
    async with opened(tmp_path) as stage, browser.opened() as tab:
        await stage.begin("/", "/a")
        await come(tab, stage, f"run/{RUN.id}")
        await tab.see("Outcomes")
        look = stage.actions.runs.watching._look

        async def lost(_crawl: str) -> CrawlRead:
            raise Transient(why)

        stage.actions.runs.watching._look = lost
        stage.actions.runs.watching.forget(RUN.id)
        await tab.see(why)
        await tab.see("Data from")
        assert await tab.run("document.querySelectorAll('.figures dd').length") > 0
        stage.actions.runs.watching._look = look
        await tab.until("!document.querySelector('[role=alert]')")
        await tab.click("Pause")
        await tab.until(f"{STATE}?.includes('paused')")


async def test_restarted_console_reports_its_new_address(tmp_path: Path) -> None:
    async with opened(tmp_path) as stage, browser.opened() as tab:
        await stage.begin("/")
        await tab.go(f"{stage.url}#token={'a' * len(TOKEN)}")
        await tab.see("Open the address that orbweaver console printed")
        asked = len([one for one in tab.requests() if "/api/" in one])
        await come(tab, stage, "")
        await tab.see(RUN.name)
        assert asked == 1


async def test_two_browsers_steer_one_run(tmp_path: Path) -> None:
    async with opened(tmp_path) as stage, browser.opened() as one, browser.opened() as other:
        await stage.begin("/")
        for tab in (one, other):
            await come(tab, stage, f"run/{RUN.id}")
            await tab.click("Edit…")
        await one.fill("Page limit", "77")
        await other.fill("Delay per host", "7s")
        for tab in (one, other):
            await tab.click("Preview")
            await tab.until("Boolean(document.querySelector('dialog table'))")
        await asyncio.gather(one.click("Apply"), other.click("Apply"))
        for tab in (one, other):
            await tab.until("!document.querySelector('dialog')")
        stage.clock.at_ms += POLL_MS  # A reading that began before an edit may be kept until now.
        settings = (await stage.get(f"/console/crawls/{RUN.id}"))["settings"]
        assert (settings["limits.pages"], settings["politeness.delay"]) == (77, "7000ms")
        await asyncio.gather(one.click("Pause"), other.click("Pause"))
        for tab in (one, other):
            await tab.until(f"{STATE}?.includes('paused')")
            assert await tab.run("document.querySelector('[role=alert]')?.innerText") is None
        await one.click("Resume")
        stage.clock.at_ms += POLL_MS
        await other.until(f"{STATE}?.includes('running')")
        assert one.mistakes() == other.mistakes() == []


async def reach(tab: Tab, label: str) -> None:
    """Press Tab until the control with this name has the focus."""
    seen: list[Any] = []
    for _ in range(TABS_MAX):
        name = await tab.run(
            "(document.activeElement.getAttribute('aria-label') ?? document.activeElement.innerText"
            " ?? '').trim()"
        )
        if name == label:
            return
        seen.append(name)
        await tab.press(*TAB)
    raise AssertionError(f"{label} is not reached by Tab: {seen}")


async def focused(tab: Tab) -> Any:
    return await tab.run("document.activeElement.innerText")


async def test_run_is_steered_by_keyboard_alone(tmp_path: Path) -> None:
    async with opened(tmp_path) as stage, browser.opened() as tab:
        await stage.begin("/")
        await come(tab, stage, "")
        await reach(tab, RUN.name)
        await tab.press(*ENTER)
        await reach(tab, "Pause")
        await tab.press(*ENTER)
        await tab.until(f"{STATE}?.includes('paused')")
        assert await focused(tab) == "Resume"
        await tab.press(*ENTER)
        await tab.until(f"{STATE}?.includes('running')")
        assert await focused(tab) == "Pause"
        await reach(tab, "Edit…")
        await tab.press(*ENTER)
        await tab.until("Boolean(document.querySelector('dialog[open] form'))")
        await tab.press(*ESCAPE)
        await tab.until("!document.querySelector('dialog')")
        assert await focused(tab) == "Edit…"
        await reach(tab, "Cancel…")
        await tab.press(*ENTER)
        await tab.until("Boolean(document.querySelector('dialog[open]'))")
        await reach(tab, "Cancel the run")
        await tab.press(*ENTER)
        await tab.until(f"!{STATE}?.includes('running')")
        assert tab.mistakes() == []


async def test_every_control_has_name_and_is_reached_by_tab(tmp_path: Path) -> None:
    async with opened(tmp_path) as stage, browser.opened() as tab:
        await stage.begin("/")
        await come(tab, stage, "")
        screens = ("", f"run/{RUN.id}", "new", "explain", "host", "letters", "schedules", "stack")
        for screen in (
            *screens,
            "query",
            *(f"{one}/{RUN.id}" for one in ("data", "map", "rules", "report")),
        ):
            await tab.run(f"location.hash = '#/{screen}'")
            await tab.until("document.activeElement.tagName === 'H1'")
            await tab.until("!document.querySelector('main').innerText.includes('Loading…')")
            await tab.run("document.body.tabIndex = -1, document.body.focus()")
            wanted = await tab.run(
                "[...document.querySelectorAll('a[href], button, input, select, textarea, summary,"
                ' [tabindex="0"]\')].filter((one) => !one.disabled && one.checkVisibility()).length'
            )
            names: list[str] = []
            for _ in range(wanted):
                await tab.press(*TAB)
                names.append(
                    await tab.run(
                        "(() => { const one = document.activeElement; return one === document.body"
                        " ? '' : [one.getAttribute('aria-label'), one.innerText, one.title,"
                        " ...[...(one.labels ?? [])].map((label) => label.innerText),"
                        " document.getElementById(one.getAttribute('aria-labelledby'))?.innerText]"
                        ".filter(Boolean).join(' ') })()"
                    )
                )
            assert all(names), (screen, json.dumps(names))
