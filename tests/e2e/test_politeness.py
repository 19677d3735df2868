"""All crawls and workers together keep a host's delay, measured at the host."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from tests.sites import graph

if TYPE_CHECKING:
    from tests.e2e.stand import CommandStand, Crawled, Row

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.slow, pytest.mark.timeout(300)]

DELAY_MS = 300
JITTER_MS = 5  # Tolerance between requests on an idle loopback.
PAGES = 20
# Few links per page: a pack takes slots for all its URLs at once, and the crawls must alternate.
FANOUT = 3


def test_two_crawls_keep_one_hosts_delay(anywhere: CommandStand) -> None:
    """Every request of two crawls, robots.txt included, arrives a delay after the one before it.

    A worker sends a request in its slot, and the site logs its arrival. A request delayed on its
    way (new connection, busy machine) arrives closer to the next one. So a gap can be shorter by
    the delay of its first request, known from its row, and by `JITTER_MS`.
    """
    scripts = {
        f"/{n}": graph.page(f"Page {n}", [f"/{FANOUT * n + step}" for step in range(1, FANOUT + 1)])
        for n in range(PAGES * FANOUT * 2)
    }

    def crawl(name: str) -> Crawled:
        words = ("--name", name, "--delay", "0.3", "--max-pages", str(PAGES))
        return anywhere.start(f"{site.url}/0", *words)

    with graph.serve_in_background(scripts) as site, ThreadPoolExecutor() as both:
        crawls = list(both.map(crawl, ("polite-one", "polite-other")))

    fetched = [len(crawled.urls("fetched")) for crawled in crawls]
    assert fetched == [PAGES, PAGES]
    spans = [[sent_ms(row) for row in crawled.rows] for crawled in crawls]
    assert max(map(min, spans)) < min(map(max, spans)), "the crawls did not run at once"
    sent = iter(sorted((row for crawled in crawls for row in crawled.rows), key=sent_ms))
    held_up_ms: dict[int, int] = {}
    for record in site.log.records():
        if record.path == "/robots.txt":  # It has no row.
            held_up_ms[record.seq] = 0
        else:
            row = next(sent)
            assert row["url"] == site.url + record.path
            held_up_ms[record.seq] = record.at_ms - sent_ms(row)
    for earlier, later in pairwise(site.log.records()):
        gap_ms, excused_ms = later.at_ms - earlier.at_ms, held_up_ms[earlier.seq] + JITTER_MS
        assert gap_ms >= DELAY_MS - excused_ms, f"{earlier} {later} {held_up_ms}"


def sent_ms(row: Row) -> int:
    return round(datetime.fromisoformat(row["fetched_at"]).timestamp() * 1000)
