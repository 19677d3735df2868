"""Tables of results, and pages of docs/ with generated parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


def grid(heads: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Format a Markdown table. The first `left` columns are aligned to the left."""
    rule = ["---" if column < left else "---:" for column in range(len(heads))]
    return "\n".join("| " + " | ".join(row) + " |" for row in (heads, rule, *rows))


def fill(page: Path, parts: Mapping[str, str]) -> None:
    """Replace parts of a page. A part begins with `<!-- name -->` and ends with `<!-- end -->`."""
    text = page.read_text()
    for name, part in parts.items():
        begin, end = f"<!-- {name} -->\n", "<!-- end -->"
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}{part}\n{end}{rest.partition(end)[2]}" if rest else text
    page.write_text(text)
