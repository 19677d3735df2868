"""Recurring crawls: schedule expressions for AWS, next times, and the event payload."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from orbweaver.control import schedule
from orbweaver.control.crawl_spec import CrawlSpec
from orbweaver.control.schedule import (
    DUE,
    INPUT_BYTES_MAX,
    Firing,
    Recurrence,
    Scheduled,
    ScheduleError,
    firing_input,
    firing_of,
    problems_in,
    recurrence_in,
    recurrence_of,
    window_warning,
)
from orbweaver.control.spec_checks import problems_of

SEED = "https://example.com/"
HOUR_MS = 3_600_000
NOW_MS = 1_795_251_600_000  # 2026-11-21 09:00:00 UTC


def plan(**parts: Any) -> CrawlSpec:
    return CrawlSpec(seeds=(SEED,), **parts)


@pytest.mark.parametrize(
    ("parts", "expression"),
    [
        ({"every": "5m"}, "rate(5 minutes)"),
        ({"every": "90 minutes"}, "rate(90 minutes)"),
        ({"every": "60 min"}, "rate(1 hour)"),
        ({"every": " 6H "}, "rate(6 hours)"),
        ({"every": "1 day"}, "rate(1 day)"),
        ({"every": "48h"}, "rate(2 days)"),
        ({"every": "366d"}, "rate(366 days)"),
        ({"cron": "0 3 * * ? *"}, "cron(0 3 * * ? *)"),
        ({"cron": "0 3 * * ? *", "timezone": "Europe/Berlin"}, "cron(0 3 * * ? *)"),
    ],
)
def test_expressions_of_rates_and_cron_read_back(parts: dict[str, str], expression: str) -> None:
    assert problems_of(plan(**parts)) == ()
    recurrence = recurrence_in(plan(**parts))
    assert recurrence is not None
    assert recurrence.expression == expression
    zone = recurrence.timezone
    kept = Scheduled(name="a", expression=expression, timezone=zone, first_ms=0, input="")
    assert recurrence_of(kept) == recurrence


def test_plan_without_times_does_not_recur() -> None:
    assert recurrence_in(plan()) is None


def test_schedule_edited_by_hand_has_no_next_times() -> None:
    kept = Scheduled(
        name="a", expression="at(2030-01-01T00:00:00)", timezone=None, first_ms=0, input=""
    )
    assert recurrence_of(kept) is None


@pytest.mark.parametrize(
    ("parts", "part", "said"),
    [
        ({"every": "4 minutes"}, "every", "'4 minutes' does not fit: give 5 minutes to 366 days"),
        ({"every": "0h"}, "every", "give 5 minutes to 366 days"),
        ({"every": "367d"}, "every", "give 5 minutes to 366 days"),
        ({"every": "1.5h"}, "every", "give minutes, hours or days, like 30m, 6h or 1 day"),
        ({"every": "-1h"}, "every", "give minutes, hours or days"),
        ({"every": "rate(1 day)"}, "every", "give minutes, hours or days"),
        (
            {"every": "1h", "cron": "0 3 * * ? *"},
            "cron",
            "and every are both given: give one of them",
        ),
        ({"cron": "0 3 * * *"}, "cron", "'0 3 * * *' does not fit: it has 5 fields"),
        ({"cron": "0/2 * * * ? *"}, "cron", "leave 5 minutes between two times, and not 2"),
        ({"cron": "0 3 31 2 ? *"}, "cron", "never comes: no day of the calendar is like that"),
        ({"cron": "0 3 29 2 ? 2100"}, "cron", "'0 3 29 2 ? 2100' never comes: no day"),
        ({"timezone": "UTC"}, "timezone", "is for cron alone"),
        ({"every": "1h", "timezone": "UTC"}, "timezone", "is for cron alone"),
    ],
)
def test_invalid_recurrence_names_part_value_and_fix(
    parts: dict[str, str], part: str, said: str
) -> None:
    (problem,) = problems_of(plan(**parts))
    assert problem.field == part
    assert said in str(problem)


@pytest.mark.parametrize(
    ("timezone", "said"),
    [
        ("Europe/Belrin", "did you mean Europe/Berlin?"),
        ("europe/berlin", "did you mean Europe/Berlin?"),
        ("Europe", "did you mean Europe/"),
        ("../etc/passwd", "is no time zone"),
        ("", "'' is no time zone: give one like Europe/Berlin"),
        ("zzzz", "'zzzz' is no time zone: give one like Europe/Berlin"),
    ],
)
def test_unknown_zone_suggests_nearest(timezone: str, said: str) -> None:
    (problem,) = problems_of(plan(cron="0 3 * * ? *", timezone=timezone))
    assert problem.field == "timezone"
    assert said in str(problem)


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"every": "5m"}, "the window of 7 days, and runs start every 5 minutes"),
        ({"every": "7d"}, "every 7 days"),
        ({"every": "8d"}, None),
        ({"every": "6h", "window_s": 3_600}, None),
        ({"every": "6h", "window_s": 6 * 3_600}, "every 6 hours"),
        ({"every": "6h", "window_s": 0}, None),
        ({"cron": "0 3 * * ? *"}, "every 1 day"),
        ({"cron": "0 3 ? * MON,TUE *", "window_s": 2 * 86_400}, "every 1 day"),
        ({"cron": "0 3 1 * ? *"}, None),
        ({}, None),
    ],
)
def test_window_warning_compares_window_with_shortest_interval(
    parts: dict[str, Any], words: str | None
) -> None:
    """A window as long as the interval skips all pages of the run before."""
    found = window_warning(plan(**parts), NOW_MS)
    assert (found is None) == (words is None)
    assert (words or "") in (found or "")


def test_any_zone_is_accepted_without_list_of_zones(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Lambda may have no list. AWS checked the zone when the schedule was created."""
    monkeypatch.setattr(schedule, "available_timezones", set)
    monkeypatch.setattr(schedule, "zone_of", lambda _: None)
    assert list(problems_in(plan(cron="0 3 * * ? *", timezone="Europe/Berlin"))) == []


def test_name_too_long_for_schedule_is_refused() -> None:
    long = "a" * 65
    assert problems_of(plan(name=long)) == ()
    (problem,) = problems_of(plan(name=long, every="1h"))
    assert (problem.field, "at most 64 characters" in str(problem)) == ("name", True)


# --- next times ---------------------------------------------------------------------------------


def test_rate_fires_first_after_one_interval() -> None:
    recurrence = Recurrence(every_minutes=360)
    first_ms = recurrence.first_ms(NOW_MS)
    assert first_ms == NOW_MS + 6 * HOUR_MS
    assert recurrence.firings_after(NOW_MS, first_ms, 2) == (first_ms, first_ms + 6 * HOUR_MS)
    later_ms = NOW_MS + 100 * HOUR_MS
    assert recurrence.firings_after(later_ms, first_ms, 1) == (NOW_MS + 102 * HOUR_MS,)
    assert recurrence.firings_after(first_ms, first_ms, 1) == (first_ms + 6 * HOUR_MS,)
    assert recurrence.firings_after(NOW_MS, None, 1) == ()


def test_cron_follows_clocks_of_its_zone() -> None:
    recurrence = Recurrence(cron="0 3 * * ? *", timezone="Europe/Berlin")
    assert recurrence.first_ms(NOW_MS) is None
    (next_ms,) = recurrence.firings_after(NOW_MS, None, 1)
    assert datetime.fromtimestamp(next_ms / 1000, tz=UTC).isoformat() == "2026-11-22T02:00:00+00:00"


# --- firings ------------------------------------------------------------------------------------


def test_payload_has_time_placeholder_of_aws_once() -> None:
    """No text of the definition may look like the placeholder."""
    definition = {"seeds": [SEED], "identity": {"user_agents": [f"me {DUE} é"]}}
    told = firing_input(definition)
    assert told.count(DUE) == 1
    fired = json.loads(told.replace(DUE, "2026-11-21T09:00:00Z"))
    assert firing_of(fired, 0) == Firing(definition=definition, due_ms=NOW_MS)


@pytest.mark.parametrize(
    ("due", "due_ms"),
    [
        ("2026-11-21T09:00:00Z", NOW_MS),
        ("2026-11-21T09:00:00", NOW_MS),
        ("2026-11-21T10:00:00+01:00", NOW_MS),
        (DUE, NOW_MS),
    ],
)
def test_firing_without_time_was_due_in_its_minute(due: str, due_ms: int) -> None:
    assert firing_of({"definition": {}, "due": due}, NOW_MS + 59_999).due_ms == due_ms


@pytest.mark.parametrize(
    "event",
    [{}, {"definition": {}}, {"definition": 5, "due": DUE}, {"definition": {}, "due": "soon"}],
)
def test_other_payloads_are_no_firing(event: dict[str, Any]) -> None:
    with pytest.raises(ScheduleError):
        firing_of(event, NOW_MS)


def test_payload_over_size_limit_is_refused_with_fix() -> None:
    spare = INPUT_BYTES_MAX - len(firing_input({"seeds": [""]}))
    assert len(firing_input({"seeds": ["a" * spare]})) == INPUT_BYTES_MAX == 262_144
    with pytest.raises(ScheduleError, match="name a sitemap that lists the seeds"):
        firing_input({"seeds": ["a" * (spare + 1)]})
