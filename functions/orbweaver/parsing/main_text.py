"""Convert the main content of a page to plain text and Markdown.

Both are conversions of the same part of the page, without its controls and line numbers. Plain text
has an empty line between paragraphs and tabs between cells. Markdown has headings, lists, tables,
quotes and fenced code. Some pages would cost the library html-to-markdown too much time. Their text
is one line of words. Measurements: docs/adr/0012-main-text.md.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

from orbweaver.model.cuts import Cuts, counted
from orbweaver.model.value import value_class
from orbweaver.parsing.html_scan import INLINE, attributes_of, text_of
from orbweaver.parsing.main_part import AROUND, main_part
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
    from html_to_markdown import ConversionOptions
    from selectolax.lexbor import LexborHTMLParser, LexborNode


# Maximum size of a page, equal to the default limit of a body.
HTML_BYTES_MAX = 5 * 1024 * 1024
CHARS_MAX = 5_000_000
# Maximum size that html-to-markdown converts: 0.3 s of CPU for a page of a manual.
CONVERTED_BYTES_MAX = 1024 * 1024
# Size of the part that is converted of a larger page. The remaining text becomes one line of words.
HEAD_BYTES_MAX = 512 * 1024
TAGS_MAX = 60_000
# Limits of the part that `plain_words` parses, and below the range in which it searches the main
# part.
PLAIN_BYTES_MAX, PLAIN_TAGS_MAX = 64 * 1024, 2_000
BEGINNING_BYTES_MAX = 4 * PLAIN_BYTES_MAX
# Maximum number of tags in a page that becomes one line of words: 0.3 s of CPU.
WORDS_TAGS_MAX = 200_000
# Pages beyond these limits are not converted, because the library would take too long. In order,
# they limit: ampersands and no-break spaces; the nesting of quotes, lists and tables, because each
# line repeats their prefixes; attributes of a tag, and its length; cells of tables after expanding
# spans; the nesting of all other elements.
REFERENCES_MAX = 20_000
NESTED_MAX = 20
ATTRIBUTES_MAX = 10_000
LONG_TAG_CHARS = 2 * ATTRIBUTES_MAX
PLACES_MAX = 200_000
DEPTH_MAX = 200
# Browsers limit the width of a table to this many columns.
COLUMNS_MAX = 1_000

# Tags that separate words: all except inline tags.
_PARTING = re.compile(
    rf"<(?!/?(?:{INLINE.replace(' ', '|')})[\t\n\f\r />])(?=/?[a-z])".encode(), re.IGNORECASE
)

_END = rb"(?=[\t\n\f\r />])"
_MAIN = re.compile(rb"<main" + _END, re.IGNORECASE)
# A page with several `main` tags has no main part. The search ends after this number.
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
# A tag that determines the nesting of blocks or the size of tables. In serialized HTML names are in
# lower case, and a tag ends at the first ">".
_SHAPE = re.compile(r"<(/?)(?:(blockquote|table|[uo]l)|(tr)|t[dh])(?=[ >])([^<>]*+)")
_LONG_TAG = re.compile(rf"<[^>]{{{LONG_TAG_CHARS}}}[^>]*+")
_COLUMNS = re.compile(r'colspan="\s*([0-9]{1,9})')
_NO_CHARACTER = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_ASCII_CONTROLS = bytes([*range(9), *range(0x0B, 0x20), 0x7F])
_SPACES = " \t\xa0"
# A single space that the library leaves of a line's indentation. Code is indented by more spaces.
_SPACE_FIRST = re.compile(r"^ (?! )", re.MULTILINE)
_LINES = re.compile(r"\n{3,}")
_DEFINITION = re.compile(
    r"<dd(?=[\t\n\f\r />])[^<>]*+>(?!\s*+<(?:/d[dl]|d[dt])[\t\n\f\r >])", re.IGNORECASE
)
# A definition mark alone on its line, also within quotes, and the next block.
_ALONE = rf"^([ >]*){DEFINED}\n[ >]*\n\1"
_NO_PARAGRAPH = re.compile(
    rf"{_ALONE}(?=```|[-|>#\s]|[0-9]+\. |{DEFINED})|{DEFINED}\s*\Z", re.MULTILINE
)
_PARAGRAPH = re.compile(_ALONE, re.MULTILINE)
_MARK = re.compile(rf"{DEFINED} *")
# The text of a control link, from the end of its start tag to its end tag. `_CONTROL_START` matches
# the start tag.
_CONTROL = re.compile(
    rb""">[\t\n\f\r ]{0,20}
    (?:([0-9]{1,7})|(reply)|(?:skip|jump)[ ](?:directly[ ])?to[ ][^<>]{1,60})
    [\t\n\f\r ]{0,20}(?:</span>[\t\n\f\r ]{0,20})?</a>""",
    re.IGNORECASE | re.VERBOSE,
)
# Maximum number of bytes that are searched before each candidate, so that the work is linear.
_LOOKBACK_BYTES = 600
_CONTROL_START = re.compile(
    rb"<a[\t\n\f\r ]([^<>]*+)(?:>[\t\n\f\r ]*+<span[^<>]*+)?>\Z", re.IGNORECASE
)
_TO_PART = re.compile(rb"""href=["']?#([^\t\n\f\r "'>]*)""", re.IGNORECASE)
_LINE = re.compile(rb"(?:l|n|ln|line|lineno)[-_]?([0-9]{1,7})", re.IGNORECASE)
# Elements that are removed together with a link if they contain only the link.
_HOLDER = re.compile(rb"<(t[dh]|li|p)(?:[\t\n\f\r ][^<>]*+)?>[\t\n\f\r ]{0,20}\Z", re.IGNORECASE)
_HOLDER_END = re.compile(rb"[\t\n\f\r ]{0,20}</(t[dh]|li|p)>", re.IGNORECASE)
# A table with a cell of line numbers next to a cell of code, up to the beginning of the code.
_NUMBERED = re.compile(
    rb"""<table(?:[\t\n\f\r ][^<>]*+)?>[\t\n\f\r ]*+(?:<tbody>[\t\n\f\r ]*+)?
    <tr(?:[\t\n\f\r ][^<>]*+)?>
    [\t\n\f\r ]*+<td(?:[\t\n\f\r ][^<>]*+)?>((?:[\t\n\f\r 0-9]++|<(?!/?t[dhr]|/?table)[^<>]*+>)*+)
    </td>[\t\n\f\r ]*+<td(?:[\t\n\f\r ][^<>]*+)?>""",
    re.IGNORECASE | re.VERBOSE,
)
_LINE_DIGITS_MAX = 7
_ANY_TAG = re.compile(rb"<[^<>]*+>")


@value_class
class MainText:
    """Main text of a page, empty if it has none. `cut` counts omitted content by reason."""

    text: str
    markdown: str
    cut: Cuts = ()


def main_text(html: bytes, base: str | None = None) -> MainText:
    """Extract the main text of a page in UTF-8. `base` resolves relative references.

    Never raises.
    """
    html = MARK_BYTES.sub(b"", html.replace(b"\0", b""))
    large = len(html) > CONVERTED_BYTES_MAX or html.count(b"<") > TAGS_MAX
    whole = _main_element(html) if large else html
    bounded = _truncated_in_tags(whole[:HTML_BYTES_MAX], WORDS_TAGS_MAX)
    unread = len(whole) - len(bounded)
    part, rest = _split(bounded)
    around = {AROUND: len(html) - len(whole)} if large else {}
    laid_out = _convert_main_part(without_controls(part), base)
    if laid_out is None:
        words = _clean(text_of(_with_exponents(bounded if large else _main_element(bounded))))
        return _truncated(words, words, text=unread, layout=len(words), **around)
    text, markdown, omitted = laid_out
    if words := _clean(text_of(_with_exponents(rest))):
        text, markdown = f"{text}\n\n{words}", f"{markdown}\n\n{words}"
    omitted += Counter(around)
    return _truncated(text, markdown, text=unread, layout=len(words), **omitted)


def plain_words(html: bytes) -> str:
    """Return the first words of the main text. Takes a seventh of the time of `main_text`."""
    main = _main_element(html[:BEGINNING_BYTES_MAX])
    begins = _truncated_in_tags(main[:PLAIN_BYTES_MAX], PLAIN_TAGS_MAX)
    part = without_controls(begins)
    return _main_words(part) or text_of(part)


def _main_words(part: bytes) -> str:
    root, _ = main_part(_tree(_PARTING.sub(b" <", part)), part.lower())
    return root.text().strip() if root else ""


def _convert_main_part(part: bytes, base: str | None) -> tuple[str, str, Counter[str]] | None:
    """Return text, Markdown and the counts of omitted characters by reason.

    Returns None if the page has no text, or would cost the library too much.
    """
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
        if _is_too_complex(root, source):
            return None
        source = with_numbers(source)
        markdown = _converted(_with_marks(source), plain=False, base=base)
        text = _converted(source, plain=True) if markdown else None
        if markdown and text is not None:
            text = _SPACE_FIRST.sub("", text) if "\n " in text else text.removeprefix(" ")
            return unmarked(text, markdown=False), unmarked(markdown, markdown=True), omitted
    return None


def _tree(html: bytes) -> LexborHTMLParser:
    from selectolax.lexbor import LexborHTMLParser
    # Imported on first use, because the import takes 60 ms.

    return LexborHTMLParser(html)


def _with_exponents(html: bytes) -> bytes:
    return _EXPONENT.sub(lambda found: b"^" if found[1] else b"_", html)


def _truncated_in_tags(html: bytes, tags_max: int) -> bytes:
    if html.count(b"<") <= tags_max:
        return html
    *_, behind = html.split(b"<", tags_max + 1)
    return html[: len(html) - len(behind) - 1]


def _split(part: bytes) -> tuple[bytes, bytes]:
    """Split a large page before a tag: the part for the library, and the remaining part."""
    if len(part) <= CONVERTED_BYTES_MAX and part.count(b"<") <= TAGS_MAX:
        return part, b""
    at = part.rfind(b"<", 0, HEAD_BYTES_MAX) if len(part) > HEAD_BYTES_MAX else len(part)
    return part[:at], part[max(0, at) :]


def _truncated(whole: str, markdown: str, **cut: int) -> MainText:
    most = max(len(whole), len(markdown))
    return MainText(
        text=whole[:CHARS_MAX].rstrip("\n "),
        markdown=markdown[:CHARS_MAX].rstrip("\n "),
        cut=counted({**cut, "text_chars": most - CHARS_MAX}),
    )


def _with_marks(source: str) -> str:
    """Mark definitions, and characters that need an escape. The library supports neither."""
    source = escaped(source)
    if _DEFINITION.search(source):
        source = _DEFINITION.sub(rf"\g<0>{DEFINED}", source)
    return source


def _with_colons(markdown: str) -> str:
    """Replace definition marks by a colon at the beginning of a paragraph.

    Marks without a paragraph are removed.
    """
    markdown = _NO_PARAGRAPH.sub(r"\1", markdown)
    return _MARK.sub(": ", _PARAGRAPH.sub(r"\1: ", markdown))


def _main_element(html: bytes) -> bytes:
    mains = [found for found in islice(_MAIN.finditer(html), _MAINS) if _is_tag(html, found)]
    if len(mains) != 1:
        return html
    start = mains[0].start()
    end = _MAIN_END.search(html, start)
    part = html[start : end.start() if end else len(html)]
    return html if len(part) < _EMPTY_BYTES and not text_of(part) else part


def _is_tag(html: bytes, found: re.Match[bytes]) -> bool:
    at = found.start()
    return all(html.rfind(begins, 0, at) <= html.rfind(ends, 0, at) for begins, ends in _HIDING)


def _is_too_complex(root: LexborNode, source: str) -> bool:
    """Whether converting the page would give far more output or work than its size suggests."""
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
    tags = _LONG_TAG.findall(source)
    return any(attributes_of(tag.encode("utf-8", "replace")) > ATTRIBUTES_MAX for tag in tags)


def _converted(source: str, *, plain: bool, base: str | None = None) -> str | None:
    """Convert serialized HTML.

    Returns None if the library fails or omits deeply nested elements.
    """
    from html_to_markdown import ConversionError, convert

    try:
        options = _options(plain=plain)
        result = convert(source, replace(options, base_url=base) if base else options)
    except ConversionError:
        return None
    if result.warnings:
        return None
    content = result.content or ""
    return _clean(_with_colons(content) if DEFINED in content else content)


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
        # Show only the alternative text of images with data URLs, which are long and unreadable.
        inline_data_media=library.InlineDataMedia.ALT_TEXT_ONLY,
        # The library's defaults. If they are not given, the library looks each up by name for each
        # page, which takes long.
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


def _clean(text: str) -> str:
    """Remove control characters, trailing spaces and surplus empty lines."""
    if text.isascii():  # takes an eighth of the time of the other case
        text = text.encode().translate(None, _ASCII_CONTROLS).decode()
    else:
        text = _NO_CHARACTER.sub("", text)
    text = "\n".join([line.rstrip(_SPACES) for line in text.split("\n")])
    return (_LINES.sub("\n\n", text) if "\n\n\n" in text else text).strip("\n ")


def without_controls(html: bytes) -> bytes:
    """Remove control links and columns of line numbers."""
    html = _without_numbers(html)
    kept, at = [], 0
    for found in _CONTROL.finditer(html):
        span = _control_span(html, found)
        if span is not None and span[0] >= at:
            kept.append(html[at : span[0]])
            at = span[1]
    kept.append(html[at:])
    return b"".join(kept)


def _control_span(html: bytes, found: re.Match[bytes]) -> tuple[int, int] | None:
    """Return the span of a control link, or None if the match is no control link.

    If an item, paragraph or cell contains only the link, the span includes it. Control links are:
    line numbers that link to their own line (`<a href="#L7">7</a>` of cgit, gitweb, hgweb, Trac,
    Redmine), "Reply" links that are not part of a sentence, and in-page links with the text "Skip
    to ..." or "Jump to ...".
    """
    link = _match_before(_CONTROL_START, b"<a", html, found.start() + 1)
    if link is None:
        return None
    start, end = link.start(), found.end()
    end += bool(found[1]) and html.startswith(b" ", end)
    part = _TO_PART.search(link[1])
    if found[1]:
        line = _LINE.fullmatch(part[1]) if part else None
        if line is None or line[1] != found[1]:
            return None
    elif found[2]:
        before = html[max(0, start - _LOOKBACK_BYTES) : start].rstrip()[-1:]
        if before not in (b">", b"") or html[end : end + 20].lstrip()[:1] not in (b"<", b""):
            return None  # the match is a word of a sentence
    elif part is None:
        return None
    holder, held = _match_before(_HOLDER, b"<", html, start), _HOLDER_END.match(html, end)
    if holder is None or held is None or holder[1].lower() != held[1].lower():
        return start, end
    return holder.start(), held.end()


def _match_before(
    tags: re.Pattern[bytes], tag: bytes, html: bytes, at: int
) -> re.Match[bytes] | None:
    """Match a pattern directly before `at`, starting at the last `tag` before it."""
    begins = html.rfind(tag, max(0, at - _LOOKBACK_BYTES), at)
    return None if begins < 0 else tags.match(html, begins, at)


def _without_numbers(html: bytes) -> bytes:
    """Remove tables that show line numbers next to code (cgit, Pygments, Hexo), except the code."""
    # Only the start of such a table is removed. The parser then ignores its end tags.
    kept, at, looked_at, tables = [], 0, 0, 0
    for found in _NUMBERED.finditer(html):
        start = found.start()
        tables += html.count(b"<table", looked_at, start) - html.count(b"</table", looked_at, start)
        looked_at = start
        # If the table is inside another table, its end tag would close the other table.
        if tables <= 0 and _is_numbered(found):
            kept.append(html[at:start])
            at = found.end()
    kept.append(html[at:])
    return b"".join(kept)


def _is_numbered(found: re.Match[bytes]) -> bool:
    numbers = _ANY_TAG.sub(b" ", found[1]).split()
    code = b"<pre" in found[1].lower() or b"line" in found[0].lower()
    if not code or not numbers or max(map(len, numbers)) > _LINE_DIGITS_MAX:
        return False
    first = int(numbers[0])
    return [int(number) for number in numbers] == [*range(first, first + len(numbers))]
