r"""The main text of a page: what its reader came for, as plain text and as Markdown.

Rules
- Where a page has one `main`, that is looked at; else all of it. Left out of that is what is there
  on every page: navigation, asides, footers, forms, banners, by their elements, roles and the names
  that are usual for them (`_selectors`). Where nothing is left by that, they stay.
  So are controls and line numbers (`parsing/page_controls.py`).
- Both are of the same part. Text: paragraphs with an empty line between them, cells of a row with
  tabs. Markdown: headings, lists, tables, quotes, code in fences, links as they were written.
- Links and images are absolute where the page's base is known. A fence has the language that `pre`,
  `code` or the elements around them name (`highlight-python3`, `language-rust`). What a definition
  list says of a term begins with a colon.
- The first `HTML_BYTES_MAX` and `WORDS_TAGS_MAX` of that part are read, the first `CHARS_MAX` of
  what comes out kept; what is beyond is counted (`cut`).
- Some pages would cost html-to-markdown too much. Their text is that of `markup.text_of`, in linear
  time and in one line, and this is counted. The bounds: quotes, lists and tables nested more than
  20 deep (their prefixes stand before each line), any elements more than 200 deep, tables of more
  than 200,000 places (each becomes one), 60,000 tags, 20,000 ampersands and no-break spaces, a tag
  of 10,000 attributes. The same holds for what it refuses, and for all behind the first half
  mebibyte of a page of 1 MiB or 60,000 tags.
- Ampersands that begin nothing are written out before, and doctypes left away: it looks for the end
  of each up to the end of the page. Measured: docs/adr/0012-main-text.md.

The library is imported when it is first needed: it takes 60 ms.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from html import unescape
from string import ascii_lowercase, ascii_uppercase
from typing import TYPE_CHECKING

from orbweaver.model.cuts import Cuts, counted
from orbweaver.parsing.html_scan import INLINE, TAG, attributes_of, text_of
from orbweaver.parsing.page_controls import without_controls
from orbweaver.parsing.parse_guard import SMALL_BYTES_MAX, SMALL_TAGS_MAX

if TYPE_CHECKING:
    from html_to_markdown import ConversionOptions

# As much as a body has by default.
HTML_BYTES_MAX = 5 * 1024 * 1024
CHARS_MAX = 5_000_000
# Of what the library is given: 0.3 s of CPU for a manual's page.
CONVERTED_BYTES_MAX = 1024 * 1024
# Of a larger page: the rest has its words alone.
HEAD_BYTES_MAX = 512 * 1024
TAGS_MAX = 60_000
# Where the main part is looked for of a page whose words are compared.
BEGINNING_BYTES_MAX = 4 * SMALL_BYTES_MAX
# Of what has its words alone: 0.3 s of CPU.
WORDS_TAGS_MAX = 200_000
REFERENCES_MAX = 20_000
NESTED_MAX = 20
ATTRIBUTES_MAX = 10_000
LONG_TAG_BYTES = 2 * ATTRIBUTES_MAX
PLACES_MAX = 200_000
DEPTH_MAX = 200
# A table is as wide as its cells say, and browsers stop there.
COLUMNS_MAX = 1_000

# What is left out of a page: by what is written in it; by what a value of an attribute is; by what
# one begins with. Each costs the library a look at every element, so only those are asked for that
# a page may have.
_BY_TEXT = {
    b"<nav": "nav",
    b"<aside": "aside",
    b"<footer": "footer",
    b"<dialog": "dialog",
    b"<template": "template",
    b"aria-hidden": "[aria-hidden=true]",
}
# In the words of a page, these too; and where words are parted.
_NO_WORDS = ("script", "style", "noscript", "form")
_PARTING = re.compile(
    rf"<(?!/?(?:{INLINE.replace(' ', '|')})[\t\n\f\r />])(?=/?[a-z])".encode(), re.IGNORECASE
)
_BY_VALUE = {
    b"navigation": ("[role=navigation]", "#navigation", ".navigation"),
    b"search": ("[role=search]",),
    b"banner": ("[role=banner]",),
    b"contentinfo": ("[role=contentinfo]",),
    b"complementary": ("[role=complementary]",),
    b"header": ("#header",),
    **{
        name.encode(): (f"#{name}", f".{name}")
        for name in ("masthead", "nav", "navbar", "menu", "sidebar", "footer")
    },
    **{
        name.encode(): (f".{name}",)
        for name in (
            *("search-form", "site-header", "headerlink", "skip-link", "navheader", "navfooter"),
            *("sphinxsidebar", "widget-area", "toc", "site-footer", "page-footer"),
            *("ad", "ads", "share", "related", "anchor-link"),
            # MediaWiki, and the form for a comment of WordPress.
            *("mw-editsection", "editsection", "mw-jump-link", "printfooter", "comment-respond"),
            # Line numbers: cgit, gitweb, Pygments, Trac, and others.
            *("linenumbers", "linenr", "linenos", "linenodiv", "lineno", "line-num", "lines-num"),
            *("diff-line-num", "hljs-ln-numbers"),
        )
    },
    b"mw-navigation": ("#mw-navigation",),
    b"jump-to-nav": ("#jump-to-nav",),
    b"sitesub": ("#siteSub",),
}
_BY_BEGINNING = {
    **{
        begins.encode(): (f"[class^={begins}]",)
        for begins in (
            *("breadcrumb", "sidebar-", "footer-", "newsletter", "subscribe", "ad-", "advert"),
            *("share-", "sharing", "social", "related-", "recommend"),
        )
    },
    **{
        begins.encode(): (f"[id^={begins}]", f"[class^={begins}]")
        for begins in ("cookie", "consent")
    },
}
_BEGINNINGS = tuple(_BY_BEGINNING)

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
# What may be the value of `id`, `class` or `role`, whatever tag or text it stands in.
_VALUE = re.compile(
    rb"""=(?<=[dDsSeE\t\n\f\r ]=)(?=[\t\n\f\r ]*+("[^"]*+"|'[^']*+'|[^\t\n\f\r >]{0,100}+))"""
)
_PLAIN_VALUE = bytes.maketrans(
    ascii_uppercase.encode() + b"\"'/", ascii_lowercase.encode() + b"   "
)
_NO_CHARACTER = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_ASCII_CONTROLS = bytes([*range(9), *range(0x0B, 0x20), 0x7F])
_SPACES = " \t\xa0"
# What is left of a line that a source begins with spaces; code is indented by more.
_SPACE_FIRST = re.compile(r"^ (?! )", re.MULTILINE)
_LINES = re.compile(r"\n{3,}")
# Elements around a bare `pre`, or around one of these, that name the language of its code.
_MAY_NAME = re.compile(r"(?:highlight|language|lang|brush)[-:]")
_CODE = re.compile(
    r"""(<(?:div|figure)[\t\n\f\r ][^<>]{0,300}?(?<![^"'\t\n\f\r ])
    (?:highlight-(?:source-|text-)?|language-|lang-|brush:[ ]?)([A-Za-z0-9+\#]{1,30})
    (?=["'\t\n\f\r ;])[^<>]{0,300}>\s*(?:<div[^<>]{0,300}>\s*)?<pre)>""",
    re.VERBOSE,
)
_NO_LANGUAGES = frozenset({"default", "none", "text", "plain", "plaintext", "notranslate"})
# A mark that no text has (a noncharacter of Unicode) stands where a definition begins.
_DEFINED = "\ufdd0"
_DEFINITION = re.compile(
    r"<dd(?=[\t\n\f\r />])[^<>]*+>(?!\s*+<(?:/d[dl]|d[dt])[\t\n\f\r >])", re.IGNORECASE
)
# Where one stands alone in its line, within quotes or not: before a paragraph, or something else.
_ALONE = rf"^([ >]*){_DEFINED}\n[ >]*\n\1"
_NO_PARAGRAPH = re.compile(
    rf"{_ALONE}(?=```|[-|>#\s]|[0-9]+\. |{_DEFINED})|{_DEFINED}\s*\Z", re.MULTILINE
)
_PARAGRAPH = re.compile(_ALONE, re.MULTILINE)
_MARK = re.compile(rf"{_DEFINED} *")


@dataclass(frozen=True, slots=True, kw_only=True)
class MainText:
    """What a page's reader came for; both are empty where there is nothing. `cut`: what is not."""

    text: str
    markdown: str
    cut: Cuts = ()


def main_text(html: bytes, base: str | None = None) -> MainText:
    """Find the main text of a page in UTF-8, whose references are seen from `base`.

    Nothing raises, whatever the bytes.
    """
    whole = _part(html)
    bounded = _bounded_in_tags(whole[:HTML_BYTES_MAX], WORDS_TAGS_MAX)
    part, rest = _split(_DOCTYPE.sub(b"", bounded).replace(b"\0", b""))
    unread = len(whole) - len(bounded)
    if not _is_meal(part):
        source = _BARE.sub(b"&amp;", without_controls(part)).decode("utf-8", "replace")
        written = _prepared(source)
        for left_out in (_selectors(part), None):
            markdown = _converted(written, left_out, plain=False, base=base)
            text = _converted(source, left_out, plain=True) if markdown else None
            if markdown and text is not None:
                markdown = _defined(markdown) if _DEFINED in markdown else markdown
                text = _SPACE_FIRST.sub("", text) if "\n " in text else text.removeprefix(" ")
                words = _tidy(text_of(rest))
                text, markdown = (f"{one}\n\n{words}" if words else one for one in (text, markdown))
                return _bounded(text, markdown, text=unread, layout=len(words))
    words = _tidy(text_of(part + rest))
    return _bounded(words, words, text=unread, layout=len(words))


def plain_words(html: bytes) -> str:
    """Find the words of the main text of how a page begins, in a seventh of the time.

    As much of it is read as is safe for a tree in any case (parsing/parse_guard.py), of a main part
    that begins within some times as much.
    """
    main = _part(html[:BEGINNING_BYTES_MAX])
    begins = _bounded_in_tags(main[:SMALL_BYTES_MAX], SMALL_TAGS_MAX)
    part = without_controls(begins)
    return _words_in_tree(part) or text_of(part)


def _words_in_tree(part: bytes) -> str:
    """Return the text of a page without what is left out; nothing where nothing is left."""
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(_PARTING.sub(b" <", part))
    left_out = tree.css(", ".join((*_NO_WORDS, *_selectors(part))))
    # Each once, and what lies within another before that one: its memory goes with it.
    for node in reversed({node.mem_id: node for node in left_out}.values()):
        node.decompose()
    return tree.body.text().strip() if tree.body else ""


def _bounded_in_tags(html: bytes, tags_max: int) -> bytes:
    """Return as much of a page as has so many tags."""
    if html.count(b"<") <= tags_max:
        return html
    *_, behind = html.split(b"<", tags_max + 1)
    return html[: len(html) - len(behind) - 1]


def _split(part: bytes) -> tuple[bytes, bytes]:
    """Part what the library is given from what is too much for it, before a tag."""
    if len(part) <= CONVERTED_BYTES_MAX and part.count(b"<") <= TAGS_MAX:
        return part, b""
    at = part.rfind(b"<", 0, HEAD_BYTES_MAX) if len(part) > HEAD_BYTES_MAX else len(part)
    return part[:at], part[max(0, at) :]


def _bounded(whole: str, markdown: str, **cut: int) -> MainText:
    """Keep as much of both as may be kept, and count the rest."""
    most = max(len(whole), len(markdown))
    return MainText(
        text=whole[:CHARS_MAX].rstrip("\n "),
        markdown=markdown[:CHARS_MAX].rstrip("\n "),
        cut=counted({**cut, "text_chars": most - CHARS_MAX}),
    )


def _prepared(source: str) -> str:
    """Write out what the library does not know: languages of code, and definitions."""
    if "<pre>" in source and _MAY_NAME.search(source):
        source = _CODE.sub(_with_language, source)
    if _DEFINITION.search(source):
        source = _DEFINITION.sub(rf"\g<0>{_DEFINED}", source.replace(_DEFINED, ""))
    return source


def _with_language(found: re.Match[str]) -> str:
    name = found[2].lower()
    return found[0] if name in _NO_LANGUAGES else f'{found[1]} class="language-{name}">'


def _defined(markdown: str) -> str:
    """Begin definitions by a colon; not where one begins with what is more than a paragraph."""
    markdown = _NO_PARAGRAPH.sub(r"\1", markdown)
    return _MARK.sub(": ", _PARAGRAPH.sub(r"\1: ", markdown))


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
    long_tags = [tag for tag in TAG.findall(html) if len(tag) > LONG_TAG_BYTES]
    return any(attributes_of(tag) > ATTRIBUTES_MAX for tag in long_tags)


def _selectors(html: bytes) -> tuple[str, ...]:
    """Choose what is to be left out of a page by what it may have of it."""
    said = b" ".join(set(_VALUE.findall(html))).translate(_PLAIN_VALUE)
    if b"&" in said:
        said += b" " + unescape(said.decode("utf-8", "replace")).lower().encode()
    values = set(said.split())
    beginnings = [value for value in values if value.startswith(_BEGINNINGS)]
    chosen = [one for text, one in _BY_TEXT.items() if text in html]
    for value in sorted(values & _BY_VALUE.keys()):
        chosen += _BY_VALUE[value]
    if beginnings:
        for begins, selectors in _BY_BEGINNING.items():
            if any(value.startswith(begins) for value in beginnings):
                chosen += selectors
    return tuple(chosen)


def _converted(
    source: str, left_out: tuple[str, ...] | None, *, plain: bool, base: str | None = None
) -> str | None:
    """Convert a page without these parts; of None all stay.

    Returns None if the library refuses, or leaves out what lies too deep.
    """
    from html_to_markdown import ConversionError, convert

    try:
        options = _options(left_out, plain=plain)
        result = convert(source, replace(options, base_url=base) if base else options)
    except ConversionError:
        return None
    return None if result.warnings else _tidy(result.content or "")


@lru_cache(maxsize=256)
def _options(left_out: tuple[str, ...] | None, *, plain: bool) -> ConversionOptions:
    import html_to_markdown as library

    return library.ConversionOptions(
        output_format=library.OutputFormat.PLAIN if plain else library.OutputFormat.MARKDOWN,
        exclude_selectors=list(left_out or ()),
        preprocessing=library.PreprocessingOptions(
            enabled=left_out is not None,
            preset=library.PreprocessingPreset.AGGRESSIVE,
            remove_navigation=True,
            remove_forms=True,
        ),
        extract_metadata=False,
        skip_images=plain,
        compact_tables=True,
        bullets="-",
        max_depth=DEPTH_MAX,
        # Its defaults: what is given by name is looked up anew for each page, which takes long.
        heading_style=library.HeadingStyle.ATX,
        list_indent_type=library.ListIndentType.SPACES,
        highlight_style=library.HighlightStyle.DOUBLE_EQUAL,
        whitespace_mode=library.WhitespaceMode.NORMALIZED,
        newline_style=library.NewlineStyle.SPACES,
        code_block_style=library.CodeBlockStyle.BACKTICKS,
        inline_data_media=library.InlineDataMedia.KEEP,
        hidden_content=library.HiddenContent.DROP,
        url_escape_style=library.UrlEscapeStyle.ANGLE,
        link_style=library.LinkStyle.INLINE,
        tier_strategy=library.TierStrategy.AUTO,
    )


def _tidy(text: str) -> str:
    """Do without characters that are none, and invisible spaces."""
    if text.isascii():  # an eighth of the time
        text = text.encode().translate(None, _ASCII_CONTROLS).decode()
    else:
        text = _NO_CHARACTER.sub("", text)
    text = "\n".join([line.rstrip(_SPACES) for line in text.split("\n")])
    return (_LINES.sub("\n\n", text) if "\n\n\n" in text else text).strip("\n ")
