"""Words and numbers as a person reads them; nothing that a page said may steer the terminal.

Control characters (C0, C1, DEL), the marks that turn the direction of writing, and halves of
surrogate pairs are taken out of what came from the web; ends of lines become spaces. What a
command writes to a terminal beside that, has them written out.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from operator import itemgetter

BREAKS = re.compile("[\t\n\v\f\r\x85\u2028\u2029]+")
UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
# ESC and its C1 forms begin sequences: CSI … final byte, or OSC … BEL or ST.
SEQUENCES = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b\\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\\\|\x9c)"
)
BYTES_STEP = 1_000
MINUTE_S, HOUR_S, DAY_S = 60, 3_600, 86_400
# From when a rough span is told in the next unit.
MINUTES_FROM_S, HOURS_FROM_S, DAYS_FROM_S = 90, 90 * MINUTE_S, 36 * HOUR_S


def clean(text: str) -> str:
    """Take out whatever could do more than be read."""
    return UNSAFE.sub("", BREAKS.sub(" ", SEQUENCES.sub("", text)))


def clean_lines(text: str) -> str:
    """Do the same for every line, so that lines stay."""
    return "\n".join(map(clean, text.splitlines()))


def visible(text: str) -> str:
    """Write control characters out as Python writes them; tabs and ends of lines stay."""
    return UNSAFE.sub(_written_out, text)


def _written_out(found: re.Match[str]) -> str:
    return found[0] if found[0] in "\t\n" else found[0].encode("unicode_escape").decode("ascii")


def cut(text: str, chars_max: int) -> str:
    """Clean a text and shorten it to so many characters."""
    text = clean(text)
    return text if len(text) <= chars_max else text[: chars_max - 1] + "…"


def clock(seconds: float) -> str:
    """Write a span as `0:07`, `12:05`, `1:02:03` or `2 d 03:00`."""
    whole = max(0, round(seconds))
    days, rest = divmod(whole, DAY_S)
    hours, rest = divmod(rest, HOUR_S)
    minutes, left = divmod(rest, MINUTE_S)
    if days:
        return f"{days} d {hours:02}:{minutes:02}"
    return f"{hours}:{minutes:02}:{left:02}" if hours else f"{minutes}:{left:02}"


def span(seconds: int) -> str:
    """Write a setting's span in its largest whole unit: `7 days`, `90 minutes`, `1 second`."""
    for unit, word in ((DAY_S, "day"), (HOUR_S, "hour"), (MINUTE_S, "minute")):
        if seconds and seconds % unit == 0:
            return plural(seconds // unit, word)
    return plural(seconds, "second")


def roughly(seconds: float) -> str:
    """Write a span as in speech: `40 s`, `4 min`, `3 h`, `2 days`."""
    seconds = max(0.0, seconds)
    if seconds < MINUTES_FROM_S:
        return f"{max(1, round(seconds))} s"
    if seconds < HOURS_FROM_S:
        return f"{round(seconds / MINUTE_S)} min"
    if seconds < DAYS_FROM_S:
        return f"{round(seconds / HOUR_S)} h"
    return f"{seconds / DAY_S:,.0f} days"


def pace(delay_ms: int) -> str:
    """Write the distance of two requests: `250 ms`, `1.5 s`."""
    return f"{delay_ms} ms" if delay_ms < 1000 else f"{delay_ms / 1000:g} s"  # noqa: PLR2004 - a second


def plural(number: int, word: str) -> str:
    """Write a number of things."""
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def size(number: int) -> str:
    """Write a number of bytes in decimal units."""
    value = float(number)
    for unit in ("B", "kB", "MB", "GB"):
        if value < BYTES_STEP:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= BYTES_STEP
    return f"{value:.1f} TB"


def rate(per_s: float) -> str:
    """Write pages a second."""
    return f"{per_s:.1f}" if per_s < 100 else f"{per_s:,.0f}"  # noqa: PLR2004 - three digits do


def labelled(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Have a label stand once for all rows in a row that it belongs to."""
    return [
        (label if place == 0 else "", said)
        for label, those in itertools.groupby(pairs, itemgetter(0))
        for place, (_, said) in enumerate(those)
    ]


def table(
    rows: Sequence[Sequence[str]], *, right: Sequence[int] = (), indent: int = 0
) -> list[str]:
    """Set rows out in columns, two spaces apart; `right` names the columns of numbers.

    Cells are cleaned.
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
