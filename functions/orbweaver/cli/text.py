"""Format texts and numbers for people, so that text from web pages cannot control the terminal.

`clean` is for text of the web. It removes control characters (C0, C1, DEL), direction marks and
lone surrogates, and turns line breaks into spaces. `escape_controls` escapes them in all other
terminal output.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from operator import itemgetter

from orbweaver.model.amounts import clock, pace, plural, rate, roughly, size, span

BREAKS = re.compile("[\t\n\v\f\r\x85\u2028\u2029]+")
UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
# Terminal sequences, which begin with ESC or a C1 character: CSI … final byte, or OSC … BEL or ST.
SEQUENCES = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b\\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\\\|\x9c)"
)
__all__ = [
    "UNSAFE",
    "clean",
    "clean_lines",
    "clock",
    "cut",
    "escape_controls",
    "labelled",
    "pace",
    "plural",
    "rate",
    "roughly",
    "size",
    "span",
    "table",
]


def clean(text: str) -> str:
    """Remove control characters from a text. Line breaks become spaces."""
    return UNSAFE.sub("", BREAKS.sub(" ", SEQUENCES.sub("", text)))


def clean_lines(text: str) -> str:
    return "\n".join(map(clean, text.splitlines()))


def escape_controls(text: str) -> str:
    """Escape control characters as in Python strings, except tabs and line breaks."""
    return UNSAFE.sub(_written_out, text)


def _written_out(found: re.Match[str]) -> str:
    return found[0] if found[0] in "\t\n" else found[0].encode("unicode_escape").decode("ascii")


def cut(text: str, chars_max: int) -> str:
    """Clean a text and truncate it to `chars_max` characters."""
    text = clean(text)
    return text if len(text) <= chars_max else text[: chars_max - 1] + "…"


def labelled(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return rows with an empty label if the row above has the same label."""
    return [
        (label if place == 0 else "", said)
        for label, those in itertools.groupby(pairs, itemgetter(0))
        for place, (_, said) in enumerate(those)
    ]


def table(
    rows: Sequence[Sequence[str]], *, right: Sequence[int] = (), indent: int = 0
) -> list[str]:
    """Format rows as columns, two spaces apart, without control characters.

    `right` are the indices of right-aligned columns.
    """
    if not rows:
        return []
    rows = [[*map(clean, row)] for row in rows]
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return [
        " " * indent
        + "  ".join(
            cell.rjust(width) if place in right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
