"""Count the main headings of a page, except those in comments, scripts and the like."""

from __future__ import annotations

import re
from itertools import islice

H1_MAX = 10
# Part of the page before a heading in which the start of a comment or script is searched.
BEFORE_BYTES_MAX = 16_384
_H1 = re.compile(rb"<[hH]1[\t\n\f\r />]")
# Begin and end of constructs whose content is not shown. Only comments hide most headings.
_HIDING = (
    (b"<!--", b"-->"),
    (b"<script", b"</script"),
    (b"<template", b"</template"),
    (b"<textarea", b"</textarea"),
)


def count_h1(html: bytes) -> int:
    """Return the number of `h1` elements, at most `H1_MAX`."""
    return sum(not _is_hidden(html, found.start()) for found in islice(_H1.finditer(html), H1_MAX))


def _is_hidden(html: bytes, at: int) -> bool:
    first = max(0, at - BEFORE_BYTES_MAX)
    return any(html.rfind(begin, first, at) > html.rfind(end, first, at) for begin, end in _HIDING)
