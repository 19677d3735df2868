"""Runs and ends of every variety with IAM enforced: no request is denied, no message is left.

Denied requests are reported when the stack is removed (tests/e2e/enforced.py). test_limits.py
covers a stop by pages.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.stand import Stand, names, until
from tests.e2e.test_limits import FANOUT, tree
from tests.sites import graph

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


def ended(stand: Stand, crawl: str) -> dict[str, Any]:
    """Wait for a crawl's end and return its state; no message or dead letter may remain."""
    found = stand.orbweaver("status", crawl, "--watch", "--json").result
    assert found["state"] == "finished"
    assert found["claimed"] == sum(found["outcomes"].values())
    stand.wait_idle()
    assert not stand.take(stand.outputs["DeadLetterQueueUrl"])
    return found


def test_crawl_is_repeated_within_and_after_window(stand: Stand) -> None:
    pages = {"/": graph.page("Home", ["/1", "/2"]), "/1": graph.page("1"), "/2": graph.page("2")}
    options = ("--name", "under-roles", "--delay", "0")
    with graph.serve_in_background(pages) as site:
        url = f"{site.url}/"
        first = stand.start(url, *options)
        within = stand.start(url, *options, "--window", "1h")
        after = stand.start(url, *options, "--window", "0s")

    assert names(first.urls("fetched"), site.url) == ["/", "/1", "/2"]
    assert within.result["claimed"] == 0
    assert names(after.urls("fetched"), site.url) == ["/", "/1", "/2"]
    for run in (first, within, after):
        ended(stand, run.result["crawl"])


def test_claims_of_cancelled_crawl_are_free(stand: Stand) -> None:
    with graph.serve_in_background(tree()) as site:
        options = ("--name", "cancelled-under-roles", "--window", "1h")
        ran = stand.orbweaver(
            *("start", f"{site.url}/0", *options, "--max-depth", "1", "--delay", "5s", "--json")
        )
        until(lambda: "/0" in site.log.paths(), "it has begun", log=stand.log)
        stand.orbweaver("cancel", ran.result["crawl"])
        found = ended(stand, ran.result["crawl"])
        # A pack in flight can be delayed longer than the crawl takes to end.
        until(lambda: stand.queued() == 0, "what was held back has come", log=stand.log)
        unasked = next(f"/{n}" for n in range(1, FANOUT + 1) if f"/{n}" not in site.log.paths())
        again = stand.start(site.url + unasked, *options, "--max-depth", "0", "--delay", "0")

    assert found["stop"] == "cancelled"
    assert names(again.urls("fetched"), site.url) == [unasked]


def test_dollar_limit_ends_crawl(stand: Stand) -> None:
    """`--max-dollars` ends the crawl early; remaining claims are skipped and counted.

    The worker reports the memory of ten thousand workers, so a small crawl reaches the limit.
    """
    dear = {"ORBWEAVER_MEMORY_MB": 10_000 * 1024}
    with (
        graph.serve_in_background(tree()) as site,
        stand.reconfigured(stand.outputs["WorkerFunction"], dear),
    ):
        ran = stand.orbweaver(
            *("start", f"{site.url}/0", "--name", "dollars", "--delay", "0"),
            *("--max-dollars", "0.5", "--json"),
        )
        found = ended(stand, ran.result["crawl"])

    assert found["stop"] == "dollars"
    assert found["reasons"]["skipped"]["dollars"] > 0


@pytest.mark.long
def test_duration_ends_crawl(stand: Stand) -> None:
    with graph.serve_in_background(tree()) as site:
        ran = stand.orbweaver(
            *("start", f"{site.url}/0", "--name", "duration", "--delay", "3s"),
            *("--duration", "60s", "--json"),
        )
        found = ended(stand, ran.result["crawl"])

    assert found["stop"] == "duration"
