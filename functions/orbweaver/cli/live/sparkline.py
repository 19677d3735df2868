"""Numbers as a row of bars, one or several lines high.

- The highest number fills the height. Zero is the lowest bar, and all that is more stands above it.
- What was not measured is a dot on the ground: neither a zero nor a guess.
"""

from __future__ import annotations

from collections.abc import Sequence

EIGHTHS = " ▁▂▃▄▅▆▇█"
STEPS = 8
UNSEEN = "·"


def sparkline(numbers: Sequence[float | None], columns: int, lines: int = 1) -> list[str]:
    """Draw the last of some numbers, one a column, the newest at the right; top line first."""
    shown = list(numbers)[-columns:] if columns > 0 else []
    highest = max((number for number in shown if number is not None), default=0.0)
    heights = [_eighths(number, highest, lines * STEPS) for number in shown]
    return [
        "".join(_cell(height, line) for height in heights)
        for line in reversed(range(max(0, lines)))
    ]


def _eighths(number: float | None, highest: float, most: int) -> int | None:
    if number is None:
        return None
    if number <= 0 or highest <= 0:
        return 1
    return min(most, 2 + round((most - 2) * number / highest))


def _cell(height: int | None, line: int) -> str:
    if height is None:
        return " " if line else UNSEEN
    return EIGHTHS[min(STEPS, max(0, height - line * STEPS))]
