"""Metrics: one line of Embedded Metric Format per invocation."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from orbweaver.adapters.aws.emf import EmfMetrics, unit_of
from orbweaver.adapters.local.clock import SystemClock
from orbweaver.adapters.web.timing import TimedFetcher
from orbweaver.model.http_exchange import Failure, Request, Response
from orbweaver.model.metrics import VALUES_MAX, Metric, Service
from orbweaver.model.outcome import Outcome, Reason
from tests.memory import MemoryMetrics

if TYPE_CHECKING:
    import pytest

REQUEST = Request(
    url="https://example.com/", user_agent="a", accept=frozenset(), body_bytes_max=1, total_s=1
)


def written(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    (line,) = capsys.readouterr().out.splitlines()
    body: dict[str, Any] = json.loads(line)
    return body


def test_counters_are_written_as_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    metrics = EmfMetrics(stack="Mine", service=Service.WORKER)
    for _ in range(300):
        metrics.add(Metric.FETCHED, 1)
    metrics.add(Metric.BYTES, 2_000)
    metrics.observe(Metric.FETCH_MS, 12.5)
    metrics.observe(Metric.FETCH_MS, 7)
    metrics.fail(Reason.TIMEOUT, 2)
    metrics.fail(Reason.TIMEOUT, 1)
    metrics.flush()
    body = written(capsys)
    (directive,) = body["_aws"]["CloudWatchMetrics"]
    assert directive["Namespace"] == "Orbweaver"
    assert directive["Dimensions"] == [["stack", "service"]]
    assert {metric["Name"]: metric["Unit"] for metric in directive["Metrics"]} == {
        "bytes": "Bytes",
        "FetchMs": "Milliseconds",
        "fetched": "Count",
    }
    assert body["fetched"] == [300]
    assert body["FetchMs"] == [12.5, 7]
    assert (body["stack"], body["service"]) == ("Mine", "worker")
    # A field of the line that is not a metric.
    assert body["failed_timeout"] == 3


def test_unbilled_metrics_have_values_but_no_definitions(
    capsys: pytest.CaptureFixture[str],
) -> None:
    metrics = EmfMetrics(stack="Mine", service=Service.WORKER, billed=False)
    metrics.add(Metric.FETCHED, 3)
    metrics.fail(Reason.TIMEOUT, 1)
    metrics.flush()
    assert written(capsys) == {
        "stack": "Mine",
        "service": "worker",
        "fetched": [3],
        "failed_timeout": 1,
    }


def test_all_metrics_fit_into_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    metrics = EmfMetrics(stack="Mine", service=Service.WORKER)
    for metric in Metric:
        metrics.add(metric, 1)
    for number in range(10_000):
        metrics.observe(Metric.FETCH_MS, number)
        metrics.observe(Metric.YIELD_DROP_PERCENT, number % 100)
    for reason in Reason:
        metrics.fail(reason, 1)
    metrics.flush()
    assert written(capsys)["_aws"]["CloudWatchMetrics"][0]["Namespace"] == "Orbweaver"


def test_values_are_sampled_evenly(capsys: pytest.CaptureFixture[str]) -> None:
    for number in (1, VALUES_MAX, VALUES_MAX + 1, 1_000, 4_321):
        metrics = EmfMetrics(stack="Mine", service=Service.WORKER)
        for value in range(number):
            metrics.observe(Metric.FETCH_MS, value)
        metrics.flush()
        kept = written(capsys)["FetchMs"]
        assert VALUES_MAX // 2 < len(kept) <= VALUES_MAX or len(kept) == number
        steps = {after - before for before, after in pairwise(kept)}
        assert len(steps) <= 1
        assert kept[0] == 0
        assert kept[-1] + max(steps, default=1) >= number


def test_invocation_starts_with_empty_metrics(capsys: pytest.CaptureFixture[str]) -> None:
    metrics = EmfMetrics(stack="Mine", service=Service.WORKER)
    metrics.add(Metric.FETCHED, 3)
    metrics.fail(Reason.DNS, 1)
    metrics.observe(Metric.FETCH_MS, 1)
    metrics.flush()
    capsys.readouterr()
    metrics.flush()
    assert capsys.readouterr().out == ""
    metrics.add(Metric.FETCHED, 2)
    metrics.flush()
    body = written(capsys)
    assert body["fetched"] == [2]
    assert not {"failed_dns", "FetchMs"} & body.keys()


async def test_answers_count_with_duration_and_failures_by_reason() -> None:
    answers: list[Response | Failure] = [
        Response(status=404, headers={}, body=None, latency_ms=40),
        Failure(reason=Reason.TIMEOUT, detail="slow", latency_ms=20_000),
    ]

    class Web:
        async def fetch(self, _request: Request) -> Response | Failure:
            return answers.pop(0)

    metrics = MemoryMetrics()
    fetcher = TimedFetcher(Web(), metrics)
    assert isinstance(await fetcher.fetch(REQUEST), Response)
    assert isinstance(await fetcher.fetch(REQUEST), Failure)
    assert metrics.values == {Metric.FETCH_MS: [40]}


def test_unit_is_last_word_of_name() -> None:
    units = {str(metric): unit_of(metric).value for metric in Metric}
    assert (units["FetchMs"], units["bytes"]) == ("Milliseconds", "Bytes")
    assert (units["DeliveredBytes"], units["YieldDropPercent"]) == ("Bytes", "Percent")
    assert {units[outcome] for outcome in Outcome} == {"Count"}


async def test_clock_returns_epoch_milliseconds() -> None:
    clock = SystemClock()
    before_ms = clock.now_ms()
    assert before_ms > 1_700_000_000_000
    await clock.sleep(0)
    assert clock.now_ms() >= before_ms
