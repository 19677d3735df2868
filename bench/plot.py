"""Draws ratios as bars, one panel per site: an SVG for light and dark themes."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bench.figures import Spread

WIDTH, LEFT, RIGHT, TOP = 860, 300, 190, 64
BAR, GAP, HEAD, PANEL_GAP = 17, 7, 26, 18
INK, SOFT, PAPER = "#1f2430", "#6a7183", "#ffffff"
COLOURS = {"worker": "#0b6e63", "stack": "#2ba193", "stack-cold": "#8fd0c7"}
FONT = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"


def svg(
    sites: Mapping[str, str],
    titles: Mapping[str, str],
    spreads: Mapping[tuple[str, str], Spread],
) -> str:
    """Draw medians as bars and minimum to maximum as lines, one panel per site, on one scale."""
    parts: list[str] = []
    y = TOP
    most = max((spread.high for spread in spreads.values()), default=1.0)
    for site, title in sites.items():
        group = {client: spread for (at, client), spread in spreads.items() if at == site}
        if group:
            parts += _panel(title, titles, group, y, most)
            y += HEAD + len(group) * (BAR + GAP) + PANEL_GAP
    label = "How many times as fast as Scrapy, by site and client"
    size = f'viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" height="{y}"'
    look = f'font-family="{FONT}" role="img" aria-label="{label}"'
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {look}>',
        f'<rect width="{WIDTH}" height="{y}" rx="8" fill="{PAPER}"/>',
        _text(24, 30, label, size=17, weight=600),
        _text(
            24, 50, "Bars are medians; lines reach from the least to the most.", size=12, fill=SOFT
        ),
    ]
    return "\n".join([*head, *parts, "</svg>"]) + "\n"


def _panel(
    title: str, titles: Mapping[str, str], group: Mapping[str, Spread], y: int, most: float
) -> list[str]:
    room = WIDTH - LEFT - RIGHT
    parts = [_text(24, y + 14, title, size=13, weight=600)]
    y += HEAD
    for client, spread in group.items():
        width, low, high = (
            room * value / most for value in (spread.median, spread.low, spread.high)
        )
        middle = y + BAR / 2
        wide, colour = max(1.0, width), COLOURS.get(client, SOFT)
        bar = f'x="{LEFT}" y="{y}" width="{wide:.1f}" height="{BAR}" rx="2" fill="{colour}"'
        line = f'x1="{LEFT + low:.1f}" x2="{LEFT + high:.1f}" y1="{middle}" y2="{middle}"'
        said = f"{spread.median:,.1f}"
        parts += [
            _text(LEFT - 10, y + BAR - 4, titles[client], size=12, anchor="end"),
            f"<rect {bar}/>",
            f'<line {line} stroke="{INK}" stroke-width="1.5"/>',
            _text(round(LEFT + max(width, high) + 8), y + BAR - 4, said, size=12, fill=SOFT),
        ]
        y += BAR + GAP
    return parts


def _text(
    x: int, y: int, words: str, *, size: int, weight: int = 400, fill: str = INK, anchor: str = ""
) -> str:
    side = f' text-anchor="{anchor}"' if anchor else ""
    return (
        f'<text x="{x}" y="{y}" font-size="{size}" font-weight="{weight}" fill="{fill}"{side}>'
        f"{escape(words)}</text>"
    )
