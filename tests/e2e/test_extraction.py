"""Items on a deployed stack: a broken template, and user-defined functions."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.demo import totals_of
from tests.e2e import enforced
from tests.sites import child

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.e2e.stand import CommandStand

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.slow, pytest.mark.timeout(400)]

SHOP = Path(__file__).parents[1] / "sites/bookshop"
BOOKS = 100
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


def crawled(
    anywhere: CommandStand, shop: child.Child, config: Path, name: str, out: Path
) -> dict[str, Any]:
    ran = anywhere.orbweaver(
        "start",
        f"{shop.url}/",
        "--config",
        str(config),
        "--name",
        name,
        *OPTIONS,
        "--wait",
        "--json",
    )
    anywhere.orbweaver("export", "--crawl", ran.result["crawl"], "--out", str(out))
    return ran.result


def test_broken_template_gives_invalid_items_with_reasons(
    anywhere: CommandStand, tmp_path: Path
) -> None:
    with child.start("bookshop", "--books", str(BOOKS), "--broken", "0.05") as shop:
        result = crawled(anywhere, shop, SHOP / "crawl.toml", "broken", tmp_path)
        broken: Mapping[str, str] = shop.control("broken.json")
        truth = {str(book["url"]): book for book in shop.control("books.json")}
    invalid = [row for row in rows(tmp_path, "invalid_items") if row["rule"] == "books"]
    assert {row["url"] for row in invalid} == broken.keys()
    assert len(invalid) == result["items_invalid"] == BOOKS * 0.05
    for row in invalid:
        named = {problem.partition(":")[0] for problem in row["problems"]}
        kind = broken[row["url"]]
        assert named == ({"title", "price", "stock", "rating"} if kind == "all" else {kind})
    books = rows(tmp_path, "items/broken/books")
    assert {row["url"] for row in books} == truth.keys() - broken.keys()
    found = totals_of(books)
    well = [book for url, book in truth.items() if url not in broken]
    assert found["stock"] == sum(book["stock"] for book in well)
    assert found["ratings"] == sum(book["rating"] for book in well)


def test_user_functions_are_deployed_with_worker(tmp_path: Path) -> None:
    own = str((SHOP / "extractor.py").relative_to(Path.cwd()))
    context = {"extractor": own, "alarms": "all"}
    config = tmp_path / "crawl.toml"
    config.write_text(OWN)
    with (
        child.start("bookshop", "--books", "30") as shop,
        enforced.standing(tmp_path, context) as stand,
    ):
        result = crawled(stand, shop, config, "own", tmp_path / "out")
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
