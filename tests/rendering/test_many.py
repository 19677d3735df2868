"""A thousand pages in one process, some of them hostile, with a crawl's limits."""

# ruff: noqa: ASYNC240 - the folder of a browser is looked at

from __future__ import annotations

import asyncio
import os
import random
import shutil
import tempfile
from collections import Counter
from pathlib import Path

import pytest

from orbweaver.rendering.renderer import Renderer
from orbweaver.rendering.task import NotRendered, RenderLimits
from tests.rendering.stage import LINKS, NEEDS_BROWSER, PROGRAM, Site, links_of, scripted, task_of
from tests.rendering.test_hostile import FILES, GREEDY, HOSTILE, SHOW
from tests.rendering.test_processes import processes_of

pytestmark = [*NEEDS_BROWSER, pytest.mark.long, pytest.mark.slow, pytest.mark.timeout(1_200)]

PAGES, BAD = 1_000, 30
RESIDENT_BYTES, FOLDER_BYTES = 1_200_000_000, 400_000_000
FRAMES = (
    "for (let i = 0; i < 500; i += 1) { const one = document.createElement('iframe');"
    " one.srcdoc = '<p>frame'; document.body.append(one); }"
)


def descendants() -> set[int]:
    """List the descendant processes: all browsers."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            stat = (path / "stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            continue
        parents[int(path.name)] = int(stat[1])
    found, more = set(), {os.getpid()}
    while more:
        more = {pid for pid, parent in parents.items() if parent in more}
        found |= more
    return found


def bytes_of(pid: int | str) -> int:
    """Return a process's bytes, with its share of shared pages."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def all_bytes() -> int:
    return bytes_of("self") + sum(map(bytes_of, descendants()))


def bytes_below(folder: Path) -> int:
    """Sum the file sizes below a folder; files deleted meanwhile count zero."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue
    return total


async def test_a_thousand_pages_with_thirty_hostile_ones() -> None:
    hostile = [*(script for script, _ in HOSTILE.values()), *GREEDY.values(), FRAMES]
    bad = set(random.Random(3).sample(range(PAGES), BAD))
    scripts = {place: hostile[number % len(hostile)] for number, place in enumerate(sorted(bad))}
    folder = Path(tempfile.mkdtemp())
    most: Counter[str] = Counter()

    async def watch() -> None:
        while True:
            most["resident"] = max(most["resident"], await asyncio.to_thread(all_bytes))
            most["processes"] = max(most["processes"], len(descendants()))
            most["folder"] = max(most["folder"], await asyncio.to_thread(bytes_below, folder))
            await asyncio.sleep(0.5)

    try:
        async with Renderer(PROGRAM, RenderLimits(), parent=str(folder)) as renderer:
            watching, site = asyncio.create_task(watch()), Site(FILES)
            pages = [scripted(f"{SHOW} {scripts.get(place, '')}") for place in range(PAGES)]
            results = await asyncio.gather(*(renderer.render(task_of(one), site) for one in pages))
            watching.cancel()
        print({**most, "browsers": renderer.browsers_started})
        assert len(results) == PAGES
        lost = [
            place
            for place, one in enumerate(results)
            if place not in bad and (isinstance(one, NotRendered) or links_of(one) != LINKS)
        ]
        assert not lost, [results[place] for place in lost]
        assert most["resident"] <= RESIDENT_BYTES
        assert most["folder"] <= FOLDER_BYTES
        assert not processes_of(folder)
        assert not list(folder.iterdir())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
