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

from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Unpack

from tests.sites.bookshop.model import Expected
from tests.sites.bookshop.shop import BOOKS, SEED, SLOW_S, Bookshop, Options
from tests.sites.server import background, listening

__all__ = ["BOOKS", "SEED", "SLOW_S", "Bookshop", "Expected", "serve", "serve_in_background"]


def serve(port: int = 0, **options: Unpack[Options]) -> AbstractAsyncContextManager[Bookshop]:
    """Serve a shop in the running event loop; port 0 takes a free one."""
    return listening(Bookshop(**options), port)


def serve_in_background(
    port: int = 0, **options: Unpack[Options]
) -> AbstractContextManager[Bookshop]:
    """Serve a shop from a thread, for blocking tests."""
    return background(Bookshop(**options), port)
