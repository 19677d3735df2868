"""Days that an event asks to export."""

from __future__ import annotations

from typing import Any

import pytest

from orbweaver.exporting.manifest import ExportEventError
from orbweaver.exporting.run_state import ExportJob, identity_of, jobs_of
from tests.unit.export_stage import DAY, NOON_MS

SCHEDULED = {"version": "0", "detail-type": "Scheduled Event", "source": "aws.events", "detail": {}}


@pytest.mark.parametrize(
    ("event", "day"),
    [
        ({}, "2026-11-20"),
        ({"day": "2026-01-31"}, "2026-01-31"),
        (SCHEDULED, "2026-11-20"),
        (SCHEDULED | {"time": "2026-11-19T00:30:00Z"}, "2026-11-18"),
        (SCHEDULED | {"time": "2026-03-01T00:00:00Z"}, "2026-02-28"),
        (SCHEDULED | {"time": "2026-11-19T00:30:00.123456+00:00"}, "2026-11-18"),
        (SCHEDULED | {"time": "2026-11-19T00:30:00+01:00"}, "2026-11-17"),
        (SCHEDULED | {"time": "2026-11-19T00:30:00"}, "2026-11-18"),
    ],
)
def test_event_requests_day(event: dict[str, Any], day: str) -> None:
    assert jobs_of(event, NOON_MS) == (ExportJob(day=day),)


@pytest.mark.parametrize(
    ("time", "jobs"),
    [
        ("2026-11-21T23:05:00Z", (ExportJob(day=DAY, gives_way=True),)),
        ("2026-11-21T02:00:00Z", (ExportJob(day=DAY, gives_way=True),)),
        ("2026-11-21T01:59:59Z", (ExportJob(day="2026-11-20"), ExportJob(day=DAY, gives_way=True))),
        ("2026-11-21T00:00:00Z", (ExportJob(day="2026-11-20"), ExportJob(day=DAY, gives_way=True))),
        (None, (ExportJob(day=DAY, gives_way=True),)),
    ],
)
def test_hourly_schedule_requests_current_and_late_day(
    time: str | None, jobs: tuple[ExportJob, ...]
) -> None:
    assert jobs_of(SCHEDULED | {"time": time}, NOON_MS, "hour") == jobs


@pytest.mark.parametrize("span", ["day", "hour"])
def test_requested_day_is_independent_of_span(span: str) -> None:
    assert jobs_of({"day": DAY}, NOON_MS, span) == (ExportJob(day=DAY),)


@pytest.mark.parametrize(
    "event",
    [
        {"day": "2026-02-30"},
        {"day": None},
        {"day": ["2026-11-21"]},
        {"resume": True},
        {"day": DAY, "resume": True},
        {"dya": DAY},
        {"day": DAY, "format": "csv"},
        SCHEDULED | {"time": "yesterday"},
        SCHEDULED | {"time": 7},
        SCHEDULED | {"time": "0001-01-01T00:00:00Z"},
        [],
        None,
        DAY,
        {"day": "9" * 100_000},
        {"x" * 100_000: 1},
        SCHEDULED | {"time": "9" * 100_000},
    ],
)
def test_invalid_event_is_rejected(event: object) -> None:
    with pytest.raises(ExportEventError) as caught:
        jobs_of(event, NOON_MS)
    assert isinstance(caught.value, ValueError)
    assert len(str(caught.value)) <= 500


def test_identity_of_schedule_event_is_its_time_and_id() -> None:
    timed = SCHEDULED | {"id": "7", "time": "2026-11-19T00:30:00Z"}
    assert identity_of(timed, "a") == identity_of(dict(timed), "b")
    assert identity_of(timed, "a") != identity_of(timed | {"time": "2026-11-20T00:30:00Z"}, "a")
    assert identity_of({"day": DAY}, "a") == "a"
    assert identity_of(SCHEDULED, "a") == "a"
