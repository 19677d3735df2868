"""The crawl.toml of the demo bookshop, run over all its pages and compared with the shop's data."""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from orbweaver.control.definition import parse
from orbweaver.control.spec_checks import crawl_of
from orbweaver.extraction.extract import extract
from orbweaver.model.crawl import Crawl
from orbweaver.model.item import Item
from orbweaver.parsing.page import parse as parse_page
from tests.sites.bookshop.model import Page
from tests.sites.bookshop.shop import Bookshop, resources

BASE = "http://127.0.0.1:8000"
DEFINITION = Path(__file__).parents[2] / "sites/bookshop/crawl.toml"
BOOKS, SEED = 400, 7


@cache
def crawl() -> Crawl:
    return crawl_of(parse(tomllib.loads(DEFINITION.read_text())), 0)


@cache
def shop(broken: float) -> tuple[Bookshop, Mapping[str, tuple[Item, ...]]]:
    """Return the items by URL, extracted from every page of a shop."""
    made = Bookshop(books=BOOKS, seed=SEED, broken=broken)
    found = {}
    for page in resources(SEED, BOOKS, broken).values():
        if isinstance(page, Page):
            parsed = parse_page(page.body, BASE + page.path, dict(page.headers)["Content-Type"])
            found[BASE + page.path] = extract(parsed, BASE + page.path, crawl().items)
    return made, found


def of(found: Mapping[str, tuple[Item, ...]], table: str) -> dict[str, list[Item]]:
    chosen = {url: [one for one in items if one.table == table] for url, items in found.items()}
    return {url: items for url, items in chosen.items() if items}


def totals(items: Iterable[Item]) -> dict[str, Any]:
    rows = [item.fields for item in items if item.valid]
    prices: defaultdict[str, Decimal] = defaultdict(Decimal)
    for row in rows:
        prices[str(row["price_currency"])] += Decimal(str(row["price"]))
    return {
        "books": len(rows),
        "prices": {currency: f"{total:.2f}" for currency, total in sorted(prices.items())},
        "stock": sum(row["stock"] for row in rows),
        "ratings": sum(row["rating"] for row in rows),
    }


def test_every_book_equals_data_of_shop() -> None:
    made, found = shop(0.0)
    books = of(found, "books")
    truth = {str(book["url"]): book for book in made.books(BASE)}
    assert books.keys() == truth.keys()
    for url, (item,) in books.items():
        assert item.valid, item.problems
        book = truth[url]
        assert item.fields == {
            "title": book["title"],
            "price": item.fields["price"],
            "price_currency": book["currency"],
            "author": book["author"],
            "category": book["category"],
            "link": url,
            "tags": ["Home", book["category"]],
            "stock": book["stock"],
            "rating": book["rating"],
            "in_stock": book["stock"] != 0,
        }
        assert Decimal(str(item.fields["price"])) == Decimal(str(book["amount"]))


def test_totals_equal_totals_of_shop() -> None:
    made, found = shop(0.0)
    assert totals(item for items in of(found, "books").values() for item in items) == made.totals()


def test_json_ld_items_equal_items_of_page() -> None:
    _, found = shop(0.0)
    books, offers = of(found, "books"), of(found, "offers")
    assert books.keys() == offers.keys()
    for url, (offer,) in offers.items():
        (book,) = books[url]
        assert offer.valid, offer.problems
        for name in ("title", "author", "price_currency", "rating"):
            assert offer.fields[name] == book.fields[name]
        assert Decimal(str(offer.fields["price"])) == Decimal(str(book.fields["price"]))


def test_list_pages_have_one_card_per_book() -> None:
    made, found = shop(0.0)
    cards = {url: items for url, items in of(found, "cards").items() if "/catalogue/" in url}
    assert {item.place for items in cards.values() for item in items} == set(range(20))
    links = [item.fields["link"] for items in cards.values() for item in items]
    assert sorted(map(str, links)) == sorted(str(book["url"]) for book in made.books(BASE))
    assert all(item.valid for items in cards.values() for item in items)


def test_pages_without_rule_have_no_items() -> None:
    _, found = shop(0.0)
    without = [url for url, items in found.items() if not items]
    assert f"{BASE}/" in without
    assert not any("/books/" in url or "/category/" in url for url in without)


REASONS: dict[str, tuple[str, ...]] = {
    "title": ("title: missing (css 'article.book h1')",),
    "price": ("price: not a price: 'call us' (no digit in it)",),
    "stock": (r"stock: missing (css 'article.book .stock', regex '\\d+|Out of stock')",),
    "rating": (r"rating: missing (css 'article.book .rating', regex 'rating (\\w+)')",),
}
REASONS["all"] = tuple(reason for reasons in REASONS.values() for reason in reasons)


@pytest.mark.parametrize("share", [0.05])
def test_broken_templates_give_invalid_items_with_reasons(share: float) -> None:
    made, found = shop(share)
    books = {url: items[0] for url, items in of(found, "books").items()}
    broken = made.broken(BASE)
    assert len(broken) == BOOKS * share
    invalid = {url: item.problems for url, item in books.items() if not item.valid}
    assert invalid == {url: REASONS[kind] for url, kind in broken.items()}
    assert totals(books.values()) == made.totals(without_broken=True)
