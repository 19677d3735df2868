"""A frugal stack, which costs almost nothing while idle, crawls like any other."""

from __future__ import annotations

from pathlib import Path

import pytest

from localstack import stack
from orbweaver.cli.stack import LOCAL_CONTEXT
from tests.e2e.stand import Stand
from tests.sites import graph

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(400)]


def test_frugal_stack_crawls_urgent_crawls_from_one_queue(tmp_path: Path) -> None:
    links = [f"/{n}" for n in range(5)]
    with (
        stack.temporary(context={**LOCAL_CONTEXT, "frugal": "yes"}) as stood,
        graph.serve_in_background({path: graph.page(path, links) for path in links}) as site,
    ):
        stand = Stand(stood, tmp_path)
        crawled = stand.start(f"{site.url}/0", "--priority", "high", "--delay", "0")
        assert len(crawled.urls("fetched")) == len(links)
        assert stand.outputs["ExpressQueueUrl"] == stand.outputs["PackQueueUrl"]
        lines = stand.lines("WorkerLogGroup")
    assert any('"UrlsEnded"' in line for line in lines)
    assert not any("CloudWatchMetrics" in line for line in lines)
