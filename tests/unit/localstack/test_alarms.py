"""Alarms of a stack, as CloudWatch lists them."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from localstack import cdk, deployed
from localstack.errors import LocalStackError

if TYPE_CHECKING:
    from collections.abc import Iterator


class Watched:
    """CloudWatch with these alarms, or an error."""

    def __init__(self, *names: str, error: str | None = None) -> None:
        self.names, self.error = names, error

    def get_paginator(self, _: str) -> Watched:
        return self

    def paginate(self, **given: str) -> Iterator[Any]:
        if self.error:
            raise ClientError({"Error": {"Code": self.error}}, "DescribeAlarms")
        for name in self.names:
            if name.startswith(given["AlarmNamePrefix"]):
                since = datetime(2026, 11, 21, tzinfo=UTC)
                raised = "ALARM" if "Worker" in name else "OK"
                alarm = {"AlarmName": name, "StateValue": raised, "StateUpdatedTimestamp": since}
                yield {"MetricAlarms": [{**alarm, "AlarmDescription": "Look. Run: it"}]}


def watch(monkeypatch: pytest.MonkeyPatch, watched: Watched) -> None:
    """Let `deployed` read these alarms."""

    @contextmanager
    def client(service: str, _: Any) -> Iterator[Watched]:
        assert service == "cloudwatch"
        yield watched

    monkeypatch.setattr(cdk, "client", client)


def test_alarms_of_stack_start_with_raised_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    names = (
        "Orbweaver-MonitoringDeadLettersBA3F6203-1ABCDEF2GHIJ",
        "Orbweaver-MonitoringWorkerErrors0C1D2E3F-ABCDEFGHIJKL",
        "Orbweaver-two-MonitoringApiErrors0C1D2E3F-ABCDEFGHIJKL",
        "Orbweaver2-MonitoringApiErrors0C1D2E3F-ABCDEFGHIJKL",
    )
    watch(monkeypatch, Watched(*names))
    found = deployed.read_alarms("Orbweaver", {})
    assert found is not None
    assert [(one.name, one.state) for one in found] == [
        ("WorkerErrors", "ALARM"),
        ("DeadLetters", "OK"),
    ]
    assert found[0].since_ms == 1_795_219_200_000
    assert found[0].meaning == "Look. Run: it"


def test_failed_read_of_alarms_is_error_unless_denied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watch(monkeypatch, Watched(error="AccessDenied"))
    assert deployed.read_alarms("Orbweaver", {}) is None
    watch(monkeypatch, Watched(error="InternalFailure"))
    with pytest.raises(LocalStackError, match="alarms of Orbweaver"):
        deployed.read_alarms("Orbweaver", {})
