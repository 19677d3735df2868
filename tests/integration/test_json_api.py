"""Crawls of a JSON API by the command line: each form of paging, and later runs."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from orbweaver.cli import main
from tests.sites.json_api.server import ServedShop, serving
from tests.sites.json_api.shop import Reply, Shop

pytestmark = pytest.mark.thorough

SIZE = 35
CURSOR = '{ by = "cursor", path = "$.meta.next_cursor", parameter = "cursor" }'
FORMS = {
    "cursor": CURSOR,
    "pages": '{ by = "page", parameter = "page" }',
    "offset": '{ by = "offset", parameter = "offset", step = 10, total = "$.total" }',
    "next": '{ by = "next", path = "$.next" }',
    "link": '{ by = "link" }',
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    return tmp_path


def define(folder: Path, site: ServedShop, path: str, paging: str, links: str = "") -> None:
    (folder / "crawl.toml").write_text(
        f"""name = "shop"
[politeness]
delay = 0
[[api]]
url = "{site.url}/v1/{path}"
links = "{links}"
paging = {paging}
[[items]]
name = "products"
match = "/v1/"
source = "json"
each = "$.results[*]"
fields = {{ id = {{ type = "integer" }}, title = "$.title" }}
"""
    )


def crawl(*options: str) -> int:
    return main.main(["crawl", "--config", "crawl.toml", "--format", "jsonl", *options])


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    files = sorted(folder.glob(f"out/*/{table}/**/*.jsonl.gz"))
    return [json.loads(line) for file in files for line in gzip.open(file, "rt")]


def numbers(folder: Path) -> list[int]:
    return sorted(row["id"] for row in rows(folder, "items/shop/products"))


@pytest.mark.parametrize("form", FORMS)
def test_each_form_of_paging_exports_every_item_once(folder: Path, form: str) -> None:
    with serving(Shop(SIZE)) as site:
        define(folder, site, form, FORMS[form], links="$.results[*].url")
        assert crawl() == 0
    assert numbers(folder) == [*range(SIZE)]
    pages = rows(folder, "pages")
    assert len(pages) == len({page["url"] for page in pages})
    assert sum("/products/" in page["url"] for page in pages) == SIZE
    assert {page["outcome"] for page in pages} == {"fetched"}


@pytest.mark.parametrize(
    ("path", "body", "parameter", "cursor"),
    [
        ("search", 'json = { query = "a b" }', "page.after", "$.after"),
        ("form", 'form = { query = "a b" }', "cursor", "$.meta.next_cursor"),
    ],
)
def test_post_requests_are_paged(
    folder: Path, path: str, body: str, parameter: str, cursor: str
) -> None:
    paging = f'{{ by = "cursor", path = "{cursor}", parameter = "{parameter}" }}\n{body}'
    with serving(Shop(SIZE)) as site:
        define(folder, site, path, paging)
        assert main.main(["check"]) == 0
        assert main.main(["extract", f"{site.url}/v1/{path}"]) == 0
        assert crawl() == 0
        posts = [body for method, _, body in site.log if method == "POST"]
    assert numbers(folder) == [*range(SIZE)]
    assert len(posts) == 5  # one of them by extract
    first = json.dumps({"query": "a b"}, separators=(",", ":")).encode()
    assert posts[1] == (first if path == "search" else b"query=a+b")
    url = next(row["url"] for row in rows(folder, "pages"))
    assert main.main(["explain", url]) == 0


def test_seed_list_has_post_requests(folder: Path) -> None:
    with serving(Shop(SIZE)) as site:
        seed = {"url": f"{site.url}/v1/search", "method": "POST", "json": {"query": "x"}}
        (folder / "seeds.txt").write_text(f"# two\n{json.dumps(seed)}\n{site.url}/products/1\n")
        assert main.main(["crawl", "--seeds", "seeds.txt", "--delay", "0", "--bodies", "all"]) == 0
        assert ("POST", "/v1/search", b'{"query":"x"}') in site.log


def test_next_run_goes_on_at_failed_page(folder: Path) -> None:
    with serving(Shop(SIZE)) as site:
        site.faults["/v1/cursor?cursor=c10"] = [Reply(status=404)]
        define(folder, site, "cursor", CURSOR)
        assert crawl() == 0
        assert numbers(folder) == [*range(10)]
        failed = [row["reason"] for row in rows(folder, "pages") if row["outcome"] == "failed"]
        assert failed == ["http_client_error"]
        assert crawl() == 0
    assert numbers(folder) == [*range(SIZE)]


def test_corrected_paging_requests_failed_page_again(folder: Path) -> None:
    with serving(Shop(SIZE)) as site:
        define(folder, site, "offset", FORMS["offset"].replace("$.total", "$.totall"))
        assert crawl("--fail-above", "0") == 7
        define(folder, site, "offset", FORMS["offset"])
        assert crawl("--fail-above", "0") == 0
    assert numbers(folder) == [*range(SIZE)]


def test_next_run_goes_on_with_more_pages(folder: Path) -> None:
    with serving(Shop(SIZE)) as site:
        for pages, until in ((2, 20), (2, 20), (3, 30), (9, SIZE)):
            define(folder, site, "cursor", f"{CURSOR}\npages = {pages}")
            assert crawl() == 0
            assert numbers(folder) == [*range(until)]
        assert len(site.log) == 5  # with robots.txt


def test_repeated_cursor_ends_paging_with_count(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    again = json.dumps({"results": [{"id": 10}], "meta": {"next_cursor": "c10"}}).encode()
    with serving(Shop(SIZE)) as site:
        site.faults["/v1/cursor?cursor=c10"] = [Reply(body=again)]
        define(folder, site, "cursor", CURSOR)
        assert crawl() == 0
        assert len(site.log) == 3  # with robots.txt
    assert "page of an API again" in capsys.readouterr().out
    assert numbers(folder) == [*range(11)]
