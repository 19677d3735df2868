"""Durations as people write them: a number with `ms s m h d` behind it, or plain seconds."""

from __future__ import annotations

import re

DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|s|m|h|d|)")
UNITS_MS = {"ms": 1, "s": 1_000, "": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class DurationError(ValueError):
    """What was written is no duration; the text says what would be one."""


def duration_ms(text: str) -> int:
    """Read a duration as milliseconds."""
    match = DURATION.fullmatch(text.strip().lower())
    if match is None:
        raise DurationError(
            f"{text[:100]!r} is not a duration: give 0s, 250ms, 1.5s, 2h or 7d"
            " (a plain number means seconds)"
        )
    return round(float(match[1]) * UNITS_MS[match[2]])


def duration_text(span_ms: int) -> str:
    """Write a duration as it is read, in the largest unit that it is a whole number of."""
    names = sorted(filter(None, UNITS_MS), key=lambda name: -UNITS_MS[name])
    for name in names if span_ms else ():
        if span_ms % UNITS_MS[name] == 0:
            return f"{span_ms // UNITS_MS[name]}{name}"
    return "0s"


def duration_s(text: str) -> int:
    """Read a duration as whole seconds, rounded up: a window of 1 ms is not one of 0."""
    return -(-duration_ms(text) // 1_000)
