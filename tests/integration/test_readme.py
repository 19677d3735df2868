"""README.md: its crawl, query and program give the printed output."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.sites import child

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.sites.child import Child

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
SITE = "http://127.0.0.1:8000"
# The lines around it contain an id, times and rates, which differ between runs.
SUMMARY = re.compile(r"^\n?outcome .*?invalid$", re.MULTILINE | re.DOTALL)


def block(language: str) -> str:
    """Return the only block of a language."""
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    return str(found)


@pytest.fixture
def shop() -> Iterator[Child]:
    with child.start("bookshop", "--books", "12") as served:
        yield served


def test_readme_example_output_matches_page(shop: Child, tmp_path: Path) -> None:
    def run(*words: str) -> str:
        path = os.pathsep.join([str(ROOT / "functions"), str(ROOT)])
        done = subprocess.run(
            [sys.executable, *words],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": path, "COLUMNS": "200"},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    (tmp_path / "crawl.toml").write_text(block("toml").replace(SITE, shop.url))
    (tmp_path / "program.py").write_text(block("python"))
    (crawl, shown), (query, rows) = [
        part.split("\n", 1) for part in block("console").removeprefix("$ ").split("\n$ ")
    ]
    said = [run("-m", "orbweaver.cli.main", *shlex.split(line)[1:]) for line in (crawl, query)]
    found, expected = SUMMARY.search(said[0]), SUMMARY.search(shown)
    assert found is not None
    assert expected is not None
    assert found[0] == expected[0]
    assert said[1] == rows
    first, *books = run("program.py").splitlines()
    assert first == "finished 17"
    assert len(books) == 12
    assert "Teacher & Clock 46.83 CHF" in books
