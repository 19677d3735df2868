"""Browser processes: replaced, killed, reaped; none is left."""

# ruff: noqa: ASYNC110, ASYNC240 - processes and folders are looked at again and again

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from orbweaver.rendering import process
from orbweaver.rendering.process import (
    FOLDER_PREFIX,
    BrowserProcess,
    kill,
    remove_left_folders,
)
from orbweaver.rendering.renderer import Renderer
from orbweaver.rendering.task import (
    NotRendered,
    Rendered,
    RenderFailure,
    RenderLimits,
    RenderResult,
)
from tests.rendering.stage import (
    LINKS,
    NEEDS_BROWSER,
    PROGRAM,
    Site,
    links_into,
    links_of,
    page,
    rendered,
    scripted,
    task_of,
)

pytestmark = NEEDS_BROWSER

SHOW = links_into()
# Start of the test in seconds since boot.
_since_ticks = 0


@pytest.fixture(autouse=True)
def begun() -> None:
    """Record the processes that can belong to this test."""
    global _since_ticks  # noqa: PLW0603 - read by who lists them
    uptime_s = float(Path("/proc/uptime").read_text().split()[0])
    _since_ticks = int(uptime_s * os.sysconf("SC_CLK_TCK"))


def processes_of(folder: Path) -> dict[int, str]:
    """List the processes that name a folder, and zombie browsers of this process."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            command = (path / "cmdline").read_bytes()
            name, _, rest = (path / "stat").read_bytes().rpartition(b")")
        except OSError:
            continue
        stat = rest.split()
        # Other tests' browsers also leave some, which this process must reap.
        since = int(stat[19]) >= _since_ticks
        own = since and int(stat[1]) == os.getpid() and b"(chromium-headle" in name
        zombie = stat[0] == b"Z" and own
        if os.fsencode(folder) in command or zombie:
            found[int(path.name)] = stat[0].decode()
    return found


async def test_browser_is_replaced_after_page_limit(tmp_path: Path) -> None:
    limits = RenderLimits(pages_max=5, tabs=3)
    async with Renderer(PROGRAM, limits, parent=str(tmp_path)) as renderer:
        pages = [rendered(renderer, scripted(SHOW)) for _ in range(16)]
        assert {links_of(one) for one in await asyncio.gather(*pages)} == {LINKS}
        assert renderer.browsers_started == 4
        assert len(list(tmp_path.iterdir())) == 1
        assert processes_of(tmp_path)
    assert not processes_of(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "kills",
    [6, pytest.param(100, marks=[pytest.mark.long, pytest.mark.slow, pytest.mark.timeout(900)])],
)
async def test_browser_killed_at_random_gives_one_result_per_page(
    tmp_path: Path, kills: int
) -> None:
    chance = random.Random(7)
    limits = RenderLimits(tabs=3)
    results: list[RenderResult] = []
    whole = asyncio.Event()

    async def render(renderer: Renderer, html: str, site: Site) -> None:
        results.append(await renderer.render(task_of(html), site))
        if isinstance(results[-1], Rendered):
            whole.set()

    async def kill_now_and_then(renderer: Renderer) -> None:
        for _ in range(kills):
            await whole.wait()
            whole.clear()
            while (browser := renderer.browser) is None or browser.is_worn:
                await asyncio.sleep(0.01)
            await asyncio.sleep(chance.uniform(0, 0.4))
            processes = [one.pid for one in browser.memory()]
            if processes and chance.random() < 0.8:
                kill(chance.choice(processes))
            else:
                browser._process.kill()

    async with Renderer(PROGRAM, limits, parent=str(tmp_path)) as renderer:
        site = Site(delay_s=0.05)
        html = scripted(f"fetch('/a').then(() => {{ {SHOW} }})")
        killing = asyncio.create_task(kill_now_and_then(renderer))
        asked = 0
        while not killing.done():
            await asyncio.gather(*(render(renderer, html, site) for _ in range(6)))
            asked += 6
        await killing
        assert len(results) == asked
        for one in results:
            assert isinstance(one, NotRendered) or links_of(one) == LINKS
        assert links_of(await rendered(renderer, html, site)) == LINKS
    assert not processes_of(tmp_path)
    assert not list(tmp_path.iterdir())


async def test_slowly_dying_process_is_reaped_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_REAP_S", 0.0)
    async with Renderer(PROGRAM, RenderLimits(pages_max=1), parent=str(tmp_path)) as renderer:
        for _ in range(3):
            assert links_of(await rendered(renderer, scripted(SHOW))) == LINKS
        assert renderer.browsers_started == 3
    assert not processes_of(tmp_path)
    assert not list(tmp_path.iterdir())


async def test_cancelled_pages_leave_no_task_or_context(tmp_path: Path) -> None:
    async with Renderer(PROGRAM, parent=str(tmp_path)) as renderer:
        await rendered(renderer, page("x"))
        for turn in range(6):
            html = scripted("fetch('/never'); setInterval(() => fetch('/never'), 100)")
            task = asyncio.create_task(renderer.render(task_of(html), Site(delay_s=60)))
            await asyncio.sleep(0.04 * turn)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert links_of(await rendered(renderer, scripted(SHOW))) == LINKS
        assert renderer.browser is not None
        contexts = await renderer.browser.connection.call("Target.getBrowserContexts")
        assert not contexts["browserContextIds"]
    assert len(asyncio.all_tasks()) == 1


async def test_page_cancelled_during_open_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Renderer(PROGRAM, parent=str(tmp_path)) as renderer:
        looked, shared = asyncio.Event(), BrowserProcess.shared
        loop = asyncio.get_running_loop()

        def look(process: BrowserProcess) -> frozenset[int]:
            loop.call_soon_threadsafe(looked.set)
            return shared(process)

        monkeypatch.setattr(BrowserProcess, "shared", look)
        task = asyncio.create_task(renderer.render(task_of(page("x")), Site()))
        await looked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert renderer.browser is not None
        assert not renderer.browser.is_worn
        contexts = await renderer.browser.connection.call("Target.getBrowserContexts")
        assert not contexts["browserContextIds"]


PROGRAM_THAT_IS_KILLED = """
import asyncio, sys
from orbweaver.rendering.browser import Browser
from orbweaver.rendering.launch import BrowserProgram
from orbweaver.rendering.task import RenderLimits
async def main():
    program = BrowserProgram(path=sys.argv[1])
    browser = await Browser.start(program, RenderLimits(), parent=sys.argv[2])
    print("started", flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""


async def test_browser_ends_with_killed_program(tmp_path: Path) -> None:
    functions = Path(__file__).parents[2] / "functions"
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PROGRAM_THAT_IS_KILLED, PROGRAM, str(tmp_path)),
        env={"PYTHONPATH": str(functions), "PATH": os.environ["PATH"]},
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    assert await child.stdout.readline() == b"started\n"
    child.kill()
    await child.wait()
    async with asyncio.timeout(30):
        # Zombies have no command line, and another process must reap them.
        while any(state not in "ZX" for state in processes_of(tmp_path).values()):
            await asyncio.sleep(0.05)
    assert [one.name.startswith(FOLDER_PREFIX) for one in tmp_path.iterdir()] == [True]
    remove_left_folders(str(tmp_path))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("program", ["/bin/false", "/nowhere/chromium"])
async def test_browser_start_failure_is_returned_as_value(tmp_path: Path, program: str) -> None:
    async with Renderer(program, parent=str(tmp_path)) as renderer:
        for _ in range(5):
            result = await renderer.render(task_of(page("x")), Site())
            assert isinstance(result, NotRendered)
            assert result.reason is RenderFailure.START
            assert "does not start" in result.detail
    assert not list(tmp_path.iterdir())


async def test_page_waits_for_a_place_up_to_limit(tmp_path: Path) -> None:
    slow, limits = Site(delay_s=3.0), RenderLimits(tabs=1)
    held = page("<script src=/held.js></script>")
    async with Renderer(PROGRAM, limits, parent=str(tmp_path)) as renderer:
        first = asyncio.create_task(renderer.render(task_of(held), slow))
        while not slow.asked:
            await asyncio.sleep(0.01)
        late = await renderer.render(task_of(page("x"), wait_s=0.1), Site())
        assert isinstance(late, NotRendered)
        assert late.reason is RenderFailure.BUSY
        assert not first.done()
        assert isinstance(await first, Rendered)
        assert isinstance(await renderer.render(task_of(page("x"), wait_s=0.1), Site()), Rendered)


@pytest.mark.parametrize("wait_s", [None, 0.0])
async def test_lost_browser_is_restarted_if_time_allows(
    tmp_path: Path, wait_s: float | None
) -> None:
    async with Renderer(PROGRAM, parent=str(tmp_path)) as renderer:
        await renderer.render(task_of(page("x")), Site())
        site = Site(delay_s=0.5)
        loading = page("<script src=/held.js></script>")
        rendering = asyncio.create_task(renderer.render(task_of(loading, wait_s=wait_s), site))
        while not site.asked:
            await asyncio.sleep(0.01)
        browser = renderer.browser
        assert browser is not None
        os.killpg(browser._process.pid, signal.SIGKILL)
        result = await rendering
        assert isinstance(result, Rendered if wait_s is None else NotRendered)
