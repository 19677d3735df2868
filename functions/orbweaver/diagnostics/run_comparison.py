"""Comparison of two runs: states of their pages, sections of the site, differences of texts.

A record's state is decided as for exports (`exporting/changes.py`). A page has changed if the
digests of its two bodies differ. A page without a record in the later run can still exist: that run
did not request it, or found no link.

A section contains the URLs below its prefix: a host, then one path segment per level. Queries are
ignored. Sections have at most `LEVELS_MAX` levels, and a site has at most `SECTIONS_MAX` sections.
A URL beyond these limits counts for the deepest section that exists.

Texts are compared by lines, and by words within replaced lines. The first `LINES_MAX` lines are
compared, and lines are cut at `LINE_CHARS_MAX`. At worst the time is quadratic in the number of
lines: two seconds for `LINES_MAX`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from enum import StrEnum
from typing import Any, TypeAlias

from orbweaver.exporting.changes import RecordState, seen
from orbweaver.model.outcome import Outcome
from orbweaver.model.page_record import PageRecord
from orbweaver.model.url import host_of
from orbweaver.model.value import positional_value_class, value_class

LINES_MAX, LINE_CHARS_MAX, WORDS_MAX = 1_000, 2_000, 400
# Unchanged lines shown around a change.
AROUND = 2
_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
# A piece of a line, and whether it differs from the other text.
Piece: TypeAlias = tuple[str, bool]
LEVELS_MAX, SECTIONS_MAX, SHOWN_MAX = 8, 20_000, 40
# Longer segments are cut to this length.
SEGMENT_CHARS_MAX = 80


class PageDifference(StrEnum):
    """Difference of a page between two runs."""

    NEW = "new"
    CHANGED = "changed"
    MOVED = "moved"
    GONE = "gone"
    FAILED = "failed"
    NOT_SEEN = "not_seen"
    UNCHANGED = "unchanged"


@positional_value_class
class PageState:
    """The fields of a page record that the comparison of two runs needs."""

    state: RecordState
    still: bool
    sha256: str | None
    title: str | None
    said: str | None


@value_class
class ComparedPage:
    """A page with its difference, and its titles in both runs."""

    url: str
    difference: PageDifference
    title_before: str | None = None
    title: str | None = None
    said: str | None = None


def state_of(record: PageRecord) -> PageState:
    return PageState(
        seen(record),
        record.outcome is Outcome.UNCHANGED,
        record.sha256,
        record.title,
        record.error or (None if record.outcome is Outcome.FETCHED else record.reason),
    )


def compared(
    before: Mapping[str, PageState], after: Mapping[str, PageState]
) -> Iterator[ComparedPage]:
    for url, now in after.items():
        was = before.get(url)
        found = _difference(was, now)
        if found is not None:
            title_before = None if was is None else was.title
            said = None if now.state is RecordState.PAGE else now.said
            yield ComparedPage(
                url=url, difference=found, title_before=title_before, title=now.title, said=said
            )
    for url, was in before.items():
        if was.state is RecordState.PAGE and url not in after:
            yield ComparedPage(url=url, difference=PageDifference.NOT_SEEN, title_before=was.title)


def _difference(was: PageState | None, now: PageState) -> PageDifference | None:
    before = was is not None and was.state is RecordState.PAGE
    match now.state:
        case RecordState.PAGE if not before:
            return PageDifference.NEW
        case RecordState.PAGE:
            same = now.still or (was is not None and now.sha256 == was.sha256)
            return PageDifference.UNCHANGED if same else PageDifference.CHANGED
        case _ if not before:
            return None
        case RecordState.LEAD:
            return PageDifference.MOVED
        case RecordState.GONE:
            return PageDifference.GONE
        case _:
            return PageDifference.FAILED


def counts_of(pages: Iterable[ComparedPage]) -> dict[str, int]:
    found = Counter(page.difference for page in pages)
    return {one: found[one] for one in PageDifference}


@value_class
class DiffLine:
    """A line of one or both texts. `before` or `after` is None if that text lacks the line."""

    before: tuple[Piece, ...] | None
    after: tuple[Piece, ...] | None
    # Count of equal lines that are left out before this one.
    skipped: int = 0


@value_class
class TextDiff:
    """Differences of two texts. `cut_before` and `cut_after` count lines that were not compared."""

    lines: tuple[DiffLine, ...]
    same: bool
    cut_before: int
    cut_after: int


def text_diff(before: str, after: str) -> TextDiff:
    one, other = _lines(before), _lines(after)
    left, right = one[:LINES_MAX], other[:LINES_MAX]
    lines = tuple(_diff_lines(left, right))
    return TextDiff(
        lines=lines,
        same=before == after,
        cut_before=len(one) - len(left),
        cut_after=len(other) - len(right),
    )


def _lines(text: str) -> list[str]:
    return [line[:LINE_CHARS_MAX] for line in text.splitlines() if line.strip()]


def _diff_lines(left: Sequence[str], right: Sequence[str]) -> Iterator[DiffLine]:
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    shown_to = 0
    for group in matcher.get_grouped_opcodes(AROUND):
        skipped = group[0][1] - shown_to
        for tag, left_from, left_to, right_from, right_to in group:
            old, new = left[left_from:left_to], right[right_from:right_to]
            for place in range(max(len(old), len(new))):
                yield _line(
                    old[place] if place < len(old) else None,
                    new[place] if place < len(new) else None,
                    skipped,
                    same=tag == "equal",
                )
                skipped = 0
        shown_to = group[-1][2]


def _line(old: str | None, new: str | None, skipped: int, *, same: bool) -> DiffLine:
    if same or old is None or new is None:
        before = None if old is None else ((old, not same),)
        after = None if new is None else ((new, not same),)
        return DiffLine(before=before, after=after, skipped=skipped)
    left, right = _words(old, new)
    return DiffLine(before=left, after=right, skipped=skipped)


def _words(old: str, new: str) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    one, other = _WORDS.findall(old), _WORDS.findall(new)
    if max(len(one), len(other)) > WORDS_MAX:
        return ((old, True),), ((new, True),)
    left: list[Piece] = []
    right: list[Piece] = []
    for tag, i, j, k, m in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        if j > i:
            left.append(("".join(one[i:j]), tag != "equal"))
        if m > k:
            right.append(("".join(other[k:m]), tag != "equal"))
    return tuple(left), tuple(right)


@dataclass(slots=True)
class Section:
    """Sums over the records of all URLs below one prefix."""

    urls: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    bytes: int = 0
    latency_ms: int = 0
    timed: int = 0
    depth: int = 0
    inner: dict[str, Section] = field(default_factory=dict)

    def add(self, record: PageRecord) -> None:
        self.depth = min(self.depth, record.depth) if self.urls else record.depth
        self.urls += 1
        self.outcomes[record.outcome] = self.outcomes.get(record.outcome, 0) + 1
        self.bytes += record.bytes or 0
        if record.latency_ms is not None:
            self.latency_ms += record.latency_ms
            self.timed += 1

    def shown(self, prefix: str) -> dict[str, Any]:
        """Return the section as JSON, without inner sections."""
        return {
            "at": prefix,
            "urls": self.urls,
            "failed": self.outcomes.get(Outcome.FAILED, 0),
            "outcomes": dict(self.outcomes),
            "bytes": self.bytes,
            "latency_ms": round(self.latency_ms / self.timed) if self.timed else None,
            "depth": self.depth,
            "sections": len(self.inner),
        }


class SiteSections:
    """Adds up page records by section of the site."""

    def __init__(self) -> None:
        self.whole = Section()
        self._number = 0

    def add(self, record: PageRecord) -> None:
        section = self.whole
        section.add(record)
        for name in _names(record.url):
            inner = section.inner.get(name)
            if inner is None:
                if self._number >= SECTIONS_MAX:
                    return
                self._number += 1
                inner = section.inner[name] = Section()
            section = inner
            section.add(record)

    def shown(self, prefix: str) -> dict[str, Any] | None:
        """Return a prefix's section and its largest inner sections as JSON. None: no section."""
        section = self.whole
        for name in _names(prefix) if prefix else ():
            found = section.inner.get(name)
            if found is None:
                return None
            section = found
        inner = sorted(section.inner.items(), key=lambda one: (-one[1].urls, one[0]))
        rows = [one.shown(f"{prefix}/{name}" if prefix else name) for name, one in inner]
        within = sum(one.urls for _, one in inner)
        return {
            **section.shown(prefix),
            "inner": rows[:SHOWN_MAX],
            "inner_more": max(0, len(rows) - SHOWN_MAX),
            "urls_more": sum(row["urls"] for row in rows[SHOWN_MAX:]),
            # URLs in no inner section: the section's own page, and URLs that are too deep.
            "own": section.urls - within,
        }


def _names(url: str) -> Iterator[str]:
    """Yield the names of a URL's sections, from the host down."""
    host = host_of(url)
    yield host
    path = url[len(host) :].partition("?")[0]
    for segment in [one for one in path.split("/") if one][: LEVELS_MAX - 1]:
        yield segment[:SEGMENT_CHARS_MAX]
