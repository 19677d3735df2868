"""Count the truncated and omitted parts of a page.

The column `cut` of a record has the counts (`text=30122 links=20`). A crawl's counters have the
number of incomplete pages, by part (`incomplete.text`) and in all (`incomplete.pages`). All limits:
docs/limits.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TypeAlias

# Parts with counts: plain values, so that a parser process can send them.
Cuts: TypeAlias = tuple[tuple[str, int], ...]

COUNTER, PAGES = "incomplete", "pages"
# Unit and meaning of each part's count.
PARTS: Mapping[str, str] = MappingProxyType(
    {
        "body": "the body is incomplete: longer than body_bytes_max, the connection ended "
        "early, or the server sent a part (1)",
        "unread": "reading it exceeded a page's limits and was stopped; error has the step (1)",
        "render": "its scripts were stopped because they exceeded a page's limits (1)",
        "text": "bytes of the main part that are missing in text and Markdown",
        "layout": "characters of text and Markdown in one line without layout, because the "
        "page is too large or too deeply nested",
        "text_chars": "characters beyond 5,000,000, of text or Markdown, whichever is longer",
        "omitted_around": "characters outside the main element, omitted from text and Markdown on "
        "purpose, as are all parts that begin with omitted_",
        "omitted_navigation": "characters of navigation, banners and footers",
        "omitted_asides": "characters of sidebars",
        "omitted_forms": "characters of forms, controls and buttons",
        "omitted_adverts": "characters of advertising, cookie notices, newsletters, sharing and"
        " related links",
        "omitted_hidden": "characters of hidden elements and dialogs",
        "omitted_controls": "characters of permalinks, edit links and line numbers",
        "links": "links beyond links_per_page_max, or beyond 1,000,000 characters of them all",
        "link_rows": "rows of the table of links beyond 5,000, or beyond 1,000,000 characters of "
        "them all",
        "tags": "tags whose attributes are read only in part",
        "items": "items that rules found, or would have found; the last row in invalid_items "
        "has the reason (1 if their number is unknown)",
        "data": "JSON-LD scripts and microdata elements that are not read completely",
        "title": "characters of the title beyond 500",
        "description": "characters of the description beyond 500",
        "language": "characters of the language beyond 35",
        "canonical": "canonical links that are not http or https URLs, or are too long (1)",
        "content_type": "characters of the header beyond 200",
        "etag": "characters of the header beyond 200",
        "last_modified": "characters of the header beyond 200",
        "error": "characters of the error beyond 300",
        "headers": "header lines that are not stored: repeated names, and lines beyond 65,536 "
        "characters",
        "redaction": "the rest is not stored, because more addresses and numbers precede it than "
        "are redacted (1)",
        "withheld": "the body is not stored, because only text can be redacted (1)",
    }
)

# Parts left out of texts on purpose. They do not make a page incomplete. Their counts do not
# include spaces.
OMITTED = frozenset(name for name in PARTS if name.startswith("omitted_"))


def counted(parts: Mapping[str, int]) -> Cuts:
    if not any(parts.values()):
        return ()  # most pages
    return tuple((name, number) for name, number in parts.items() if number > 0)


def joined(*all_cuts: Cuts) -> Cuts:
    """Return the sums of the counts of each part, in the order of `PARTS`."""
    if not any(all_cuts):
        return ()  # most pages
    sums: dict[str, int] = {}
    for cuts in all_cuts:
        for name, number in cuts:
            sums[name] = sums.get(name, 0) + number
    return tuple((name, sums[name]) for name in PARTS if name in sums)


def chars_beyond(text: str | None, chars_max: int) -> int:
    return max(0, len(text or "") - chars_max)


def column_text(cuts: Cuts) -> str | None:
    return " ".join(f"{name}={number}" for name, number in cuts) or None


def parts_of(column: str | None) -> Iterator[tuple[str, int]]:
    """Parse the column `cut` of a record. Words in an unknown form are ignored."""
    for word in (column or "").split():
        name, equals, number = word.partition("=")
        if equals and number.isascii() and number.isdigit():
            yield name, int(number)


def counters(column: str | None) -> Iterable[str]:
    """Return the names of the counters that a page with these cuts increases."""
    names = [name for name, _ in parts_of(column) if name not in OMITTED]
    return [f"{COUNTER}.{name}" for name in (*names, PAGES)] if names else []


def describe_cuts(column: str | None) -> str:
    return "; ".join(
        f"{name} {number:,}: {PARTS.get(name, '')}" for name, number in parts_of(column)
    )
