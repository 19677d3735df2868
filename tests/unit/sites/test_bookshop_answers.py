"""Answers of the special pages of the bookshop."""

from __future__ import annotations

import gzip
import json
import re
import time
from collections.abc import AsyncIterator
from urllib.parse import urljoin

import pytest
from bs4 import BeautifulSoup

from tests.sites import bookshop
from tests.sites.bookshop.world import SCRIPTS, Script
from tests.sites.reader import decode, links
from tests.sites.server import Asked

from .conftest import Client

SLOW_S = 0.05


@pytest.fixture
async def shop() -> AsyncIterator[bookshop.Bookshop]:
    async with bookshop.serve(books=30, slow_s=SLOW_S) as served:
        yield served


@pytest.mark.parametrize(
    ("path", "status", "target"),
    [
        ("/old/book-1.html", 301, "/books/"),
        ("/old/book-2.html", 302, "/books/"),
        ("/old/book-3.html", 303, "/books/"),
        ("/old/book-4.html", 307, "/books/"),
        ("/old/book-5.html", 308, "/books/"),
        ("/corners/redirects/hop/1", 302, "/corners/redirects/hop/2"),
        ("/corners/redirects/hop/2", 307, "/corners/redirects/hop/3"),
        ("/corners/redirects/hop/3", 301, "/corners/redirects/goal/"),
        ("/corners/redirects/fragment", 302, "/about/#team"),
        ("/corners/redirects/dead", 301, "/dead/1"),
        ("/wishlist", 302, "/account/login"),
        ("/loop/a", 302, "/loop/b"),
        ("/loop/b", 302, "/loop/a"),
        ("/loop/self", 302, "/loop/self"),
        ("/catalogue", 301, "/catalogue/"),
    ],
)
async def test_redirects_lead_to_their_target(
    shop: bookshop.Bookshop, client: Client, path: str, status: int, target: str
) -> None:
    got = await client.get(shop.url + path)
    assert got.status == status
    assert urljoin(shop.url + path, got.headers["Location"]).startswith(shop.url + target)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/dead/1", 404),
        ("/dead/7", 410),
        ("/dead/10", 403),
        ("/no/such/page", 404),
        ("/_site/x", 404),
    ],
)
async def test_dead_pages_always_return_their_error(
    shop: bookshop.Bookshop, client: Client, path: str, status: int
) -> None:
    for _ in range(2):
        assert (await client.get(shop.url + path)).status == status


async def test_busy_page_answers_503_once(shop: bookshop.Bookshop, client: Client) -> None:
    for path in ("/busy/1", "/busy/2"):
        first = await client.get(shop.url + path)
        assert (first.status, first.headers["Retry-After"]) == (503, "1")
        assert [(await client.get(shop.url + path)).status for _ in range(2)] == [200, 200]
    await client.get(shop.url + "/_site/reset")
    assert (await client.get(shop.url + "/busy/1")).status == 503


async def test_slow_page_waits_before_answer(shop: bookshop.Bookshop, client: Client) -> None:
    """The page waits 1.5 s by default."""
    start = time.monotonic()
    assert (await client.get(shop.url + "/slow/")).status == 200
    assert time.monotonic() - start >= SLOW_S
    asked = Asked(method="GET", target="/slow/", host="x", headers={})
    assert bookshop.Bookshop(books=30).answer(asked).delay_s == 1.5


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
async def test_pages_in_other_charsets_can_be_decoded(
    shop: bookshop.Bookshop, client: Client, script: Script
) -> None:
    url = f"{shop.url}/world/{script.name}/"
    got = await client.get(url)
    content_type = got.headers["Content-Type"]
    assert ("charset" in content_type) == (script.header is not None)
    assert f"<h1>{script.title}</h1>" in decode(got.body, content_type)
    first = links(url, got.body, content_type=content_type, x_robots_tag="", follow_nofollow=False)[
        0
    ]
    assert "%" in first
    assert (await client.get(first)).status == 200


@pytest.mark.parametrize(
    ("path", "content_type", "start"),
    [
        ("/files/leaflet.pdf", "application/pdf", b"%PDF-1.4"),
        ("/files/leaflet", "application/pdf", b"%PDF-1.4"),
        ("/files/logo.png", "image/png", b"\x89PNG"),
        ("/files/prices.csv", "text/csv; charset=utf-8", b"number,title,"),
        ("/files/notes.html", "application/octet-stream", b"\0"),
        ("/files/everything.zip", "application/zip", b"PK"),
        ("/style.css", "text/css; charset=utf-8", b":root"),
        ("/robots.txt", "text/plain; charset=utf-8", b"# The"),
        ("/sitemap.xml", "application/xml", b"<?xml"),
    ],
)
async def test_downloads_have_their_content_type(
    shop: bookshop.Bookshop, client: Client, path: str, content_type: str, start: bytes
) -> None:
    got = await client.get(shop.url + path)
    assert (got.status, got.headers["Content-Type"]) == (200, content_type)
    assert got.body.startswith(start)


async def test_calendar_is_endless(shop: bookshop.Bookshop, client: Client) -> None:
    url = shop.url + "/calendar/"
    for _ in range(30):
        body = (await client.get(url)).body.decode()
        later = re.search(r'href="([^"]+)">later<', body)
        assert later
        url = shop.url + later[1]
    assert url.endswith("/calendar/2029/05/")


async def test_disallowed_pages_answer_and_are_logged(
    shop: bookshop.Bookshop, client: Client
) -> None:
    for url in shop.expected().disallowed:
        assert (await client.get(url)).status == 200
    assert len(shop.log.records()) == len(shop.expected().disallowed)


async def test_tracking_parameters_do_not_change_page(
    shop: bookshop.Bookshop, client: Client
) -> None:
    url = str(shop.books()[0]["url"])
    plain = await client.get(url)
    assert (await client.get(f"{url}?utm_source=a&gclid=b&fbclid=c")).body == plain.body
    query = f"{shop.url}/corners/query"
    assert (await client.get(f"{query}?format=full&utm_medium=x&lang=en")).status == 200
    assert (await client.get(f"{query}?utm_medium=x&format=full&lang=en")).status == 200
    assert (await client.get(f"{query}?lang=de")).status == 404


async def test_matching_etag_returns_304(shop: bookshop.Bookshop, client: Client) -> None:
    first = await client.get(shop.url + "/")
    again = await client.get(shop.url + "/", If_None_Match=f'"x", {first.headers["ETag"]}')
    other = await client.get(shop.url + "/", If_None_Match='"x"')
    assert [first.status, again.status, other.status] == [200, 304, 200]
    assert again.body == b""
    assert [record.status for record in shop.log.records()] == [200, 304, 200]


async def test_content_length_equals_sent_bytes(shop: bookshop.Bookshop, client: Client) -> None:
    plain = await client.get(shop.url + "/")
    packed = await client.get(shop.url + "/", Accept_Encoding="gzip, br")
    head = await client.get(shop.url + "/", method="HEAD")
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    for got in (plain, packed):
        assert int(got.headers["Content-Length"]) == len(got.body)
    assert (head.body, head.headers["Content-Length"]) == (b"", plain.headers["Content-Length"])
    assert (await client.get(shop.url + "/", method="POST")).status == 405


def test_book_pages_show_their_row() -> None:
    shop = bookshop.Bookshop(books=150)
    for row in shop.books(""):
        asked = Asked(method="GET", target=str(row["url"]), host="x", headers={})
        soup = BeautifulSoup(shop.answer(asked).body, "html.parser")
        shown = {
            name: tag.get_text()
            for name in ("article h1", ".book .price", ".description", ".category", ".author")
            if (tag := soup.select_one(name)) is not None
        }
        assert list(shown.values()) == [
            row["title"], row["price"], row["description"], row["category"], row["author"],
        ]  # fmt: skip
        product = json.loads(soup.select('script[type="application/ld+json"]')[0].get_text())
        offer = product["offers"]
        assert (product["name"], product["sku"]) == (row["title"], row["upc"])
        assert (offer["price"], offer["priceCurrency"]) == (row["amount"], row["currency"])
        assert product["aggregateRating"]["ratingValue"] == row["rating"]
        assert offer["availability"].endswith("InStock" if row["stock"] else "OutOfStock")
        digits = re.sub(r"\D", "", str(row["price"]))
        assert digits in {str(row["amount"]).replace(".", ""), str(row["amount"])[:-3]}


def test_prices_have_many_formats() -> None:
    prices = [str(row["price"]) for row in bookshop.Bookshop().books("")]
    forms = {re.sub(r"\d+", "1", price) for price in prices}
    assert len(forms) > 15
    assert {row["currency"] for row in bookshop.Bookshop().books("")} >= {"GBP", "EUR", "JPY"}
    assert any(row["stock"] == 0 for row in bookshop.Bookshop().books(""))
