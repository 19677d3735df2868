r"""The main text of a page: what its reader came for, as plain text and as Markdown.

Rules
- Where a page has one `main`, that is looked at; else all of it. Left out of that is what is there
  on every page: navigation, asides, footers, forms, banners, by their elements, roles and the names
  that are usual for them (`LEFT_OUT`). Where nothing is left by that, they stay.
- Both are of the same part. Text: paragraphs with an empty line between them, cells of a row with
  tabs. Markdown: headings, lists, tables, quotes, code in fences, links as they were written.
- The first `HTML_BYTES_MAX` of that part are read, the first `CHARS_MAX` of what comes out kept.
- What html-to-markdown would make a meal of has its text as `markup.text_of` finds it, in linear
  time and in one line: quotes, lists and tables nested more than 20 deep (their prefixes stand
  before each line), tables of more than 200,000 places (each becomes one), 60,000 tags, 20,000
  ampersands and no-break spaces, or a tag of 10,000 attributes. So is what it refuses.
- Ampersands that begin nothing are written out before, and doctypes left away: it looks for the end
  of each up to the end of the page. Measured: docs/adr/0012-main-text.md.

The library is imported when it is first needed: it takes 60 ms.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from orbweaver.core.markup import TAG, attributes_of, text_of

if TYPE_CHECKING:
    from html_to_markdown import ConversionOptions

HTML_BYTES_MAX = 512 * 1024
CHARS_MAX = 500_000
TAGS_MAX = 60_000
REFERENCES_MAX = 20_000
NESTED_MAX = 20
ATTRIBUTES_MAX = 10_000
LONG_TAG_BYTES = 2 * ATTRIBUTES_MAX
PLACES_MAX = 200_000
DEPTH_MAX = 200
# A table is as wide as its cells say, and browsers stop there.
COLUMNS_MAX = 1_000

# What is left out of a page, by a word that the page then has: few have many of them, and each
# costs the library a look at every element.
LEFT_OUT = {
    b"<nav": ("nav",),
    b"<aside": ("aside",),
    b"<footer": ("footer",),
    b"<dialog": ("dialog",),
    b"<template": ("template",),
    b"aria-hidden": ("[aria-hidden=true]",),
    b"navigation": ("[role=navigation]", "#navigation", ".navigation"),
    b"search": ("[role=search]", ".search-form"),
    b"banner": ("[role=banner]",),
    b"contentinfo": ("[role=contentinfo]",),
    b"complementary": ("[role=complementary]",),
    b"header": ("#header", ".site-header", ".headerlink"),
    b"masthead": ("#masthead", ".masthead"),
    b"skip-link": (".skip-link",),
    b"nav": ("#nav", ".nav", "#navbar", ".navbar", ".navheader", ".navfooter"),
    b"menu": ("#menu", ".menu"),
    b"breadcrumb": ("[class^=breadcrumb]",),
    b"sidebar": ("#sidebar", ".sidebar", "[class^=sidebar-]", ".sphinxsidebar"),
    b"widget": (".widget-area",),
    b"toc": (".toc",),
    b"footer": ("#footer", ".footer", ".site-footer", ".page-footer", "[class^=footer-]"),
    b"cookie": ("[id^=cookie]", "[class^=cookie]"),
    b"consent": ("[id^=consent]", "[class^=consent]"),
    b"newsletter": ("[class^=newsletter]",),
    b"subscribe": ("[class^=subscribe]",),
    b"ad": (".ad", ".ads", "[class^=ad-]", "[class^=advert]"),
    b"shar": (".share", "[class^=share-]", "[class^=sharing]"),
    b"social": ("[class^=social]",),
    b"related": (".related", "[class^=related-]"),
    b"recommend": ("[class^=recommend]",),
    b"anchor-link": (".anchor-link",),
}

_NBSP = "\u00a0".encode()
_END = rb"(?=[\t\n\f\r />])"
_MAIN = re.compile(rb"<main" + _END, re.IGNORECASE)
_MAIN_END = re.compile(rb"</main" + _END, re.IGNORECASE)
_BARE = re.compile(rb"&(?!#?[0-9A-Za-z]{1,31};)")
_DOCTYPE = re.compile(rb"<!doctype[^>]*+>?+", re.IGNORECASE)
_SHAPE = re.compile(
    rb"<(/?)(?:(blockquote|table|[uo]l)|(tr)|t[dh])" + _END + rb"([^<>]*+)", re.IGNORECASE
)
_COLUMNS = re.compile(rb"colspan[\t\n\f\r ]*+=[\t\n\f\r \"']*+([0-9]{1,9})", re.IGNORECASE)
_NO_CHARACTER = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_SPACES_LAST = re.compile(r"(?<![ \t\xa0])[ \t\xa0]++$", re.MULTILINE)
# What is left of a line that a source begins with spaces; code is indented by more.
_SPACE_FIRST = re.compile(r"^ (?! )", re.MULTILINE)
_LINES = re.compile(r"\n{3,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class MainText:
    """What a page's reader came for; both are empty where there is nothing."""

    text: str
    markdown: str


def main_text(html: bytes) -> MainText:
    """Find the main text of a page in UTF-8; nothing raises, whatever the bytes."""
    part = _DOCTYPE.sub(b"", _part(html)[:HTML_BYTES_MAX]).replace(b"\0", b"")
    if not _is_meal(part):
        source = _BARE.sub(b"&amp;", part).decode("utf-8", "replace")
        wanted = tuple(word for word in LEFT_OUT if word in part)
        for left_out in (wanted, None):
            markdown = _converted(source, left_out, plain=False)
            text = _converted(source, left_out, plain=True) if markdown else None
            if markdown and text is not None:
                return MainText(text=_SPACE_FIRST.sub("", text), markdown=markdown)
    text = _tidy(text_of(part))
    return MainText(text=text, markdown=text)


def _part(html: bytes) -> bytes:
    """Return what stands in the only `main` of a page, or the page."""
    found = _MAIN.search(html)
    if found is None or _MAIN.search(html, found.end()) is not None:
        return html
    end = _MAIN_END.search(html, found.end())
    return html[found.start() : end.start() if end else len(html)]


def _is_meal(html: bytes) -> bool:
    """Whether a page has a shape that makes more of it than it is."""
    if html.count(b"<") > TAGS_MAX or html.count(b"&") + html.count(_NBSP) > REFERENCES_MAX:
        return True
    if len(html) > LONG_TAG_BYTES and _has_long_tag(html):
        return True
    nested = rows = columns = widest = 0
    for found in _SHAPE.finditer(html):
        closes, nests, row, attributes = found.groups()
        if nests:
            nested = max(0, nested - 1) if closes else nested + 1
            if nested > NESTED_MAX:
                return True
        elif not closes:
            if row:
                rows, columns = rows + 1, 0
            else:
                span = _COLUMNS.search(attributes) if attributes else None
                columns += min(int(span[1]), COLUMNS_MAX) if span else 1
            widest = max(widest, columns)
    return max(1, rows) * widest > PLACES_MAX


def _has_long_tag(html: bytes) -> bool:
    """Whether a tag has too many attributes: the library compares each with each."""
    return any(
        tag.end() - tag.start() > LONG_TAG_BYTES and attributes_of(tag[0]) > ATTRIBUTES_MAX
        for tag in TAG.finditer(html)
    )


def _converted(source: str, left_out: tuple[bytes, ...] | None, *, plain: bool) -> str | None:
    """Convert a page without these parts; of None all stay. Returns None if the library refuses."""
    from html_to_markdown import ConversionError, convert

    try:
        return _tidy(convert(source, _options(left_out, plain=plain)).content or "")
    except ConversionError:
        return None


@lru_cache(maxsize=256)
def _options(left_out: tuple[bytes, ...] | None, *, plain: bool) -> ConversionOptions:
    from html_to_markdown import ConversionOptions, PreprocessingOptions

    return ConversionOptions(
        output_format="plain" if plain else "markdown",
        exclude_selectors=[one for word in left_out or () for one in LEFT_OUT[word]],
        preprocessing=PreprocessingOptions(
            enabled=left_out is not None,
            preset="aggressive",
            remove_navigation=True,
            remove_forms=True,
        ),
        extract_metadata=False,
        skip_images=plain,
        compact_tables=True,
        bullets="-",
        max_depth=DEPTH_MAX,
    )


def _tidy(text: str) -> str:
    """Do without characters that are none, spaces that nobody sees, and all beyond the bound."""
    text = _NO_CHARACTER.sub("", text[:CHARS_MAX].replace("\r\n", "\n"))
    return _LINES.sub("\n\n", _SPACES_LAST.sub("", text)).strip("\n ")
