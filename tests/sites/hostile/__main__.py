"""Serve the hostile site until a signal: `python -m tests.sites.hostile --port 8000`.

It prints every URL with its expected outcome.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal

from tests.sites.hostile.expected import BY_CASE, ELSEWHERE, PLACES
from tests.sites.hostile.model import FIRST_CASE, LAST_CASE
from tests.sites.hostile.site import Hostile


def lines(site: Hostile) -> list[str]:
    written = []
    crawls = ("polite", "bold", "patient")
    due = [one for crawl in crawls for one in site.due(crawl).values()]  # type: ignore[arg-type]
    for case in range(FIRST_CASE, LAST_CASE + 1):
        for one in due:
            if one.row is not None and one.row.case == case:
                what = f"{one.outcome}: {one.reason}"
                written.append(f"{case}  {one.url:60}  {what:30}  {one.row.serves}")
        for place in PLACES:
            if place.trap and place.trap.case == case:
                what = f"at most {place.trap.urls_max} URLs"
                written.append(f"{case}  {site.url(place.name):60}  {what:30}  {place.trap.serves}")
        if case not in BY_CASE:
            written.append(f"{case}  {ELSEWHERE[case][0]}")
    return written


async def serve(port: int) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    site = Hostile()
    async with site.listening(port):
        print("\n".join(lines(site)), f"\nBegin at {site.url('main')}", flush=True)
        await stop.wait()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.sites.hostile")
    parser.add_argument("--port", type=int, default=0, help="of the start page; 0 takes a free one")
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(parser.parse_args().port))


if __name__ == "__main__":
    main()
