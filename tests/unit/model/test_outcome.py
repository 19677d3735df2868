"""Outcomes and reasons: each property belongs to its enumeration member."""

from __future__ import annotations

import copy
import pickle

import pytest

from orbweaver.model.backoff import ATTEMPTS_FEW, ATTEMPTS_MAX
from orbweaver.model.outcome import (
    FAILURES,
    Outcome,
    Reason,
    Refusal,
    known,
    robots_attempts_max,
    short_of,
)


def test_reasons_are_stored_and_copied_as_their_names() -> None:
    for member in (*Reason, *Refusal):
        kind = type(member)
        assert member == member.value == str(member) == f"{member}" == member.name.lower()
        assert kind(member.value) is copy.deepcopy(member) is member
        assert pickle.loads(pickle.dumps(member)) is member  # noqa: S301 - ours
        assert member.means


@pytest.mark.parametrize(
    ("reason", "attempts", "robots_attempts", "silence"),
    [
        (Reason.DNS, ATTEMPTS_MAX, ATTEMPTS_MAX, True),
        (Reason.DNS_UNKNOWN, ATTEMPTS_FEW, ATTEMPTS_FEW, False),
        (Reason.CONNECT, ATTEMPTS_MAX, ATTEMPTS_MAX, True),
        (Reason.PROXY, ATTEMPTS_MAX, ATTEMPTS_MAX, False),
        (Reason.PROXY_REJECTED, 1, 1, False),
        (Reason.TLS, 1, 1, False),
        (Reason.TLS_HANDSHAKE, ATTEMPTS_FEW, ATTEMPTS_FEW, True),
        (Reason.TIMEOUT, ATTEMPTS_MAX, ATTEMPTS_MAX, True),
        (Reason.DISCONNECTED, ATTEMPTS_MAX, ATTEMPTS_MAX, True),
        (Reason.PROTOCOL, 1, ATTEMPTS_MAX, False),
        (Reason.ADDRESS, 1, 1, False),
    ],
)
def test_network_reasons_set_attempts_and_host_trouble(
    reason: Reason, attempts: int, robots_attempts: int, *, silence: bool
) -> None:
    told = (reason.attempts, robots_attempts_max(reason), reason.silence)
    assert told == (attempts, robots_attempts, silence)


def test_unknown_reason_has_no_text_and_counts_as_transient() -> None:
    assert known(Reason, "asleep") is None
    assert known(Refusal, "robots") is None
    assert known(Refusal, "scope") is Refusal.SCOPE
    assert short_of(Reason, "asleep") == "asleep"
    assert short_of(Reason, "robots") == "robots"
    assert short_of(Reason, "tls") == "TLS or certificate error"
    assert robots_attempts_max("asleep") == robots_attempts_max(None) == ATTEMPTS_MAX


def test_failure_reasons_match_listed_failures() -> None:
    assert {*FAILURES} == {reason for reason in Reason if reason.outcome is Outcome.FAILED}
    assert all(reason.outcome is Outcome.FAILED for reason in Reason if reason.attempts > 1)
    assert {reason for reason in Reason if reason.resumable} == {
        *(Reason.CANCELLED, Reason.DURATION, Reason.BYTES, Reason.DOLLARS, Reason.HOST_PAGES)
    }
