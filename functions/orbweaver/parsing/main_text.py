r"""The main text of a page: what its reader came for, as plain text and as Markdown.

Rules
- `parsing/main_part.py` decides what belongs to the text, `parsing/text_markup.py` rewrites what
  would change its meaning, `parsing/page_controls.py` removes controls and line numbers. What is
  removed is counted by reason (`cut`).
- Text and Markdown are two conversions of the same part. Text: paragraphs with an empty line
  between them, cells of a row with tabs. Markdown: headings, lists, tables, quotes, code in fences.
- Links and images are absolute where the page's base is known. What a definition list says of a
  term begins with a colon.
- The first `HTML_BYTES_MAX` and `WORDS_TAGS_MAX` of a page are read, the first `CHARS_MAX` of
  what comes out kept; what is beyond is counted (`cut`).
- Some pages would cost html-to-markdown too much. Their text is that of `html_scan.text_of`, in
  linear time and in one line, and this is counted. The bounds: quotes, lists and tables nested more
  than 20 deep (their prefixes stand before each line), any elements more than 200 deep, tables of
  more than 200,000 places (each becomes one), 60,000 tags, 20,000 ampersands and no-break spaces, a
  tag of 10,000 attributes. The same holds for what it refuses, for pages that may not become a tree
  (`parsing/parse_guard.py`), and for all behind the first half mebibyte of a page of 1 MiB or
  60,000 tags. Measured: docs/adr/0012-main-text.md.

The library is imported when it is first needed: it takes 60 ms.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

from orbweaver.model.cuts import Cuts, counted
from orbweaver.parsing.html_scan import INLINE, attributes_of, text_of
from orbweaver.parsing.main_part import AROUND, main_part
from orbweaver.parsing.page_controls import without_controls
from orbweaver.parsing.parse_guard import SMALL_BYTES_MAX, SMALL_TAGS_MAX, why_unsafe
from orbweaver.parsing.text_markup import (
    DEFINED,
    MARK_BYTES,
    escaped,
    rewrite,
    rewrite_formulas,
    unmarked,
    with_numbers,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from html_to_markdown import ConversionOptions
    from selectolax.lexbor import LexborHTMLParser, LexborNode

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
LONG_TAG_CHARS = 2 * ATTRIBUTES_MAX
PLACES_MAX = 200_000
DEPTH_MAX = 200
# A table is as wide as its cells say, and browsers stop there.
COLUMNS_MAX = 1_000

# Where words are parted.
_PARTING = re.compile(
    rf"<(?!/?(?:{INLINE.replace(' ', '|')})[\t\n\f\r />])(?=/?[a-z])".encode(), re.IGNORECASE
)

_END = rb"(?=[\t\n\f\r />])"
_MAIN = re.compile(rb"<main" + _END, re.IGNORECASE)
# Of a page with more, none is the main part.
_MAINS = 10
_EMPTY_BYTES = 1_000
_HIDING = (
    *((b"<!--", b"-->"), (b"<script", b"</script"), (b"<style", b"</style")),
    *((b"<template", b"</template"), (b"<", b">")),
)
_EXPONENT = re.compile(
    rb"(?<=[0-9A-Za-z)])<su(?:(p)|b)(?:\s[^<>]*+)?>(?=[-+]?[0-9])", re.IGNORECASE
)
_MAIN_END = re.compile(rb"</main" + _END, re.IGNORECASE)
# In serialized HTML names are in lower case, and a tag ends at the first ">".
_SHAPE = re.compile(r"<(/?)(?:(blockquote|table|[uo]l)|(tr)|t[dh])(?=[ >])([^<>]*+)")
_LONG_TAG = re.compile(rf"<[^>]{{{LONG_TAG_CHARS}}}[^>]*+")
_COLUMNS = re.compile(r'colspan="\s*([0-9]{1,9})')
_NO_CHARACTER = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_ASCII_CONTROLS = bytes([*range(9), *range(0x0B, 0x20), 0x7F])
_SPACES = " \t\xa0"
# What is left of a line that a source begins with spaces; code is indented by more.
_SPACE_FIRST = re.compile(r"^ (?! )", re.MULTILINE)
_LINES = re.compile(r"\n{3,}")
_DEFINITION = re.compile(
    r"<dd(?=[\t\n\f\r />])[^<>]*+>(?!\s*+<(?:/d[dl]|d[dt])[\t\n\f\r >])", re.IGNORECASE
)
# Where one stands alone in its line, within quotes or not: before a paragraph, or something else.
_ALONE = rf"^([ >]*){DEFINED}\n[ >]*\n\1"
_NO_PARAGRAPH = re.compile(
    rf"{_ALONE}(?=```|[-|>#\s]|[0-9]+\. |{DEFINED})|{DEFINED}\s*\Z", re.MULTILINE
)
_PARAGRAPH = re.compile(_ALONE, re.MULTILINE)
_MARK = re.compile(rf"{DEFINED} *")


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
    html = MARK_BYTES.sub(b"", html.replace(b"\0", b""))
    large = len(html) > CONVERTED_BYTES_MAX or html.count(b"<") > TAGS_MAX
    whole = _part(html) if large else html
    bounded = _bounded_in_tags(whole[:HTML_BYTES_MAX], WORDS_TAGS_MAX)
    unread = len(whole) - len(bounded)
    part, rest = _split(bounded)
    around = {AROUND: len(html) - len(whole)} if large else {}
    laid_out = _laid_out(without_controls(part), base)
    if laid_out is None:
        words = _tidy(text_of(_raised(bounded if large else _part(bounded))))
        return _bounded(words, words, text=unread, layout=len(words), **around)
    text, markdown, omitted = laid_out
    if words := _tidy(text_of(_raised(rest))):
        text, markdown = f"{text}\n\n{words}", f"{markdown}\n\n{words}"
    return _bounded(text, markdown, text=unread, layout=len(words), **around, **omitted)


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
    root, _ = main_part(_tree(_PARTING.sub(b" <", part)), part.lower())
    return root.text().strip() if root else ""


def _laid_out(part: bytes, base: str | None) -> tuple[str, str, Mapping[str, int]] | None:
    """Return text, Markdown and the counts of omitted characters by reason.

    Returns None if the page has no text, may not be parsed, or has a shape that costs too much.
    """
    if why_unsafe(part) is not None:
        return None
    low = part.lower()
    for choosing in (True, False):
        tree = _tree(part)
        if tree.body is None:
            return None
        rewrite_formulas(tree.body, low)
        root, omitted = main_part(tree, low, choosing=choosing)
        if root is None or not root.text().strip():
            continue
        rewrite(root, low)
        source = root.html or ""
        if _is_meal(root, source):
            return None
        source = with_numbers(source)
        markdown = _converted(_prepared(source), plain=False, base=base)
        text = _converted(source, plain=True) if markdown else None
        if markdown and text is not None:
            text = _SPACE_FIRST.sub("", text) if "\n " in text else text.removeprefix(" ")
            return unmarked(text, markdown=False), unmarked(markdown, markdown=True), omitted
    return None


def _tree(html: bytes) -> LexborHTMLParser:
    from selectolax.lexbor import LexborHTMLParser

    return LexborHTMLParser(html)


def _raised(html: bytes) -> bytes:
    """Write exponents as `10^6`, and indices as `10_6`."""
    return _EXPONENT.sub(lambda found: b"^" if found[1] else b"_", html)


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
    """Mark definitions, and characters that need an escape; the library knows neither."""
    source = escaped(source)
    if _DEFINITION.search(source):
        source = _DEFINITION.sub(rf"\g<0>{DEFINED}", source)
    return source


def _defined(markdown: str) -> str:
    """Begin definitions by a colon; not where one begins with what is more than a paragraph."""
    markdown = _NO_PARAGRAPH.sub(r"\1", markdown)
    return _MARK.sub(": ", _PARAGRAPH.sub(r"\1: ", markdown))


def _part(html: bytes) -> bytes:
    """Return what stands in the only `main` of a page, or the page."""
    mains = [found for found in islice(_MAIN.finditer(html), _MAINS) if _is_tag(html, found)]
    if len(mains) != 1:
        return html
    start = mains[0].start()
    end = _MAIN_END.search(html, start)
    part = html[start : end.start() if end else len(html)]
    return html if len(part) < _EMPTY_BYTES and not text_of(part) else part


def _is_tag(html: bytes, found: re.Match[bytes]) -> bool:
    """Whether a tag is outside comments, scripts, templates and attributes."""
    at = found.start()
    return all(html.rfind(begins, 0, at) <= html.rfind(ends, 0, at) for begins, ends in _HIDING)


def _is_meal(root: LexborNode, source: str) -> bool:
    """Whether serialized HTML has a shape that makes more of it than it is."""
    if source.count("<") > TAGS_MAX or source.count("&") > REFERENCES_MAX:
        return True
    if len(source) > LONG_TAG_CHARS and _has_long_tag(source):
        return True
    nesting = [node.tag for node in root.css("ul, ol, blockquote, table")]
    if len(nesting) <= NESTED_MAX and "table" not in nesting:
        return False
    nested = rows = columns = widest = 0
    for found in _SHAPE.finditer(source):
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


def _has_long_tag(source: str) -> bool:
    """Whether a tag has too many attributes: the library compares each with each."""
    tags = _LONG_TAG.findall(source)
    return any(attributes_of(tag.encode("utf-8", "replace")) > ATTRIBUTES_MAX for tag in tags)


def _converted(source: str, *, plain: bool, base: str | None = None) -> str | None:
    """Convert a part; None if the library refuses it or omits deep elements."""
    from html_to_markdown import ConversionError, convert

    try:
        options = _options(plain=plain)
        result = convert(source, replace(options, base_url=base) if base else options)
    except ConversionError:
        return None
    if result.warnings:
        return None
    content = result.content or ""
    return _tidy(_defined(content) if DEFINED in content else content)


@lru_cache(maxsize=2)
def _options(*, plain: bool) -> ConversionOptions:
    import html_to_markdown as library

    return library.ConversionOptions(
        output_format=library.OutputFormat.PLAIN if plain else library.OutputFormat.MARKDOWN,
        preprocessing=library.PreprocessingOptions(
            enabled=False, preset=library.PreprocessingPreset.MINIMAL
        ),
        extract_metadata=False,
        skip_images=plain,
        compact_tables=True,
        bullets="-",
        max_depth=DEPTH_MAX,
        # The data of a picture is long and unreadable.
        inline_data_media=library.InlineDataMedia.ALT_TEXT_ONLY,
        # Its defaults: what is given by name is looked up anew for each page, which takes long.
        heading_style=library.HeadingStyle.ATX,
        list_indent_type=library.ListIndentType.SPACES,
        highlight_style=library.HighlightStyle.DOUBLE_EQUAL,
        whitespace_mode=library.WhitespaceMode.NORMALIZED,
        newline_style=library.NewlineStyle.SPACES,
        code_block_style=library.CodeBlockStyle.BACKTICKS,
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
