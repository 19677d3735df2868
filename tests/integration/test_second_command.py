"""Second crawl command of a store, by the state of the earlier run.

docs/store.md has the table. Each cell has the number of requested pages and the exit code. `+`
means that the command continues the earlier run under the same id.
"""

from __future__ import annotations

import asyncio
import csv
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from orbweaver.cli import main
from orbweaver.cli.session import store_session
from orbweaver.cli.store import opened_store
from orbweaver.control.crawl_spec import CrawlSpec
from tests.sites import graph
from tests.sites.server import Answer

if TYPE_CHECKING:
    from tests.sites.graph import Graph
    from tests.sites.server import Asked

pytestmark = [pytest.mark.thorough, pytest.mark.slow]

STORE = Path(".orbweaver")
PAGES = ("/", "/1", "/2", "/3", "/4", "/5")
KEY = "X-Key: k"
CHANGES = {
    "same": [],
    "higher": ["--max-pages", "50"],
    "lower": ["--max-pages", "2"],
    "delay": ["--delay", "1ms"],
    "header": ["--header", KEY],
    "robots": ["--ignore-robots"],
    "include": ["--include", "/[123]$"],
    "scope": ["--scope", "domain"],
    "text": ["--text"],
    "bodies": ["--bodies", "all"],
    "format": ["--format", "csv", "--out", "elsewhere"],
}
# Before each of these states the site has six pages: the seed links to five others.
TABLE = """
            same  higher lower  delay  header robots include scope  text   bodies format
paused      6:0+  6:0    2:0    6:0+   6:0    6:0    4:0     6:0    6:0    6:0    6:0+
abandoned   6:0+  6:0    2:0    6:0+   6:0    6:0    4:0     6:0    6:0    6:0    6:0+
paused-at-3 3:0+  6:0+   2:0+   6:0+   6:0    6:0    4:0     6:0    6:0    6:0    6:0+
cancelled   6:0   6:0    2:0    6:0    6:0    6:0    4:0     6:0    6:0    6:0    6:0
limited     0:0   3:0    0:0    3:0    3:0    3:0    1:0     3:0    3:0    3:0    3:0
link-404    1:0   1:0    0:0    1:0    1:0    1:0    1:0     1:0    1:0    1:0    1:0
seed-404    1:8   1:8    1:8    1:8    1:8    1:8    1:8     1:8    1:8    1:8    1:8
seed-cured  6:0   6:0    2:0    6:0    6:0    6:0    4:0     6:0    6:0    6:0    6:0
link-401    1:0   1:0    0:0    1:0    1:0    1:0    1:0     1:0    1:0    1:0    1:0
seed-401    1:6   1:6    1:6    1:6    6:0    1:6    1:6     1:6    1:6    1:6    1:6
robots      0:6   0:6    0:6    0:6    0:6    6:0    0:6     0:6    0:6    0:6    0:6
list        0:0   0:0    0:0    0:0    0:0    0:0    0:0     0:0    0:0    0:0    0:0
list-at-3   0:0   3:0    0:0    3:0    3:0    3:0    3:0     3:0    3:0    3:0    3:0
empty       0:0   0:0    0:0    0:0    0:0    0:0    0:0     0:0    0:0    0:0    0:0
finished    0:0   0:0    0:0    0:0    0:0    0:0    0:0     0:0    0:0    0:0    0:0
"""


# These changes have the same effect in all states; `make test-long` runs their columns.
LONG = ("delay", "scope", "text", "bodies")


def cells() -> Iterator[Any]:
    head, *rows = (line.split() for line in TABLE.strip().splitlines())
    for state, *row in rows:
        for change, cell in zip(head, row, strict=True):
            marks = [pytest.mark.long] if change in LONG else []
            yield pytest.param(state, change, cell, marks=marks)


class Site:
    """Six pages with the faults of a state."""

    def __init__(self, state: str) -> None:
        self.state = state
        self.second = False

    def answer(self, path: str, asked: Asked) -> Answer:
        cured = self.second and self.state == "seed-cured"
        where, _, how = self.state.partition("-")
        bad = path == {"seed": "/", "link": "/1"}.get(where)
        if bad and how in ("404", "cured") and not cured:
            return Answer(status=404)
        if bad and how == "401" and asked.headers.get("X-Key") != "k":
            return Answer(status=401)
        return graph.page(path, PAGES[1:] if path == "/" else ())

    def scripts(self) -> dict[str, Callable[[Asked], Answer]]:
        answers: dict[str, Callable[[Asked], Answer]] = {
            path: partial(self.answer, path) for path in PAGES
        }
        if self.state == "robots":
            answers["/robots.txt"] = lambda _: Answer(
                body=b"User-agent: *\nDisallow: /\n", headers=(("Content-Type", "text/plain"),)
            )
        return answers


def pages_of(site: Graph) -> list[str]:
    return [path for path in site.log.paths() if path != "/robots.txt"]


def crawl(*words: str) -> int:
    fast = () if "--delay" in words else ("--delay", "0")
    return main.main(["crawl", "--workers", "1", "--format", "jsonl", *fast, *words])


def seed_list(url: str) -> tuple[str, ...]:
    """Write a table with the URLs of all pages; return the arguments that name it."""
    rows = [f"{path},{url}{path[1:]}" for path in PAGES]
    Path("pages.csv").write_text("\n".join(["path,link", *rows]))
    return "--seeds", "pages.csv", "--column", "link"


def ids() -> list[str]:
    async def read() -> list[str]:
        async with opened_store(STORE, os.environ) as ports:
            return [run.id for run in reversed(await store_session(ports).control.crawls())]

    return asyncio.run(read())


def unfinished(url: str, state: str) -> None:
    """Leave a run without a worker: running, paused or cancelled."""

    async def leave() -> None:
        async with opened_store(STORE, os.environ, writes=True) as ports:
            control = store_session(ports).control
            limit = 3 if state == "paused-at-3" else None
            run = await control.start(CrawlSpec(seeds=(url,), delay_ms=0, pages_max=limit))
            if state.startswith("paused"):
                await control.pause(run.id)
            if state == "cancelled":
                await control.cancel(run.id)

    asyncio.run(leave())


def exported(folder: Path) -> list[str]:
    (file,) = folder.glob("pages/csv/**/*.csv")
    with file.open(newline="") as rows:
        return sorted(urlsplit(row["url"]).path for row in csv.DictReader(rows))


@pytest.mark.parametrize(("state", "change", "cell"), [*cells()])
def test_second_command_requests_and_exit_code(
    state: str, change: str, cell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    misbehaving = Site(state)
    with graph.serve_in_background(misbehaving.scripts()) as site:
        url = f"{site.url}/"
        begin = seed_list(url) if state.startswith("list") else (url,)
        at_3 = ["--max-pages", "3"] if state in ("limited", "paused-at-3", "list-at-3") else []
        if state in ("paused", "paused-at-3", "abandoned", "cancelled"):
            unfinished(url, state)
        else:
            crawl(*begin, *at_3)
        if state == "empty":
            crawl(url)
        before, first = ids(), len(pages_of(site))
        misbehaving.second = True
        code = crawl(*begin, *(at_3 if change == "same" else CHANGES[change]))
        requests = len(pages_of(site)) - first
        same_run = "+" if ids() == before and requests else ""
        assert f"{requests}:{code}{same_run}" == cell
        if change == "format" and state in ("finished", "list", "empty"):
            assert exported(Path("elsewhere")) == sorted(PAGES)
