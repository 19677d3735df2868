"""Regular pages of the shop: home, lists with pagination, books, authors."""

# ruff: noqa: RUF001  # a shop writes real quotes and dashes, and they are part of the data
from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import groupby
from types import MappingProxyType

from tests.sites.bookshop import words
from tests.sites.bookshop.catalogue import Book, author_path, category_path
from tests.sites.bookshop.markup import SHOP, Writer, crumbs, listing
from tests.sites.bookshop.model import Page

PER_PAGE = 20
FEATURED = 10
RELATED = 5
PAGER_REACH = 2  # Numbered links on each side of the current page.
TRACKING = "utm_source=home&utm_medium=web&utm_campaign=autumn"
NOTHING: Mapping[int, str] = MappingProxyType({})
# Lost parts of a book's page, each lost differently.
LOSSES = {
    "title": ("<h1>[^<]*</h1>", "<h1></h1>"),
    "price": ('<p class="price">[^<]*</p>', '<p class="price">call us</p>'),
    "stock": (r'<span class="stock[^"]*">[^<]*</span>', '<span class="stock">ask in store</span>'),
    "rating": (r'class="rating \w+"', 'class="rating"'),
}
COVERS = ("#7a3b2e", "#2f4a5c", "#3f5b42", "#5b3f63", "#8a6a2c", "#2f5f5f", "#6b2f46", "#44433f")


def pages(books: Sequence[Book], broken: Mapping[int, str] = NOTHING) -> Iterator[Page]:
    """Write every regular page; `broken` maps books to the part that their page lacks."""
    yield _home(books)
    yield from _list("/catalogue/", "All books", books, aside_of=None)
    for category in words.CATEGORIES:
        shelf = [book for book in books if book.category == category]
        yield from _list(category_path(category), category, shelf, aside_of=category)
        for index, book in enumerate(shelf):
            related = shelf[index + 1 : index + 1 + RELATED] or shelf[: min(index, RELATED)]
            page = _book(book, related)
            yield page if book.number not in broken else _broken(page, broken[book.number])
    by_author = sorted(books, key=lambda book: book.author)
    authors = {name: list(group) for name, group in groupby(by_author, lambda b: b.author)}
    yield _authors(authors)
    for author, written in authors.items():
        yield _author(author, written)


def _aside(page: Writer, current: str | None) -> str:
    links = (
        page.link(category_path(name), name, css="here" if name == current else "")
        for name in words.CATEGORIES
    )
    return "<h2>Shelves</h2>" + listing(links)


def _rating(book: Book) -> str:
    stars = "★" * book.rating + "☆" * (len(words.RATINGS) - book.rating)
    word = words.RATINGS[book.rating - 1]
    return f'<span class="rating {word}" title="{word} of five">{stars}</span>'


def _stock(book: Book) -> str:
    if book.stock == 0:
        return '<span class="stock none">Out of stock</span>'
    return f'<span class="stock">In stock ({book.stock} available)</span>'


def _cover(book: Book) -> str:
    color = COVERS[int(book.upc, 16) % len(COVERS)]
    return f'<div class="cover" style="background:{color}"><span>{escape(book.title)}</span></div>'


def _card(page: Writer, book: Book, *, tracking: str = "") -> str:
    # Two spellings of one URL, as in shops: absolute with tracking, relative without.
    if tracking:
        title = page.link(book.path, book.title, href=f"{book.path}?{tracking}")
    else:
        title = page.relative(book.path, book.title)
    return f'{_cover(book)}{title}{_rating(book)}<span class="price">{escape(book.price)}</span>'


def _home(books: Sequence[Book]) -> Page:
    page = Writer("/")
    featured = listing((_card(page, b, tracking=TRACKING) for b in books[:FEATURED]), "books")
    main = f"""<h1>Books from nowhere in particular</h1>
<p class="lead">{len(books):,} titles on {len(words.CATEGORIES)} shelves. Take your time:
{page.link("/catalogue/", "browse them all", href="catalogue/")}, or start
{page.link("/", "at the top", href="#top")}.</p>
<h2>Recommended this week</h2>{featured}
<h2>From our old shop</h2>
<p>Some readers still use {page.link("/old/", "the old addresses")}.
For prices in one file, see {page.link("/corners/downloads/", "downloads")}.</p>"""
    return page.page(SHOP, main, aside=_aside(page, None))


def _page_path(first: str, number: int) -> str:
    return first if number == 1 else f"{first}page-{number}.html"


def _pager(page: Writer, first: str, number: int, count: int) -> str:
    near = range(max(1, number - PAGER_REACH), min(count, number + PAGER_REACH) + 1)
    parts = [
        f"<b>{n}</b>" if n == number else page.relative(_page_path(first, n), str(n)) for n in near
    ]
    if number > 1:
        parts.insert(0, page.relative(_page_path(first, number - 1), "‹ previous"))
    if number < count:
        parts.append(page.relative(_page_path(first, number + 1), "next ›"))
    return f'<nav class="pager">{"".join(parts)}</nav>' if count > 1 else ""


def _list(first: str, name: str, books: Sequence[Book], *, aside_of: str | None) -> Iterator[Page]:
    count = max(1, -(-len(books) // PER_PAGE))
    for number in range(1, count + 1):
        page = Writer(_page_path(first, number))
        shown = books[(number - 1) * PER_PAGE : number * PER_PAGE]
        trail = crumbs([page.link("/", "Home"), escape(name)])
        # Forbidden by a wildcard in robots.txt.
        sorts = " · ".join(page.link(f"{first}?sort={key}", key) for key in ("price", "rating"))
        main = f"""{trail}<h1>{escape(name)}</h1>
<div class="tools"><span>{len(books):,} books, page {number} of {count}</span>
<span>sort by {sorts}</span></div>
{listing((_card(page, book) for book in shown), "books")}{_pager(page, first, number, count)}"""
        title = name if number == 1 else f"{name}, page {number}"
        yield page.page(f"{title} | Bookshop", main, aside=_aside(page, aside_of))


def _authors(authors: dict[str, list[Book]]) -> Page:
    page = Writer("/authors/")
    # Written with accents, as people do. A URL has them percent-encoded.
    links = (
        page.link(author_path(name), name, href=f"/authors/{name.lower().replace(' ', '-')}/")
        + f" ({len(written)})"
        for name, written in authors.items()
    )
    main = f"<h1>Authors</h1>{listing(links, 'columns')}"
    return page.page("Authors | Bookshop", main)


def _author(name: str, written: Sequence[Book]) -> Page:
    page = Writer(author_path(name))
    trail = crumbs([page.link("/", "Home"), page.relative("/authors/", "Authors"), escape(name)])
    cards = listing((_card(page, book) for book in written), "books")
    return page.page(f"{name} | Bookshop", f"{trail}<h1>{escape(name)}</h1>{cards}")


def _json_ld(book: Book) -> str:
    product = {
        "@context": "https://schema.org",
        "@type": "Book",
        "name": book.title,
        "author": {"@type": "Person", "name": book.author},
        "sku": book.upc,
        "aggregateRating": {"@type": "AggregateRating", "ratingValue": book.rating},
        "offers": {
            "@type": "Offer",
            "price": str(book.amount),
            "priceCurrency": book.currency,
            "availability": "https://schema.org/" + ("InStock" if book.stock else "OutOfStock"),
        },
    }
    # "<" would end the script element of a book called "</script>".
    text = json.dumps(product, ensure_ascii=False).replace("<", "\\u003c")
    return f'<script type="application/ld+json">{text}</script>'


def _broken(page: Page, kind: str) -> Page:
    """Remove a part of a book's page, as a hasty template change does."""
    losses = LOSSES.items() if kind == "all" else [(kind, LOSSES[kind])]
    html = page.body.decode()
    for _, (found, left) in losses:
        html, times = re.subn(found, left, html, count=1)
        if not times:
            message = f"{page.path} has no {found}"
            raise ValueError(message)
    return dataclasses.replace(page, body=html.encode())


def _book(book: Book, related: Sequence[Book]) -> Page:
    page = Writer(book.path)
    shelf = category_path(book.category)
    trail = crumbs(
        [
            page.relative("/", "Home"),
            page.relative(shelf, book.category, css="category"),
            escape(book.title),
        ]
    )
    rows = {
        "UPC": book.upc,
        "Price": book.price,
        "Availability": f"{book.stock} available" if book.stock else "none",
        "Rating": f"{words.RATINGS[book.rating - 1]} of five",
    }
    table = "".join(f"<tr><th>{k}</th><td>{escape(v)}</td></tr>" for k, v in rows.items())
    cards = listing((_card(page, other) for other in related), "books")
    main = f"""{trail}
<article class="book"><div>{_cover(book)}</div><div>
<h1>{escape(book.title)}</h1>
<div>by {page.link(author_path(book.author), book.author, css="author")}</div>
{_rating(book)}
<p class="price">{escape(book.price)}</p>{_stock(book)}
<h2 id="description">Description</h2><p class="description">{escape(book.description)}</p>
<h2 id="details">Details</h2><table>{table}</table>
<p>{page.link(book.path, "Back to the description", href="#description")}</p>
</div></article>
<h2>Readers also took home</h2>{cards}"""
    head = f'<link rel="canonical" href="{book.path}">{_json_ld(book)}'
    return page.page(f"{book.title} | Bookshop", main, head=head)
