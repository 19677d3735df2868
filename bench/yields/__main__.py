"""`python -m bench.yields`: applications one after another, each with every crawler.

It prints a table, and writes JSON.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import shlex
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.measure import free_port
from bench.pages import grid
from bench.serving import HOME, Unavailable
from bench.session import machine
from bench.yields.application import placed
from bench.yields.applications import ALL
from bench.yields.crawling import Bounds, crawl, crawlers
from bench.yields.judging import judged

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import FrameType

    from bench.yields.application import Application
    from bench.yields.crawling import Crawler

INTERRUPTED = 130


def main(words: Sequence[str] | None = None) -> int:
    """Run the requested measurements. Return 1 if nothing could be measured."""
    parser = _parser()
    asked = parser.parse_args(words)
    try:
        applications = [ALL[name] for name in asked.apps.split(",")]
        known = crawlers(shlex.split(asked.options))
        taking = [known[name] for name in asked.crawlers.split(",")]
    except KeyError as unknown:
        parser.error(f"{unknown} is none of {', '.join((*ALL, *crawlers()))}")
    points = sorted({int(point) for point in asked.requests.split(",")})
    results: dict[str, Any] = {
        "at": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "points": points,
        "options": asked.options,
        "crawls": [],
        "skipped": {},
    }
    bounds = Bounds(requests=points[-1], seconds=asked.limit, bytes=asked.memory * 2**20)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        for application in applications:
            for _ in _measured(application, taking, points, bounds, results, asked.setup):
                _write(asked.out, results)
    except KeyboardInterrupt:
        _say("interrupted; what was measured is kept")
        return INTERRUPTED
    print(table(results))
    _say(f"all of it: {asked.out}")
    return 0 if results["crawls"] or asked.setup else 1


def table(results: dict[str, Any]) -> str:
    """Format the results as a Markdown table: percentage of articles after numbers of requests."""
    points = results["points"]
    head = ["application", "crawler", *(f"{point:,}" for point in points), "mean", "in all"]
    head += ["requests", "ended by"]
    rows = []
    last = ""
    for row in results["crawls"]:
        name = f"{row['title']}, {row['articles']:,}"
        cells = ["-" if share is None else f"{100 * share:.0f}" for share in row["shares"].values()]
        found = f"{100 * row['found'] / row['articles']:.0f}"
        cells += [f"{100 * row['area']:.0f}", found, f"{row['requests']:,}", row["ended"]]
        rows.append(["" if name == last else name, row["crawler"], *cells])
        last = name
    skipped = (f"\n{name}: skipped, {why}" for name, why in results["skipped"].items())
    return "\n".join([grid(head, rows, left=2), *skipped])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.yields", description=__doc__)
    parser.add_argument("--apps", default=",".join(ALL), help=",".join(ALL))
    parser.add_argument("--crawlers", default="ours", help=",".join(crawlers()))
    parser.add_argument("--requests", default="500,1000", help="where shares are read (500,1000)")
    parser.add_argument("--limit", type=float, default=240, help="seconds for a crawl (240)")
    parser.add_argument("--memory", type=int, default=3_000, help="megabytes for a crawl (3000)")
    parser.add_argument("--options", default="", help="more options of ours, in one word")
    parser.add_argument("--setup", action="store_true", help="only make the applications")
    parser.add_argument("--out", type=Path, default=HOME / "results.json", help="the JSON")
    return parser


def _measured(
    application: Application,
    taking: Sequence[Crawler],
    points: Sequence[int],
    bounds: Bounds,
    results: dict[str, Any],
    setup: bool,
) -> Iterator[None]:
    """Serve an application and run all crawlers on it. Yields after each crawler."""
    with placed(application.name) as place:
        try:
            truth = application.made(place)
            _say(f"{application.title}: {len(truth.articles):,} articles")
            port = free_port()
            if not setup:
                application.serve(place, port)
        except Unavailable as why:
            _say(f"{application.title} is skipped: {why}")
            results["skipped"][application.title] = str(why)
            return
        for crawler in [] if setup else taking:
            if crawler.absent:
                _say(f"  {crawler.title} is skipped: {crawler.absent}")
                results["skipped"][crawler.title] = crawler.absent
                continue
            ran = crawl(place, port, crawler, bounds)
            verdict = judged(ran.requests, truth, application.keys_of, points)
            results["crawls"].append(
                {
                    "application": application.name,
                    "title": application.title,
                    "crawler": crawler.title,
                    "ended": ran.ended,
                    "took_s": round(ran.took_s, 1),
                    "resident_mb_max": ran.resident_bytes_max >> 20,
                    **verdict,
                }
            )
            _say(
                f"  {crawler.title}: {verdict['found']:,} found by {verdict['requests']:,} requests"
                f" in {ran.took_s:.0f} s, ended by {ran.ended}"
            )
            yield


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _write(path: Path, results: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, ensure_ascii=False, indent=1))


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
