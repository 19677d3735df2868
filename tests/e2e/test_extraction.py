"""Items by user-defined functions on a deployed stack."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import enforced
from tests.sites import child

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.slow, pytest.mark.timeout(400)]

SHOP = Path(__file__).parents[1] / "sites/bookshop"
OPTIONS = ("--delay", "0", "--max-depth", "200", "--no-sitemaps")
OWN = """
seeds = ["http://127.0.0.1/"]
[[items]]
name = "own"
match = '/books/[^/]+/$'
extractor = "books"
[items.fields]
title = { required = true }
stars = { type = "integer", required = true }
words = { type = "integer" }
[[items]]
name = "missing"
match = '/books/[^/]+/$'
extractor = "films"
fields = { title = "title" }
"""


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    files = sorted(folder.glob(f"{table}/jsonl/dt=*/*/part-*.jsonl.gz"))
    return [
        json.loads(line)
        for file in files
        for line in gzip.decompress(file.read_bytes()).splitlines()
    ]


def test_user_functions_are_deployed_with_worker(tmp_path: Path) -> None:
    own = str((SHOP / "extractor.py").relative_to(Path.cwd()))
    context = {"extractor": own, "alarms": "all"}
    config = tmp_path / "crawl.toml"
    config.write_text(OWN)
    with (
        child.start("bookshop", "--books", "30") as shop,
        enforced.standing(tmp_path, context) as stand,
    ):
        words = ("start", f"{shop.url}/", "--config", str(config), "--name", "own", *OPTIONS)
        result = stand.orbweaver(*words, "--wait", "--json").result
        out = ("--out", str(tmp_path / "out"))
        stand.orbweaver("export", "--crawl", result["crawl"], *out)
        truth = {str(book["url"]): book for book in shop.control("books.json")}
    books = rows(tmp_path / "out", "items/own/own")
    assert {row["url"]: row["stars"] for row in books} == {
        url: book["rating"] for url, book in truth.items()
    }
    assert all(row["words"] > 0 for row in books)
    (said,) = {tuple(row["problems"]) for row in rows(tmp_path / "out", "invalid_items")}
    assert said == ("extractor films: there is no such function (there are books)",)
    assert (result["items"], result["items_invalid"]) == (60, 30)
    assert result["outcomes"]["fetched"] > 60
