"""Which answers are retried, and after which delay."""

from __future__ import annotations

from random import Random

import pytest

from orbweaver.model.backoff import ATTEMPTS_MAX, CAP_S, backoff_s, transient_status
from orbweaver.model.outcome import Reason


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 520, 526, 599])
def test_transient_statuses_are_retried(status: int) -> None:
    """Temporary errors are retried (case 46)."""
    assert transient_status(status)


@pytest.mark.parametrize("status", [200, 301, 400, 401, 403, 404, 410, 451, 501, 505])
def test_final_statuses_are_not_retried(status: int) -> None:
    """Permanent answers are not requested again (case 46)."""
    assert not transient_status(status)


@pytest.mark.parametrize(
    ("attempt", "low_s", "high_s"),
    [(0, 2.5, 5), (1, 5, 10), (2, 10, 20), (3, 20, 40), (20, 300, CAP_S)],
)
def test_backoff_doubles_with_jitter_up_to_cap(attempt: int, low_s: float, high_s: float) -> None:
    waits = [backoff_s(attempt, Random(seed)) for seed in range(50)]
    assert all(low_s <= wait_s <= high_s for wait_s in waits)
    assert len(set(waits)) > 40


def test_network_errors_are_transient_and_faults_are_final() -> None:
    """Network errors are retried, faults of the server are final (case 31)."""
    transient = {reason for reason in Reason if reason.attempts > 1}
    assert {Reason.DNS, Reason.TIMEOUT, Reason.DISCONNECTED} <= transient
    assert transient.isdisjoint({Reason.TLS, Reason.ADDRESS, Reason.PROTOCOL, Reason.ENCODING})
    assert ATTEMPTS_MAX > 1
