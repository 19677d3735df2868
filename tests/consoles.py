"""`orbweaver console` as a user sees it: a process, its address, its screens."""

from __future__ import annotations

import asyncio
import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from tests import browser
from tests.console_numbers import differences
from tests.console_output import run_of, sentence, statements_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from pathlib import Path

    from tests.browser import Tab

READINGS_MAX = 30
ENDED_S_MAX = 120.0
# Values of a running crawl, once a page is done.
BEGUN = "/: [1-9][0-9]* of /.test(document.body.innerText)"
STATE = "document.querySelector('h1 ~ .state')?.innerText"
ENDED = 143
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/#token=[\w-]{43}")


@asynccontextmanager
async def served(
    words: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> AsyncIterator[str]:
    """Run the command and yield the address that it prints; end it like a user."""
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


async def check_run(tab: Tab, status: Callable[[], Any]) -> None:
    """Compare the screen of a run with `orbweaver status --json`, once both are stable.

    tests/console_numbers.py compares all numbers.
    """
    await tab.click("Show table")
    wrong = await differences(tab, "run", run_of(await asyncio.to_thread(status)))
    for _ in range(READINGS_MAX):
        if not wrong:
            break
        await asyncio.sleep(1)
        wrong = await differences(tab, "run", run_of(await asyncio.to_thread(status)))
    assert not wrong, "\n".join(wrong)
    await tab.click("Show chart")


async def goes_on_without_delay(tab: Tab) -> None:
    """Remove the delay of a paused run with a preview, resume it, and wait for its end."""
    await tab.click("Edit…")
    await tab.fill("Delay per host", "0ms")
    await tab.click("Preview")
    await tab.until("Boolean(document.querySelector('dialog table'))")
    await tab.click("Apply")
    await tab.until("!document.querySelector('dialog')")
    await tab.click("Resume")
    await tab.until(f"{STATE}?.includes('finished')", ENDED_S_MAX)


async def check_explained(tab: Tab, said: Mapping[str, Any]) -> None:
    """Compare the statements that the console shows about a URL with the command's."""
    await tab.see(sentence(said["verdict"]))
    found = await tab.run(
        "[...document.querySelectorAll('.line li')].map((one) => [one.children[0].innerText,"
        " one.children[1].innerText])"
    )
    assert found == statements_of(said)
