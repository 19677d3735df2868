"""Extractor functions for the shop's pages, deployed with a worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orbweaver.parsing.page import Page

STAR = "★"


def books(page: Page, url: str) -> Iterator[dict[str, Any]]:
    """Yield a book with its number of stars and words."""
    for node in page.tree.css("article.book"):
        stars, text = node.css_first(".rating"), node.css_first("p.description")
        if stars is None or text is None:
            message = f"the template has changed: {url}"
            raise LookupError(message)
        yield {
            "title": page.title,
            "stars": stars.text().count(STAR),
            "words": len(text.text().split()),
        }
