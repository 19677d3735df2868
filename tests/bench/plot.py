"""Pages a second as bars, a panel a site, as SVG that needs nothing and reads on light and dark."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.bench.figures import Row

WIDTH, LEFT, RIGHT, TOP = 860, 300, 190, 64
BAR, GAP, HEAD, PANEL_GAP = 17, 7, 26, 18
INK, SOFT, PAPER = "#1f2430", "#6a7183", "#ffffff"
# Ours in one family, peers in another, the floor in grey.
COLOURS = {
    "floor": "#b3b9c6",
    "worker": "#0b6e63",
    "stack": "#2ba193",
    "stack-cold": "#8fd0c7",
    "scrapy": "#c8832b",
    "crawlee": "#e0b264",
}
FONT = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"


def svg(sites: Mapping[str, Any], titles: Mapping[str, str], rows: Sequence[Row]) -> str:
    """Draw the medians: a panel a site, scaled to its fastest client."""
    parts: list[str] = []
    y = TOP
    for site, about in sites.items():
        group = [row for row in rows if row.site == site]
        if group:
            parts += _panel(about["title"], titles, group, y)
            y += HEAD + len(group) * (BAR + GAP) + PANEL_GAP
    label = "Pages a second, by site and client"
    size = f'viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" height="{y}"'
    look = f'font-family="{FONT}" role="img" aria-label="{label}"'
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {look}>',
        f'<rect width="{WIDTH}" height="{y}" rx="8" fill="{PAPER}"/>',
        _text(24, 30, label, size=17, weight=600),
        _text(24, 50, "Each panel has its own scale; more is better.", size=12, fill=SOFT),
    ]
    return "\n".join([*head, *parts, "</svg>"]) + "\n"


def _panel(title: str, titles: Mapping[str, str], rows: Sequence[Row], y: int) -> list[str]:
    most = max(row.pages_per_s for row in rows)
    room = WIDTH - LEFT - RIGHT
    parts = [_text(24, y + 14, f"{title} ({rows[0].pages:,} pages)", size=13, weight=600)]
    y += HEAD
    for row in rows:
        width = max(1.0, room * row.pages_per_s / most)
        middle = y + BAR - 4
        colour = COLOURS.get(row.client, SOFT)
        said = f"{row.pages_per_s:,.0f}  ·  {row.cpu_ms_per_page:,.1f} ms CPU a page"
        parts += [
            _text(LEFT - 10, middle, titles[row.client], size=12, anchor="end"),
            f'<rect x="{LEFT}" y="{y}" width="{width:.1f}" height="{BAR}" rx="2" fill="{colour}"/>',
            _text(round(LEFT + width + 8), middle, said, size=12, fill=SOFT),
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
