"""Draws lines over two axes as a self-contained SVG for light and dark themes."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from math import floor, log10
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDTH, HEIGHT = 760, 358
LEFT, RIGHT, TOP, BOTTOM = 84, 190, 76, 52
INK, SOFT, GRID, PAPER = "#1f2430", "#6a7183", "#e4e7ee", "#ffffff"
COLOURS = ("#0b6e63", "#c8832b", "#3b5bdb", "#9c36b5", "#868e96", "#c92a2a")
FONT = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"
LABEL_GAP = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line in one of the colours. Without a name it continues another line."""

    name: str
    hue: int
    points: Sequence[tuple[float, float]]
    dashed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """An axis: its title, and whether its scale is logarithmic."""

    title: str
    powers: bool = False


class _Scale:
    """Positions of values between two ends of the picture."""

    def __init__(self, axis: Axis, values: Sequence[float], begin: float, end: float) -> None:
        self.powers = axis.powers
        known = [value for value in values if value > 0] or [1.0]
        if self.powers:
            low, high = floor(log10(min(known))), log10(max(known))
            self.ticks = [10.0**power for power in range(low, floor(high + 0.999) + 1)]
        else:
            step = _step(max(known))
            count = floor(max(known) / step + 0.999)
            self.ticks = [step * place for place in range(count + 1)]
        self._low, self._high = self._of(self.ticks[0]), self._of(self.ticks[-1])
        self._begin, self._end = begin, end

    def _of(self, value: float) -> float:
        return log10(max(value, 1e-9)) if self.powers else value

    def place(self, value: float) -> float:
        share = (self._of(value) - self._low) / ((self._high - self._low) or 1)
        return self._begin + min(max(share, 0.0), 1.0) * (self._end - self._begin)


def svg(title: str, note: str, across: Axis, up: Axis, lines: Sequence[Line]) -> str:
    """Draw lines. The same values give the same bytes."""
    points = [point for line in lines for point in line.points]
    x = _Scale(across, [point[0] for point in points], LEFT, WIDTH - RIGHT)
    y = _Scale(up, [point[1] for point in points], HEIGHT - BOTTOM, TOP)
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    look = f'font-family="{FONT}" role="img" aria-label="{escape(title)}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {look}>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" fill="{PAPER}"/>',
        _text(20, 26, title, size=16, weight=600),
        _text(20, 44, note, size=12, fill=SOFT),
        _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, across.title, fill=SOFT, anchor="middle"),
        _text(LEFT - 8, TOP - 12, up.title, fill=SOFT, anchor="end"),
    ]
    for tick in x.ticks:
        at = x.place(tick)
        parts += [
            _rule(at, TOP, at, HEIGHT - BOTTOM),
            _text(at, HEIGHT - BOTTOM + 16, _short(tick), anchor="middle"),
        ]
    for tick in y.ticks:
        at = y.place(tick)
        parts += [
            _rule(LEFT, at, WIDTH - RIGHT, at),
            _text(LEFT - 8, at + 4, _short(tick), anchor="end"),
        ]
    names = []
    for line in lines:
        if not line.points:
            continue
        colour = COLOURS[line.hue % len(COLOURS)]
        path = " ".join(f"{x.place(a):.1f},{y.place(b):.1f}" for a, b in line.points)
        dash = ' stroke-dasharray="5 4"' if line.dashed else ""
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>'
        )
        if line.name:
            names.append((y.place(line.points[-1][1]), line.name, colour))
    return "\n".join([*parts, *_names(names), "</svg>"]) + "\n"


def _names(names: list[tuple[float, str, str]]) -> list[str]:
    """Place the names of lines at their right ends, without overlap."""
    parts, least = [], float(TOP)
    for at, name, colour in sorted(names):
        least = max(at + 4, least)
        parts.append(_text(WIDTH - RIGHT + 10, least, name, fill=colour, weight=600))
        least += LABEL_GAP
    return parts


def _step(most: float) -> float:
    rough = most / 5
    power = 10.0 ** floor(log10(rough))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)


def _short(value: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def _rule(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" stroke="{GRID}"/>'


def _text(
    x: float,
    y: float,
    words: str,
    *,
    size: int = 12,
    weight: int = 400,
    fill: str = INK,
    anchor: str = "start",
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" font-weight="{weight}" fill="{fill}"'
        f' text-anchor="{anchor}">{escape(words)}</text>'
    )
