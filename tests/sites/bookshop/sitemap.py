"""Sitemaps of the shop: an index, some pages, the books gzipped. Links lead to all of them too."""

from __future__ import annotations

import functools
import gzip
from collections.abc import Iterable
from xml.sax.saxutils import escape

from tests.sites.bookshop.catalogue import Book

NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"
LAST_MODIFIED = "2026-11-02"


@functools.lru_cache(maxsize=16)
def files(books: tuple[Book, ...], base_url: str) -> dict[str, tuple[str, bytes]]:
    index = _document(
        "sitemapindex", "sitemap", base_url, ["/sitemap-pages.xml", "/sitemap-books.xml.gz"]
    )
    pages = _document("urlset", "url", base_url, ["/", "/catalogue/", "/about/", "/world/"])
    shelves = _document("urlset", "url", base_url, [book.path for book in books])
    return {
        "/sitemap.xml": ("application/xml", index),
        "/sitemap-pages.xml": ("application/xml", pages),
        "/sitemap-books.xml.gz": ("application/gzip", gzip.compress(shelves, mtime=0)),
    }


def _document(root: str, element: str, base_url: str, paths: Iterable[str]) -> bytes:
    entries = "".join(
        f"<{element}><loc>{escape(base_url + path)}</loc>"
        f"<lastmod>{LAST_MODIFIED}</lastmod></{element}>\n"
        for path in paths
    )
    declaration = '<?xml version="1.0" encoding="UTF-8"?>'
    return f'{declaration}\n<{root} xmlns="{NAMESPACE}">\n{entries}</{root}>\n'.encode()
