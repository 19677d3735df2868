"""A demo bookshop: 1,000 and more pages from a seed, with the difficulties of real sites.

    async with bookshop.serve() as shop:      # in the running loop, on a free port
        crawl(shop.url)
        assert found == shop.expected().pages

    python -m tests.sites.bookshop --port 8000

| module      | content                                                                   |
| ----------- | ------------------------------------------------------------------------- |
| `words`     | words of titles and descriptions                                          |
| `catalogue` | the books, from a seed                                                    |
| `model`     | pages, redirects and files as values, and the sets a correct crawl finds  |
| `markup`    | the frame of a page, and the record of its links                          |
| `shelves`   | home, lists, books, authors                                               |
| `corners`   | robots.txt, redirects, dead links, slow and busy pages, downloads         |
| `spellings` | links with unusual spellings, hidden links, nofollow links                |
| `world`     | charsets                                                                  |
| `sitemap`   | sitemaps                                                                  |
| `private`   | pages forbidden by robots.txt, with an endless calendar                   |
| `shop`      | the site: a request in, an answer out                                     |
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from tests.sites.bookshop.model import Expected
from tests.sites.bookshop.shop import BOOKS, SEED, SLOW_S, Bookshop
from tests.sites.server import background, listening

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

__all__ = ["BOOKS", "SEED", "SLOW_S", "Bookshop", "Expected", "serve", "serve_in_background"]


@contextlib.asynccontextmanager
async def serve(
    port: int = 0,
    *,
    books: int = BOOKS,
    seed: int = SEED,
    slow_s: float = SLOW_S,
    broken: float = 0.0,
) -> AsyncIterator[Bookshop]:
    """Serve a shop in the running event loop; port 0 takes a free one.

    `broken` is the share of books whose page has a broken template.
    """
    shop = Bookshop(books=books, seed=seed, slow_s=slow_s, broken=broken)
    async with listening(shop, port):
        yield shop


@contextlib.contextmanager
def serve_in_background(
    port: int = 0,
    *,
    books: int = BOOKS,
    seed: int = SEED,
    slow_s: float = SLOW_S,
    broken: float = 0.0,
) -> Iterator[Bookshop]:
    """Serve a shop from a thread, for blocking tests."""
    shop = Bookshop(books=books, seed=seed, slow_s=slow_s, broken=broken)
    with background(shop, port):
        yield shop
