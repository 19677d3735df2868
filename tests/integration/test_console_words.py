"""What the console's screens say in words: in a browser, over a store that stands still."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from tests import browser
from tests.unit.console.stage import RUN, TOKEN, opened

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from orbweaver.model.crawl import Crawl
    from tests.browser import Tab
    from tests.unit.console.stage import Stage

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(browser.installed() is None, reason="no Chromium is installed"),
]


@asynccontextmanager
async def watched(folder: Path, crawl: Crawl = RUN) -> AsyncIterator[tuple[Stage, Tab]]:
    """Have a store with a run, and a browser at the first screen of its console."""
    async with opened(folder) as stage, browser.opened() as tab:
        await stage.ports.crawls.create(crawl)
        await tab.go(f"{stage.url}#token={TOKEN}")
        await tab.see(crawl.name)
        yield stage, tab
        assert tab.mistakes() == []


async def test_a_legend_names_the_lines_that_are_drawn(tmp_path: Path) -> None:
    """What was found before the first look is not known: there is no line of it, nor a name."""
    names = "[...document.querySelectorAll('.legend li')].map((one) => one.className)"
    async with watched(tmp_path) as (stage, tab):
        await tab.run(f"location.hash = '#/run/{RUN.id}'")
        await tab.see("found is not known")
        assert await tab.run(names) == ["done"]
        stage.clock.at_ms += 10_000
        await tab.until("document.querySelector('path.found').getAttribute('d').includes('L')")
        assert await tab.run(names) == ["found", "done"]
