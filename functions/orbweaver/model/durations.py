"""Parse and format durations: a number with `ms s m h d`, or plain seconds."""

from __future__ import annotations

import re

DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|s|m|h|d|)")
UNITS_MS = {"ms": 1, "s": 1_000, "": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class DurationError(ValueError):
    """The text is not a valid duration. The message contains examples."""


def duration_ms(text: str) -> int:
    match = DURATION.fullmatch(text.strip().lower())
    if match is None:
        raise DurationError(
            f"{text[:100]!r} is not a duration: give 0s, 250ms, 1.5s, 2h or 7d"
            " (a plain number means seconds)"
        )
    return round(float(match[1]) * UNITS_MS[match[2]])


def duration_text(span_ms: int) -> str:
    """Format a duration in ms, with the largest unit that shows it exactly."""
    names = sorted(filter(None, UNITS_MS), key=lambda name: -UNITS_MS[name])
    for name in names if span_ms else ():
        if span_ms % UNITS_MS[name] == 0:
            return f"{span_ms // UNITS_MS[name]}{name}"
    return "0s"


def duration_s(text: str) -> int:
    """Parse a duration in whole seconds, rounded up, so that 1 ms is not 0."""
    return -(-duration_ms(text) // 1_000)
