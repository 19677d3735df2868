"""Charts of the HTML report as inline SVG. Colours are classes of its stylesheet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, LABEL, VALUE, ROW, BAR = 720, 190, 80, 26, 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A bar: its label and its parts as number and class."""

    label: str
    parts: Sequence[tuple[int, str]]

    @property
    def total(self) -> int:
        return sum(number for number, _ in self.parts)


def bars(name: str, title: str, chart: Sequence[Bar]) -> str:
    """Return a chart of horizontal bars. `name` is a unique id, `title` describes the chart."""
    longest = max([bar.total for bar in chart] or [1]) or 1
    scale = (WIDTH - LABEL - VALUE) / longest
    rows = "".join(_row(bar, place * ROW, scale) for place, bar in enumerate(chart))
    said = "; ".join(f"{bar.label}: {bar.total:,}" for bar in chart)
    return (
        f'<svg viewBox="0 0 {WIDTH} {len(chart) * ROW}" role="img"'
        f' aria-labelledby="{name}-title {name}-text"><title id="{name}-title">{escape(title)}'
        f'</title><desc id="{name}-text">{escape(said)}</desc>{rows}</svg>'
    )


def _row(bar: Bar, top: int, scale: float) -> str:
    middle, left, shapes = top + ROW / 2, float(LABEL), []
    for number, kind in bar.parts:
        if number:
            # A part of few findings is visible, too.
            width = max(number * scale, 2.0)
            shapes.append(
                f'<rect class="{kind}" x="{left:.1f}" y="{middle - BAR / 2}" width="{width:.1f}"'
                f' height="{BAR}" rx="2"/>'
            )
            left += width + 1
    return (
        f'<text class="label" x="{LABEL - 10}" y="{middle}">{escape(bar.label)}</text>'
        f'{"".join(shapes)}<text class="value" x="{left + 6:.1f}" y="{middle}">{bar.total:,}</text>'
    )
