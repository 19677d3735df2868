"""What reading an answer may cost: light ones are read in place, others by a process of its own.

Rules
- Light is what takes at most 100 ms of CPU in place at a time, whatever it holds. Told by counts
  that take a hundredth of the reading itself; in doubt it is not light.
- Links, title and body of a page: at most `BYTES_MAX` and `TAGS_MAX`. It is read by its outline,
  which is linear (`parsing/html_scan.py`); a small one becomes a tree, which is quicker there, and
  as yet not slow where lexbor is quadratic.
- Main text and redaction are ten times as slow: at most `SMALL_BYTES_MAX` and `SMALL_TAGS_MAX`.
- Items need a tree. They are light of a page that becomes one for its links, and of an orderly one
  (`parsing/parse_guard.py`) of at most `SMALL_BYTES_MAX` and `SMALL_TAGS_MAX`; as long as they
  take at most `LIGHT_UNITS` of work: rules may look at each part of a page for each other part of
  it. What takes more is read anew by that process. Extractors of a user's own are never light.
- The stages of a page with texts or items are turns by themselves.

Measured: docs/adr/0015-reading-has-a-budget.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from orbweaver.parsing.html_scan import TAG_BYTES_MIN
from orbweaver.parsing.parse_guard import is_orderly

if TYPE_CHECKING:
    from orbweaver.parsing.page import Prepared
    from orbweaver.worker.page_reading import Job

# What reading a page may use, in a process of its own that has some 40 MB before it begins.
CPU_S = 0.7
MEMORY_BYTES = 160 * 1024 * 1024

BYTES_MAX = 2_700 * 1024
TAGS_MAX = 100_000
# A longer page is read in two turns: its outline takes 70 ms at worst, and the rest of it 40 where
# the outline has no more tags than this.
TURN_BYTES, KEPT_TAGS = 60_000, 40_000
SMALL_BYTES_MAX = 64 * 1024
SMALL_TAGS_MAX = 2_000
# Of items, in place: some 20 ms, at worst 100.
LIGHT_UNITS = 500_000
# A body of which nothing is read but what it is kept by.
OTHER_BYTES_MAX = 6 * 1024 * 1024


def is_light(job: Job) -> bool:
    """Whether an answer takes at most 100 ms to be read."""
    keeping, body = job.keeping, job.body
    if not job.html:
        return len(body) <= (SMALL_BYTES_MAX if keeping.redacted else OTHER_BYTES_MAX)
    if any(rule.extractor is not None for rule in job.items):
        return False
    if job.items or keeping.texts or keeping.redacted:
        bytes_max, tags_max = SMALL_BYTES_MAX, SMALL_TAGS_MAX
    else:
        bytes_max, tags_max = BYTES_MAX, TAGS_MAX
    if len(body) > bytes_max:
        return False
    return len(body) <= tags_max * TAG_BYTES_MIN or body.count(b"<") <= tags_max


def has_light_tree(prepared: Prepared) -> bool:
    """Whether the tree of a page that `is_light`, which its items need, is made in little time."""
    if prepared.outline is None:
        return True
    html = prepared.html
    return len(html) <= SMALL_BYTES_MAX and html.count(b"<") <= SMALL_TAGS_MAX and is_orderly(html)


def has_stages(job: Job) -> bool:
    """Whether the stages of reading an answer are turns by themselves."""
    return job.html and (bool(job.items) or job.keeping.texts)


def is_long(job: Job) -> bool:
    """Whether a page is to be read in two turns; going by its length alone, which costs nothing."""
    return job.html and len(job.body) > TURN_BYTES


def is_done_in_place(outline: bytes | None) -> bool:
    """Whether the second turn of a page, of which this is the outline, is light as well."""
    return outline is None or len(outline) <= KEPT_TAGS or outline.count(b"<") <= KEPT_TAGS
