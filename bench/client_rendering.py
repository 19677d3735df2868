"""How often pages are classified as empty without scripts, and the cost of the test.

    python -m bench.client_rendering                the installed manuals
    python -m bench.client_rendering FOLDER ...     the HTML files below some folders

Cost is the CPU of reading all pages of a folder, with and without the test, in alternating turns:
the median of each, and of their ratios. Pages classified as empty are listed.
"""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

from bench.sites import SITES, Manual
from orbweaver.parsing.client_rendering import needs_rendering
from orbweaver.parsing.page import Page, parse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TURNS = 15
URL = "https://example.com/a/b.html"
NAMES = ("*.html", "*.htm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """CPU microseconds per page without and with the test, and the median ratio of paired turns."""

    without_us: float
    with_us: float
    ratio: float


def read(folder: Path) -> dict[Path, bytes]:
    found = (file for name in NAMES for file in folder.rglob(name) if file.is_file())
    return {file: file.read_bytes() for file in sorted(found)}


def needing(pages: Mapping[Path, bytes]) -> list[Path]:
    return [file for file, body in pages.items() if _parsed(body).needs_rendering]


def cost(bodies: Sequence[bytes], turns: int = TURNS) -> Cost:
    """Measure the test's cost in `turns` pairs of turns, in alternating order."""
    pairs = []
    for turn in range(turns):
        order = (True, False) if turn % 2 else (False, True)
        took = {telling: _cpu_s(bodies, telling=telling) for telling in order}
        pairs.append((took[False], took[True]))
    without_s, with_s = (statistics.median(one) for one in zip(*pairs, strict=True))
    return Cost(
        without_us=without_s / len(bodies) * 1e6,
        with_us=with_s / len(bodies) * 1e6,
        ratio=statistics.median(after / before for before, after in pairs),
    )


def _cpu_s(bodies: Sequence[bytes], *, telling: bool) -> float:
    told = needs_rendering if telling else lambda *_: False
    with patch("orbweaver.parsing.page.needs_rendering", told):
        began_s = time.process_time()
        for body in bodies:
            _parsed(body)
        return time.process_time() - began_s


def _parsed(body: bytes) -> Page:
    return parse(body, URL, "text/html")


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.client_rendering", description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER")
    parser.add_argument("--turns", type=int, default=TURNS, help=f"pairs of turns ({TURNS})")
    asked = parser.parse_args(words)
    manuals = [site for site in SITES.values() if isinstance(site, Manual) and not site.absent]
    for folder in asked.folders or [manual.folder for manual in manuals]:
        pages = read(folder)
        if not pages:
            print(f"{folder}: no HTML")
            continue
        taken, found = needing(pages), cost([*pages.values()], asked.turns)
        print(
            f"{folder}: {len(taken):,} of {len(pages):,} pages need scripts;"
            f" {found.without_us:.1f} us a page without telling, {found.with_us:.1f} with it,"
            f" ratio {found.ratio:.3f}"
        )
        for file in taken:
            print(f"  {file}")


if __name__ == "__main__":
    main()
