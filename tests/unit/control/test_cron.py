"""Cron expressions: parsing, refusals and next times."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice
from zoneinfo import ZoneInfo

import pytest

from orbweaver.control.cron import CronError, parse

SATURDAY = "2026-11-21T09:00"


def ms(moment: str) -> int:
    return round(datetime.fromisoformat(moment).replace(tzinfo=UTC).timestamp() * 1000)


def after(text: str, moment: str, zone: str | None = None, most: int = 2) -> list[str]:
    """List the next firings in UTC."""
    found = parse(text).firings_after(ms(moment), ZoneInfo(zone) if zone else None)
    moments = (datetime.fromtimestamp(one / 1000, tz=UTC) for one in islice(found, most))
    return [f"{one:%Y-%m-%dT%H:%M}" for one in moments]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0 3 * * ? *", ["2026-11-22T03:00", "2026-11-23T03:00"]),
        ("0 9 * * ? *", ["2026-11-22T09:00", "2026-11-23T09:00"]),
        ("5/20 8-9,22 * * ? *", ["2026-11-21T09:05", "2026-11-21T09:25"]),
        ("0 12 1,15 * ? *", ["2026-12-01T12:00", "2026-12-15T12:00"]),
        ("0 12 1 JAN,jul ? *", ["2027-01-01T12:00", "2027-07-01T12:00"]),
        ("0 12 ? * MON-FRI *", ["2026-11-23T12:00", "2026-11-24T12:00"]),
        ("0 12 ? * 1 *", ["2026-11-22T12:00", "2026-11-29T12:00"]),
        ("0 12 ? * L *", ["2026-11-21T12:00", "2026-11-28T12:00"]),
        ("0 12 ? * 6L *", ["2026-11-27T12:00", "2026-12-25T12:00"]),
        ("0 12 ? * FRI#2 *", ["2026-12-11T12:00", "2027-01-08T12:00"]),
        ("0 12 L * ? *", ["2026-11-30T12:00", "2026-12-31T12:00"]),
        ("0 12 LW * ? *", ["2026-11-30T12:00", "2026-12-31T12:00"]),
        # 2027-01-31 and 2027-02-28 are Sundays, 2027-05-01 is a Saturday.
        ("0 12 LW 1-2 ? 2027", ["2027-01-29T12:00", "2027-02-26T12:00"]),
        ("0 12 1W 5 ? 2027", ["2027-05-03T12:00"]),
        # 2027-01-02 is a Saturday.
        ("0 12 2W 1 ? 2027", ["2027-01-01T12:00"]),
        ("0 12 15W 5-8 ? 2027", ["2027-05-14T12:00", "2027-06-15T12:00"]),
        ("0 12 15W 8 ? 2027", ["2027-08-16T12:00"]),
        ("0 12 31W 2 ? *", []),
        ("0 0 29 2 ? *", ["2028-02-29T00:00", "2032-02-29T00:00"]),
        ("0 0 30 2 ? *", []),
        ("0 0 1 1 ? 2026", []),
        ("0 0 * * ? 2027/2", ["2027-01-01T00:00", "2027-01-02T00:00"]),
        ("*/30 0 ? * 2 *", ["2026-11-23T00:00", "2026-11-23T00:30"]),
    ],
)
def test_next_times_of_expressions(text: str, expected: list[str]) -> None:
    assert after(text, SATURDAY) == expected


@pytest.mark.parametrize(
    ("text", "moment", "expected"),
    [
        ("0 3 * * ? *", "2026-03-27T12:00", ["2026-03-28T02:00", "2026-03-29T01:00"]),
        # Clocks change from 02:00 to 03:00, so 02:30 does not exist on that day.
        ("30 2 * * ? *", "2026-03-27T12:00", ["2026-03-28T01:30", "2026-03-30T00:30"]),
        # Clocks change from 03:00 to 02:00, so 02:30 exists twice and counts once.
        ("30 2 * * ? *", "2026-10-24T12:00", ["2026-10-25T00:30", "2026-10-26T01:30"]),
    ],
)
def test_next_times_follow_clock_changes_of_zone(
    text: str, moment: str, expected: list[str]
) -> None:
    assert after(text, moment, "Europe/Berlin") == expected


@pytest.mark.parametrize(
    ("text", "minutes"),
    [("0 3 * * ? *", 1440), ("0,50 * * * ? *", 10), ("0/7 * * * ? *", 4), ("58 23,0 * * ? *", 60)],
)
def test_shortest_gap_crosses_hours_and_midnight(text: str, minutes: int) -> None:
    assert parse(text).gap_minutes() == minutes


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it has 0 fields: give six"),
        ("0 3 * * *", "it has 5 fields: give six, minutes hours day-of-month month"),
        ("0 3 * * * *", "give ? in one of day-of-month and day-of-week, and not in both"),
        ("0 3 ? * ? *", "give ? in one of day-of-month and day-of-week, and not in both"),
        ("60 3 * * ? *", "'60' does not fit the field minutes: give 0 to 59"),
        ("0 24 * * ? *", "'24' does not fit the field hours: give 0 to 23"),
        ("0 3 0 * ? *", "'0' does not fit the field day-of-month: give 1 to 31"),
        ("0 3 32W * ? *", "'32' does not fit the field day-of-month"),
        ("0 3 * 13 ? *", "the field month: give 1 to 12 or JAN to DEC"),
        ("0 3 * MAI ? *", "'MAI' does not fit the field month"),
        ("0 3 ? * 8 *", "the field day-of-week: give 1 to 7 or SUN to SAT"),
        ("0 3 ? * MOO#1 *", "'MOO' does not fit the field day-of-week"),
        ("0 3 * * ? 1969", "'1969' does not fit the field year: give 1970 to 2199"),
        ("5-1 3 * * ? *", "'5-1' in the field minutes names nothing"),
        ("0/0 3 * * ? *", "'0/0' in the field minutes names nothing"),
        ("1-2-3 3 * * ? *", "'1-2-3' does not fit the field minutes"),
        (", 3 * * ? *", "'' does not fit the field minutes"),
        ("? 3 * * ? *", "'?' does not fit the field minutes"),
        ("0 3 L,1 * ? *", "'L' does not fit the field day-of-month"),
        (f"{'0,' * 100}0 3 * * ? *", "it has 6 fields: give six"),
    ],
)
def test_invalid_expression_names_field_and_fix(text: str, said: str) -> None:
    with pytest.raises(CronError) as raised:
        parse(text)
    assert said in str(raised.value)
    assert len(str(raised.value)) < 200
