"""`orbweaver console` as a person has it: a process, its address, and what its screens show."""

from __future__ import annotations

import asyncio
import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from orbweaver.control.progress.spending import price
from tests import browser

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from pathlib import Path

    from tests.browser import Tab

READINGS_MAX = 30
ENDED = 130
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/#token=[\w-]{43}")


@asynccontextmanager
async def served(
    words: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> AsyncIterator[str]:
    """Run the command; the address that it prints. It is ended as a person does."""
    process = await asyncio.create_subprocess_exec(
        *words,
        cwd=folder,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        line = (await asyncio.wait_for(process.stdout.readline(), browser.WAIT_S)).decode().strip()
        assert ADDRESS.fullmatch(line), line or (await process.stderr.read()).decode()
        yield line
    finally:
        if process.returncode is None:
            process.terminate()
        ended = await process.wait()
    assert ended == ENDED


def shown_as(number: int) -> str:
    """Write a number as the console does."""
    return f"{number:,}"


async def check_figures(tab: Tab, status: Callable[[], Any]) -> None:
    """Compare a run's screen with what `orbweaver status --json` says, once neither changes."""
    said, wanted, found = await _compared(tab, status)
    for _ in range(READINGS_MAX):
        if wanted.items() <= found.items():
            break
        await asyncio.sleep(1)
        said, wanted, found = await _compared(tab, status)
    assert wanted.items() <= found.items()
    rows = await tab.run(
        "[...document.querySelectorAll('section[aria-labelledby=hosts] tbody tr')].map((row) =>"
        " [...row.cells].slice(0, 5).map((cell) => cell.innerText))"
    )
    counts = ("claimed", "done", "queued", "failed")
    hosts = [[host["host"], *(shown_as(host[name]) for name in counts)] for host in said["hosts"]]
    assert rows == hosts


async def _compared(
    tab: Tab, status: Callable[[], Any]
) -> tuple[Any, dict[str, str], dict[str, str]]:
    """Read what the command line says, how the screen should have it, and how it has it."""
    said = await asyncio.to_thread(status)
    outcomes = said["outcomes"]
    wanted = {
        "Found": shown_as(said["claimed"]),
        "Done": shown_as(said["done"]),
        "Pages": shown_as(outcomes["fetched"] + outcomes["unchanged"]),
        "Failed": shown_as(outcomes["failed"]),
    }
    found: dict[str, str] = await tab.run(
        "Object.fromEntries([...document.querySelectorAll('.figures > div')].map((one) =>"
        " [one.querySelector('dt').innerText, one.querySelector('dd').firstChild.textContent]))"
    )
    return said, wanted, found


async def check_outcomes(tab: Tab, said: Mapping[str, Any]) -> None:
    """Compare outcomes with their reasons, what is left, rate and dollars of a run's screen."""
    rows = await tab.run(
        "[...document.querySelectorAll('section[aria-labelledby=outcomes] tbody tr')].map((row) =>"
        " [row.className, ...[...row.cells].map((cell) => cell.innerText)])"
    )
    wanted: list[list[str]] = []
    for outcome, count in said["outcomes"].items():
        if count:
            reasons = said["reasons"][outcome]
            alone = f" {next(iter(reasons)).replace('_', ' ')}" if len(reasons) == 1 else ""
            wanted.append(["", f"{outcome}{alone}", shown_as(count)])
            if not alone:
                wanted += [
                    ["inner", one.replace("_", " "), shown_as(n)] for one, n in reasons.items()
                ]
    assert [row[:3] for row in rows] == wanted
    below = await tab.run(
        "Object.fromEntries([...document.querySelectorAll('.figures > div')].map((one) =>"
        " [one.querySelector('dt').innerText, one.querySelector('dd').innerText]))"
    )
    assert below["Found"].endswith(f"{shown_as(said['claimed'] - said['done'])} left")
    if said["state"] == "finished":  # until then a rate is of the moment at which one looks
        assert below["Pages a second"].startswith(f"{as_rate(said['pages_per_s'])}\n")
    assert below["Cost"].startswith(price(said["units_dollars"] or said["cost_dollars"] or 0.0))


def as_rate(value: float) -> str:
    """Write a rate as the console does: with as many digits as matter."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


async def check_explained(tab: Tab, said: Mapping[str, Any]) -> None:
    """Compare a URL's explanation with what `orbweaver explain --json` says."""
    await tab.see(said["verdict"])
    found = await tab.run(
        "[...document.querySelectorAll('.line li')].map((one) => [one.children[0].innerText,"
        " one.children[1].innerText])"
    )
    assert found == [[one["about"], one["words"]] for one in said["statements"]]
