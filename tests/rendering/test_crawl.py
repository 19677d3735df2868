"""Command-line crawl of a script-only site on a store."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from orbweaver.cli import main
from tests.rendering.stage import NEEDS_BROWSER
from tests.sites import graph
from tests.sites.graph import Graph
from tests.sites.scripted import application

pytestmark = NEEDS_BROWSER

PAGES = 12


@pytest.fixture
def site() -> Iterator[Graph]:
    with graph.serve_in_background(application(PAGES)) as served:
        yield served


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    return tmp_path


def crawled(site: Graph, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    line = ["crawl", f"{site.url}/page/0", f"{site.url}/plain", "--format", "jsonl", "--json"]
    assert main.main([*line, *options]) == 0
    done: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return done


def records(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for path in folder.glob("out/*/pages/**/*.jsonl.gz"):
        found += map(json.loads, gzip.decompress(path.read_bytes()).splitlines())
    return found


def test_script_pages_are_rendered(
    site: Graph, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("--render", "auto", "--screenshot")
    done = crawled(site, capsys, *asked, "--delay", "0", "--workers", "1")
    assert done["outcomes"]["fetched"] == PAGES + 1
    assert (done["rendered"], done["needs_rendering"]) == (PAGES, 0)
    paths = site.log.paths()
    assert sorted(path for path in paths if path.startswith("/data")) == sorted(
        f"/data/page/{place}" for place in range(PAGES)
    )
    assert paths.count("/app.js") == 1
    assert not [path for path in paths if path.startswith(("/private", "/buy", "/favicon"))]
    titles = {one["title"] for one in records(folder)}
    assert titles == {"Plain", *(f"Page {place}" for place in range(PAGES))}
    assert sum(bool(one.get("rendered")) for one in records(folder)) == PAGES
    assert main.main(["explain", f"{site.url}/page/3"]) == 0
    told = capsys.readouterr().out
    assert "its scripts made" in told
    assert "it is empty without them" in told
    picture = folder / "page.webp"
    assert main.main(["page", f"{site.url}/page/3", "--screenshot", str(picture)]) == 0
    assert picture.read_bytes()[8:12] == b"WEBP"
    assert main.main(["page", f"{site.url}/plain", "--screenshot", str(picture)]) == 11


def test_crawl_without_rendering_marks_shells(
    site: Graph, capsys: pytest.CaptureFixture[str]
) -> None:
    done = crawled(site, capsys, "--delay", "0", "--workers", "1")
    assert done["outcomes"]["fetched"] == 2
    assert (done["rendered"], done["needs_rendering"]) == (0, 1)
    assert "/app.js" not in site.log.paths()


def test_host_delay_covers_pages_scripts_and_data(
    site: Graph, capsys: pytest.CaptureFixture[str]
) -> None:
    limits = ("--max-pages", "3", "--delay", "300ms", "--workers", "1")
    done = crawled(site, capsys, "--render", "always", *limits)
    assert done["outcomes"]["fetched"] == 3
    times = [one.at_ms for one in site.log.records() if one.path != "/robots.txt"]
    assert len(times) >= 6
    gaps = [later - sooner for sooner, later in pairwise(times)]
    # A busy server can note one request late, and the next one in time.
    assert sum(gaps) >= 290 * len(gaps), gaps
    assert min(gaps) >= 150, gaps
