"""Two crawls in a row: warm workers, announcements by a rule on the event bus, and metrics."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from localstack import processes
from orbweaver.model.metrics import Metric
from tests.e2e.announcements import listening
from tests.e2e.stand import Stand, until
from tests.sites import graph

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


def workers(stand: Stand) -> set[int]:
    name = stand.outputs["WorkerFunction"].encode()
    members = processes.members(stand.emulator.process.pid)
    return {pid for pid in members if b"-" + name in Path(f"/proc/{pid}/cmdline").read_bytes()}


def test_each_crawl_is_announced_once_by_warm_workers(stand: Stand) -> None:
    # Three packs (batches of URLs), so that different workers can be last.
    links = [f"/{n}" for n in range(60)]
    scripts = {path: graph.page(path, links) for path in links}
    heard: list[dict[str, Any]] = []
    with listening(stand, "completed") as queue_url, graph.serve_in_background(scripts) as site:

        def hear() -> set[str]:
            heard.extend(json.loads(message["Body"]) for message in stand.take(queue_url))
            return {event["detail"]["crawl"] for event in heard}

        def wait_announced(crawl: str) -> None:
            until(lambda: crawl in hear(), f"{crawl} is announced", log=stand.log)

        ended, warmed = [], []
        for name in ("announced-first", "announced-second"):
            crawled = stand.crawl(f"{site.url}/0", "--name", name, "--delay", "0")
            warmed.append(workers(stand))
            ended.append(crawled.result)
            wait_announced(crawled.result["crawl"])
        stand.wait_idle()
        hear()

    assert warmed[0]
    assert warmed[0] <= warmed[1]
    assert Counter(event["detail"]["crawl"] for event in heard) == {
        result["crawl"]: 1 for result in ended
    }
    for event, result in zip(heard, ended, strict=True):
        counts = event["detail"]["counts"]
        assert (counts["claimed"], counts["fetched"]) == (result["claimed"], len(links))
        assert event["detail"]["stop"] == "finished"
    check_metrics(stand, site.url, len(ended) * len(links))


def check_metrics(stand: Stand, site: str, pages: int) -> None:
    """Check that each invocation logged one line of metrics, and no URL."""
    lines = stand.lines("WorkerLogGroup")
    written = [json.loads(line) for line in lines if '"CloudWatchMetrics"' in line]
    worked = [line for line in written if Metric.URLS_ENDED in line]
    assert sum(sum(line[Metric.URLS_ENDED]) for line in worked) >= pages
    for line in worked:
        assert {Metric.FETCH_MS, Metric.COST_DOLLARS} & line.keys()
        assert line["service"] == "worker"
    assert not [line for line in lines if f"{site}/" in line]
