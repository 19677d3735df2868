"""`scrape`: one page of a local site, on the standard output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orbweaver.cli import main
from orbweaver.model.settings import STORE
from tests.sites import graph
from tests.sites.server import Answer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.sites.graph import Graph

LATIN = (("Content-Type", "text/html; charset=iso-8859-15"),)
TEXT = "This page has a text that is long enough to be the main one of the page."
RULES = """
seeds = ["https://example.com/"]
[[items]]
name = "books"
match = "/books/"
fields.price = { css = ".price", type = "price", required = true }
"""
PAGES = {
    "/robots.txt": Answer(body=b"User-agent: *\nDisallow: /private\n"),
    "/": graph.page("Home", ["/books/1"], text=TEXT),
    "/latin": Answer(headers=LATIN, body="<p>Bücher für 5 €".encode("iso-8859-15")),
    "/moved": Answer(status=301, headers=(("Location", "/latin"),)),
    "/private": graph.page("Private", [], text=TEXT),
    "/broken": Answer(status=503),
    "/books/1": Answer(headers=graph.HTML, body=b"<p class=price>12.50 EUR</p>"),
    "/books/2": Answer(headers=graph.HTML, body=b"<p>sold out</p>"),
}


@pytest.fixture(scope="module")
def site() -> Iterator[Graph]:
    with graph.serve_in_background(PAGES) as served:
        yield served


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules.toml").write_text(RULES)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "code", "out", "err"),
    [
        ("/latin", 0, "Bücher für 5 €\n", ""),
        ("/latin --markdown", 0, "Bücher für 5 €\n", ""),
        ("/moved", 0, "Bücher für 5 €\n", "redirected from"),
        ("/private", 6, "", "robots.txt forbids it: line 2: Disallow: /private"),
        ("/private --ignore-robots", 0, f"# Private\n\n{TEXT}\n", ""),
        ("/broken", 8, "", "HTTP 503"),
        ("/missing", 8, "", "HTTP 404"),
        (
            "/books/1 --items rules.toml",
            0,
            '{"rule": "books", "price": "12.50", "price_currency": "EUR"}\n',
            "",
        ),
        ("/books/2 --items rules.toml", 1, '"problems": ["price: missing', ""),
        ("/ --items rules.toml", 1, "", "no rule of rules.toml matches"),
        ("/ --items nothing.toml", 2, "", "nothing.toml"),
        ("/ --json --markdown", 2, "", "not allowed with"),
    ],
)
def test_scrape_prints_page_or_reason(
    words: str,
    code: int,
    out: str,
    err: str,
    site: Graph,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path, *options = words.split()
    assert main.main(["scrape", f"{site.url}{path}", *options]) == code
    told = capsys.readouterr()
    assert out in told.out
    assert bool(out) == bool(told.out)
    assert err in told.err
    assert [path.name for path in folder.iterdir()] == ["rules.toml"]


def test_scrape_json_has_text_links_and_items(
    site: Graph, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["scrape", f"{site.url}/", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["title"], told["status"], told["error"]) == ("Home", 200, None)
    assert told["links"] == [f"{site.url}/books/1"]
    assert TEXT in told["markdown"]
    assert main.main(["scrape", f"{site.url}/books/1", "--json", "--items", "rules.toml"]) == 0
    assert json.loads(capsys.readouterr().out)["items"][0]["price"] == "12.50"
    assert main.main(["scrape", f"{site.url}/private", "--json"]) == 6
    assert "robots.txt forbids it" in json.loads(capsys.readouterr().out)["error"]
    assert not (folder / STORE).exists()


def test_scrape_beside_store_records_no_crawl(
    site: Graph, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["crawl", f"{site.url}/latin", "--name", "one", "--format", "jsonl"]) == 0
    assert main.main(["scrape", f"{site.url}/"]) == 0
    capsys.readouterr()
    assert main.main(["pages", "one", "--json"]) == 0
    told = [json.loads(line)["url"] for line in capsys.readouterr().out.splitlines()]
    assert (folder / STORE).is_dir()
    assert told == [f"{site.url}/latin"]
