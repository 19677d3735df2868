"""Metrics that are counted per pack."""

from __future__ import annotations

from orbweaver.model.metrics import Metric, Service, counted, failures, field_of
from orbweaver.model.outcome import Reason

COUNTS = {
    "fetched": 5,
    "fetched.ok": 5,
    "skipped": 3,
    "skipped.robots": 1,
    "skipped.robots_unreachable": 1,
    "skipped.content_type": 1,
    "failed": 3,
    "failed.timeout": 2,
    "failed.of_another_version": 1,
    "refused.depth": 9,
    "host.0.done": 4,
    "units.write.claim": 7,
    "nanodollars": 12_345,
    "received_bytes": 900,
    "bytes": 700,
    "retries": 0,
    "needs_rendering": 2,
    "render.failed.start": 1,
    "render.failed.crashed": 5,
    "logins": 2,
    "logins_failed": 1,
    "session_lost": 3,
    "items": 4,
    "items_invalid": 1,
}


def test_counted_sums_outcomes_and_omits_zeros() -> None:
    assert dict(counted(COUNTS)) == {
        Metric.URLS_ENDED: 11,
        Metric.FETCHED: 5,
        Metric.SKIPPED: 3,
        Metric.FAILED: 3,
        Metric.ROBOTS_REFUSED: 2,
        Metric.BYTES: 700,
        Metric.NEEDS_RENDERING: 2,
        Metric.RENDER_STARTS_FAILED: 1,
        Metric.LOGINS: 2,
        Metric.LOGINS_FAILED: 1,
        Metric.SESSIONS_LOST: 3,
        Metric.ITEMS_VALID: 3,
        Metric.ITEMS_INVALID: 1,
    }
    assert dict(counted({})) == {}


def test_failures_contain_only_known_reasons() -> None:
    assert dict(failures(COUNTS)) == {Reason.TIMEOUT: 2}
    assert field_of(Reason.HTTP_CLIENT_ERROR) == "failed_http_client_error"


def test_metrics_cost_less_than_15_dollars_a_month() -> None:
    """All metrics of all services, written in every hour of a month, cost less than $15."""
    assert len(Metric) * 0.30 < 15
    assert len(Service) == 5
    assert all(str(metric).isalpha() for metric in Metric)
