"""Metrics: one line of Embedded Metric Format an invocation."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from orbweaver.adapters.clock import SystemClock
from orbweaver.adapters.metrics import EmfMetrics

if TYPE_CHECKING:
    import pytest


def test_counters_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """What was added in an invocation is written once, summed up, without a host's name."""
    metrics = EmfMetrics(service="worker")
    for _ in range(300):
        metrics.add("PagesFetched", 1)
    metrics.add("BodyBytes", 2_000)
    metrics.add("FetchMs", 12.5)
    metrics.flush()
    (line,) = capsys.readouterr().out.splitlines()
    body = json.loads(line)
    (directive,) = body["_aws"]["CloudWatchMetrics"]
    assert directive["Namespace"] == "Orbweaver"
    assert directive["Dimensions"] == [["service"]]
    assert {metric["Name"]: metric["Unit"] for metric in directive["Metrics"]} == {
        "BodyBytes": "Bytes",
        "FetchMs": "Milliseconds",
        "PagesFetched": "Count",
    }
    assert body["PagesFetched"] == [300]
    assert body["FetchMs"] == [12.5]
    assert body["service"] == "worker"


def test_an_invocation_starts_anew(capsys: pytest.CaptureFixture[str]) -> None:
    """What was written is not written again, and nothing is written for nothing."""
    metrics = EmfMetrics(service="worker")
    metrics.add("PagesFetched", 3)
    metrics.flush()
    capsys.readouterr()
    metrics.flush()
    assert capsys.readouterr().out == ""
    metrics.add("PagesFetched", 2)
    metrics.flush()
    assert json.loads(capsys.readouterr().out)["PagesFetched"] == [2]


async def test_the_clock_tells_the_time() -> None:
    """Milliseconds since 1970, and a sleep that ends."""
    clock = SystemClock()
    before_ms = clock.now_ms()
    assert before_ms > 1_700_000_000_000
    await clock.sleep(0)
    assert clock.now_ms() >= before_ms
