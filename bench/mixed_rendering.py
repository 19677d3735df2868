"""Content that `--render auto` finds on a mixed site, and the share of pages it renders.

    python -m bench.mixed_rendering [--pages 2000] [--then shell|frame] [--mode auto]

On the site (tests/sites/mixed.py), 6 % of the pages use 12 templates filled by a script, three of
which do not look like it. Another 8 % use a template that is redesigned half-way: to empty shells,
or to pages that look complete. `content_percent` is the share of the known words that a crawl
found. `missed_after_redesign` counts pages of that template stored without rendering before the
first rendered one.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import Counter

import orbweaver
from tests.sites.mixed import FRAME, SHELL, Mixed, sections_of
from tests.sites.server import background


def measure(site: Mixed, mode: str, workers: int = 1) -> dict[str, float | int | str]:
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        done = orbweaver.crawl(
            f"{site.url}/",
            store=folder,
            delay="0s",
            workers=workers,
            render=mode,
            text=True,
            max_depth=1,
        )
        rows = {row["url"].removeprefix(site.url): row for row in done.pages}
        texts = {row["url"].removeprefix(site.url): row["text"] for row in done.texts}
    took_s = time.monotonic() - began_s
    words = {path: site.words_of(path) for path in site.paths}
    found = sum(word in texts.get(path, "") for path, some in words.items() for word in some)
    why = Counter(str(rows[path].get("render_why")) for path in site.paths if path in rows)
    tried = sum(number for one, number in why.items() if one not in _NOT_RENDERED)
    missed = 0
    for path in site.asked_new:
        if rows[path].get("rendered"):
            break
        missed += 1
    return {
        "pages": len(site.paths),
        "content_percent": round(100 * found / sum(map(len, words.values())), 2),
        "rendered_percent": round(100 * tried / len(site.paths), 2),
        "after_redesign": len(site.asked_new),
        "missed_after_redesign": missed,
        "seconds": round(took_s, 1),
        "why": json.dumps(dict(why.most_common())),
    }


_NOT_RENDERED = frozenset({"None", "no_scripts", "kind_gains_nothing", "never"})


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.mixed_rendering")
    parser.add_argument("--pages", type=int, default=2_000)
    parser.add_argument("--then", choices=(SHELL, FRAME), default=SHELL)
    parser.add_argument("--mode", choices=("never", "auto", "always"), default="auto")
    given = parser.parse_args()
    site = Mixed(sections_of(given.pages, given.then))
    with background(site):
        print(json.dumps(measure(site, given.mode)))


if __name__ == "__main__":
    main()
