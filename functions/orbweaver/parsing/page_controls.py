"""Remove links that are controls, and line numbers, because they are no part of a page's text."""

from __future__ import annotations

import re

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
