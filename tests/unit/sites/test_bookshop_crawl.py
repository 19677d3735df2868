"""An independent crawl of the bookshop finds the expected sets of pages."""

from __future__ import annotations

import gzip
import subprocess
import sys
from urllib.parse import urljoin, urlsplit
from urllib.robotparser import RobotFileParser
from xml.etree import ElementTree as ET

import pytest
from bs4 import BeautifulSoup

from tests.sites import bookshop, child, walk
from tests.sites.bookshop import catalogue, sitemap, words
from tests.sites.bookshop.corners import RULES
from tests.sites.bookshop.model import Page
from tests.sites.bookshop.shop import resources
from tests.sites.reader import decode, normal

SMALL = 30
BASE = "http://shop.invalid"


@pytest.mark.thorough
async def test_walk_finds_expected_sets() -> None:
    async with bookshop.serve(slow_s=0.01) as shop:
        walked = await walk.walk(shop.url + "/")
        expected = shop.expected()
    assert walked.pages == expected.pages | expected.noindex
    assert walked.redirected == expected.redirected
    assert walked.failed == expected.failed
    assert walked.disallowed == expected.disallowed
    assert walked.other == expected.other
    assert walked.external == expected.external
    asked = shop.log.paths()
    assert not [path for path in asked if "ghost" in path]
    assert {shop.url + path for path in asked if path != "/robots.txt"} == (
        walked.pages | walked.redirected | walked.failed | walked.other
    )


async def test_walk_along_nofollow_links_adds_nofollow_pages() -> None:
    async with bookshop.serve(books=SMALL, slow_s=0.01) as shop:
        walked = await walk.walk(shop.url + "/", walk.Options(follow_nofollow=True))
        expected = shop.expected()
    assert walked.pages == expected.pages | expected.noindex | expected.nofollow
    assert len(expected.nofollow) == 4


def test_shop_has_more_than_1300_pages() -> None:
    """1,000 books on 25 shelves with pagination."""
    shop = bookshop.Bookshop()
    pages = shop.expected(BASE).pages
    books = {str(row["url"]) for row in shop.books(BASE)}
    assert len(pages) > 1_300
    assert len(books) == 1_000
    assert books <= pages
    shelves = {urlsplit(url).path.split("/")[2] for url in pages if "/category/" in url}
    assert len(shelves) == len(words.CATEGORIES) >= 20
    assert any(url.endswith("/page-5.html") for url in pages)


def test_expected_sets_are_disjoint_and_survive_json() -> None:
    expected = bookshop.Bookshop(books=SMALL).expected(BASE)
    sets = [
        expected.pages, expected.noindex, expected.redirected, expected.failed,
        expected.disallowed, expected.other, expected.nofollow, expected.external,
    ]  # fmt: skip
    assert sum(map(len, sets)) == len(frozenset().union(*sets))
    assert all(sets)
    assert expected.loops < expected.redirected
    assert bookshop.Expected.from_json(expected.as_json()) == expected


def test_every_page_is_reachable_or_behind_nofollow() -> None:
    shop = bookshop.Bookshop(books=SMALL)
    expected = shop.expected(BASE)
    assert set(shop.titles(BASE)) == expected.pages | expected.noindex | expected.nofollow


def test_html_parser_finds_links_of_model() -> None:
    for page in resources(bookshop.SEED, SMALL).values():
        if isinstance(page, Page) and page.path.startswith(("/corners/", "/world/", "/about/")):
            url = BASE + page.path
            soup = BeautifulSoup(decode(page.body, dict(page.headers)["Content-Type"]), "html5lib")
            base = soup.find("base")
            start = urljoin(url, str(base["href"])) if base else url
            tags = soup.select("a[href], area[href]")
            found = {normal(urljoin(start, str(tag["href"]).strip())) for tag in tags}
            noted = {urljoin(BASE, link.target) for link in page.links}
            assert {link for link in found if link.startswith("http")} == noted, page.path


def test_page_titles_equal_model_titles() -> None:
    for page in resources(bookshop.SEED, SMALL).values():
        if isinstance(page, Page):
            text = decode(page.body, dict(page.headers)["Content-Type"])
            title = BeautifulSoup(text, "html.parser").title
            assert title is not None
            assert title.get_text() == page.title


DIGEST = """
import hashlib, sys
from tests.sites.bookshop import shop
digest = hashlib.sha256()
for path, resource in sorted(shop.resources(int(sys.argv[1]), 50).items()):
    digest.update(repr((path, resource)).encode())
print(digest.hexdigest())
"""


def _digest(seed: int, hash_seed: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", DIGEST, str(seed)],
        cwd=child.ROOT,
        env={"PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@pytest.mark.thorough
def test_same_seed_gives_same_bytes_in_every_process() -> None:
    digest = _digest(1, "1")
    assert digest == _digest(1, "2")
    assert digest != _digest(2, "1")


async def test_robots_parser_agrees_with_model() -> None:
    """Python's parser has no wildcards, so these rules are excluded."""
    async with bookshop.serve(books=SMALL) as shop:
        expected = shop.expected()
        parser = RobotFileParser()
        text = RULES.text.format(base_url=shop.url)
        # Its first match wins, so the exception comes first here.
        lines = text.replace("Disallow: /account/\nAllow: /account/help/", "Allow: /account/help/\n"
                             "Disallow: /account/").splitlines()  # fmt: skip
        parser.parse(lines)
    plain = {u for u in expected.disallowed if "?sort=" not in u and not u.endswith(".zip")}
    assert plain
    assert not [url for url in plain if parser.can_fetch("any", url)]
    assert not [url for url in expected.pages if not parser.can_fetch("any", url)]
    assert not parser.can_fetch("GreedyBot", shop.url + "/")
    assert parser.site_maps() == [f"{shop.url}/sitemap.xml"]


@pytest.mark.parametrize("name", ["/sitemap-pages.xml", "/sitemap-books.xml.gz"])
def test_sitemaps_name_expected_pages_only(name: str) -> None:
    shop = bookshop.Bookshop(books=SMALL)
    files = sitemap.files(catalogue.make(bookshop.SEED, SMALL), BASE)
    index = ET.fromstring(files["/sitemap.xml"][1])  # noqa: S314  # our own document
    space = f"{{{sitemap.NAMESPACE}}}"
    assert BASE + name in {loc.text for loc in index.iter(f"{space}loc")}
    body = files[name][1]
    if name.endswith(".gz"):
        body = gzip.decompress(body)
    urls = {loc.text for loc in ET.fromstring(body).iter(f"{space}loc")}  # noqa: S314  # same
    assert urls
    assert urls <= shop.expected(BASE).pages
