"""A running crawl in Prometheus and CloudWatch."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from orbweaver.model.metrics import Metric
from tests.e2e.stand import OUTCOMES, PROGRAM, Stand, until
from tests.integration.prometheus import NEEDED, prometheus
from tests.sites import graph

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

PAGES = 40
# On a busy machine.
ENDS_S_MAX = 150
SITE = {
    **{f"/{page}": graph.page(f"Page {page}", [f"/{page + 1}"]) for page in range(PAGES)},
    "/": graph.page("Home", [*(f"/{page}" for page in range(PAGES)), "/gone"]),
}


@contextlib.contextmanager
def exposed(stand: Stand) -> Iterator[str]:
    with subprocess.Popen(
        [PROGRAM, "metrics", "--listen", "127.0.0.1:0"],
        env=stand.environment,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        try:
            assert running.stderr is not None
            found = re.search(r"listening on (\S+)", running.stderr.readline())
            assert found
            yield found[1]
        finally:
            running.terminate()
            running.communicate(timeout=20)
    assert running.returncode == 143


@NEEDED
def test_prometheus_follows_crawl_to_its_end(stand: Stand, tmp_path: Path) -> None:
    with (
        graph.serve_in_background(SITE) as site,
        exposed(stand) as url,
        prometheus(tmp_path, url) as server,
    ):
        started = stand.orbweaver("start", f"{site.url}/", "--name", "scraped", "--delay", "250ms")
        crawl = started.out.split()[0]
        labels = f'crawl="{crawl}"'

        def state(name: str) -> float | None:
            selected = f'{{{labels}, orbweaver_crawl_state="{name}"}}'
            return server.value(f"max_over_time(orbweaver_crawl_state{selected}[10m])")

        until(lambda: state("running") == 1, "it was seen running", log=stand.log)
        ends = "it was seen to end"
        until(lambda: state("finished") == 1, ends, timeout_s=ENDS_S_MAX, log=stand.log)
        query = f"sum by (outcome) (orbweaver_urls_ended_total{{{labels}}})"
        ended = {found["outcome"]: round(number) for found, number in server.ask(query)}
        claimed = server.value(f"orbweaver_urls_claimed_total{{{labels}}}")
        written = server.value(f'orbweaver_units_total{{{labels}, term="write"}}')
    told = stand.orbweaver("status", crawl, "--json").result
    assert {outcome: ended.get(outcome, 0) for outcome in OUTCOMES} == told["outcomes"]
    assert (told["outcomes"]["fetched"], told["outcomes"]["failed"]) == (PAGES + 1, 2)
    assert claimed == told["claimed"]
    assert written is not None
    assert written > PAGES


def test_invocation_logs_one_line_of_metrics(stand: Stand) -> None:
    with graph.serve_in_background(SITE) as site:
        crawled = stand.start(f"{site.url}/", "--name", "lines", "--delay", "0")
    assert crawled.result["outcomes"]["fetched"] == PAGES + 1
    lines = stand.lines("WorkerLogGroup")
    written = [json.loads(line) for line in lines if '"CloudWatchMetrics"' in line]
    worked = [line for line in written if Metric.URLS_ENDED in line]
    assert sum(sum(line[Metric.URLS_ENDED]) for line in worked) >= PAGES + 3
    for line in worked:
        assert {Metric.FETCH_MS, Metric.COST_DOLLARS} & line.keys()
        assert line["service"] == "worker"
    assert not [line for line in lines if f"{site.url}/" in line]
