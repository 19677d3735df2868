"""Write llms.txt: the title and description of a site, and its pages by section.

Source: llmstxt.org. Readers expect the pattern `- [title](url): description`, so titles have no
brackets and URLs no parentheses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from urllib.parse import unquote, urlsplit

from orbweaver.cli import text
from orbweaver.cli.generate.listing import FirstPage, ListedPage

TOP = "Pages"
_BRACKETS = str.maketrans("[]", "()")
_PARENTHESES = str.maketrans({"(": "%28", ")": "%29"})


def llms_txt(first: FirstPage, pages: Iterable[ListedPage]) -> Iterator[str]:
    """Yield the lines. `pages` are sorted by section."""
    yield f"# {_line(first.title) or urlsplit(first.url).netloc}"
    if description := _line(first.description):
        yield from ("", f"> {description}")
    for section, listed in groupby(pages, attrgetter("section")):
        # Between slashes, a segment cannot be the heading "Optional", which has a meaning of its
        # own.
        heading = f"/{_line(unquote(section))}/" if section else TOP
        yield from ("", f"## {heading}", "")
        yield from map(_item, listed)


def _item(page: ListedPage) -> str:
    title = _line(page.title) or _line(unquote(page.url))
    description = _line(page.description)
    item = f"- [{title.translate(_BRACKETS)}]({page.url.translate(_PARENTHESES)})"
    return f"{item}: {description}" if description else item


def _line(words: str | None) -> str:
    """Return a text of a page on one line, so that it cannot add headings or items."""
    return " ".join(text.clean(words or "").split())
