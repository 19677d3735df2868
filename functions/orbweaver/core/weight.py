"""What reading an answer may cost: light ones are read in place, others by a process of its own.

Rules
- Light is what takes at most 100 ms of CPU in place at a time, whatever it holds. Told by counts
  that take a hundredth of the reading itself; in doubt it is not light.
- Links, title and body of a page: at most `BYTES_MAX` and `TAGS_MAX`. It is read by its outline,
  which is linear; a small one that is plain becomes a tree, which is quicker (`core/markup.py`).
- Not plain is what makes lexbor quadratic: tags with many attributes, and formatting elements of
  many kinds, each of which every tag may have copied when they are left open: no more kinds than
  the page has, each thrice, and of `a` the last one (HTML Standard, 13.2.4.3 and 13.2.6.4.7).
- Main text and redaction are ten times as slow: at most `SMALL_BYTES_MAX` and `SMALL_TAGS_MAX`.
- Items are never light: rules may look at each part of a page for each other part of it.

Measured: docs/adr/0015-reading-has-a-budget.md.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from orbweaver.core.markup import TREE_BYTES_MAX, TREE_TAGS_MAX

if TYPE_CHECKING:
    from orbweaver.core.reading import Job

# What reading a page may use, in a process of its own that has some 40 MB before it begins.
CPU_S = 0.7
MEMORY_BYTES = 160 * 1024 * 1024

BYTES_MAX = 2_700 * 1024
TAGS_MAX = 100_000
# Beyond these a page is read in two turns: its outline takes 70 ms at worst, and the rest of it 40
# where the outline has no more tags than this.
TURN_BYTES, TURN_TAGS, KEPT_TAGS = 512 * 1024, 20_000, 40_000
SMALL_BYTES_MAX = 64 * 1024
SMALL_TAGS_MAX = 2_000
# A body of which nothing is read but what it is kept by.
OTHER_BYTES_MAX = 6 * 1024 * 1024
# A tree of so many tags and bytes takes 65 ms at worst.
SURE_TAGS, SURE_BYTES = 1_000, 28_000
TAG_BYTES_MAX = 768
# `html` and `body` tags become one element each, with the attributes of all.
MERGED_MAX = 4
# Kinds of formatting elements times tags, and times the bytes of those kinds.
COPIES_MAX = 30_000
COPIED_BYTES_MAX = 20_000_000

# Tags of `html` and `body`, and tags that are long.
_LONG = re.compile(rb"<(?:[hH][tT][mM]|[bB][oO][dD])[^>]*+|<[a-zA-Z][^>]{%d}" % TAG_BYTES_MAX)
# A quoted value with a ">" in it: the tag may go on.
_GOES_ON = re.compile(rb"""=[\t\n\f\r ]*+(?:"[^">]*+>|'[^'>]*+>)""")
_FORMATTING = re.compile(
    rb"<(?:[bB](?:[iI][gG])?|[cC][oO][dD][eE]|[eE][mM]|[fF][oO][nN][tT]|[iI]"
    rb"|[nN][oO][bB][rR]|[sS](?:[mM][aA][lL][lL]|[tT][rR][iI][kK][eE]|[tT][rR][oO][nN][gG])?"
    rb"|[tT][tT]|[uU])(?=[\t\n\f\r />])[^>]*+"
)


def is_light(job: Job) -> bool:
    """Whether an answer takes at most 100 ms to be read."""
    keeping, body = job.keeping, job.body
    if not job.html:
        return len(body) <= (SMALL_BYTES_MAX if keeping.redacted else OTHER_BYTES_MAX)
    if job.items:
        return False
    if keeping.texts or keeping.redacted:
        bytes_max, tags_max = SMALL_BYTES_MAX, SMALL_TAGS_MAX
    else:
        bytes_max, tags_max = BYTES_MAX, TAGS_MAX
    if len(body) > bytes_max:
        return False
    return len(body) <= tags_max or body.count(b"<") <= tags_max


def is_long(job: Job) -> bool:
    """Whether a page is to be read in two turns."""
    if not job.html or len(job.body) <= TURN_TAGS:
        return False
    return len(job.body) > TURN_BYTES or job.body.count(b"<") > TURN_TAGS


def is_done_in_place(outline: bytes | None) -> bool:
    """Whether the second turn of a page, of which this is the outline, is light as well."""
    return outline is None or len(outline) <= KEPT_TAGS or outline.count(b"<") <= KEPT_TAGS


def is_plain(html: bytes) -> bool:
    """Whether a page may become a tree at once: it is small, and has nothing that is quadratic."""
    if len(html) <= SURE_TAGS:
        return True
    if len(html) > TREE_BYTES_MAX or (tags := html.count(b"<")) > TREE_TAGS_MAX:
        return False
    long, many = len(html) > SURE_BYTES, tags > SURE_TAGS
    if (long or many) and _GOES_ON.search(html) is not None:
        return False
    return (not long or _has_short_tags(html)) and (not many or _has_few_formats(html, tags))


def _has_short_tags(html: bytes) -> bool:
    found = _LONG.findall(html)
    return len(found) <= MERGED_MAX and all(len(tag) < TAG_BYTES_MAX for tag in found)


def _has_few_formats(html: bytes, tags: int) -> bool:
    kinds = set(_FORMATTING.findall(html))
    number, size = len(kinds) + 1, sum(map(len, kinds))
    return number * tags <= COPIES_MAX and size * tags <= COPIED_BYTES_MAX
