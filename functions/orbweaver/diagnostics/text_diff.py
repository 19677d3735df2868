"""Difference of two texts by lines, and by words within replaced lines.

The first `LINES_MAX` lines are compared, and lines are cut at `LINE_CHARS_MAX`. At worst the time
is quadratic in the number of lines: two seconds for `LINES_MAX`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TypeAlias

LINES_MAX, LINE_CHARS_MAX, WORDS_MAX = 1_000, 2_000, 400
# Unchanged lines shown around a change.
AROUND = 2
_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
# A piece of a line, and whether it differs from the other text.
Piece: TypeAlias = tuple[str, bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffLine:
    """A line of one or both texts. `before` or `after` is None if that text lacks the line."""

    before: tuple[Piece, ...] | None
    after: tuple[Piece, ...] | None
    # Number of equal lines before this one that are not shown.
    skipped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
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
