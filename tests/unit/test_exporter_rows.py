"""Rows, events and names of an export, by example."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orbweaver.core.export import (
    ExportEventError,
    Job,
    Manifest,
    Part,
    Place,
    check_day,
    days_between,
    job_of,
    part_name,
    row,
)
from orbweaver.core.record import COLUMNS
from tests.unit.exporting import DAY, DAY_MS, HOUR_MS, NOON_MS, page

DAYS = 24 * HOUR_MS


def test_a_row_holds_every_column() -> None:
    """All columns are there in the order of the record, and empty ones are null."""
    line = row(page(7, title="Seven", links=0))
    cells = json.loads(line)
    assert tuple(cells) == COLUMNS
    assert cells["title"] == "Seven"
    assert cells["links"] == 0
    assert cells["outcome"] == "fetched"
    assert sum(value is None for value in cells.values()) == len(COLUMNS) - 9


@pytest.mark.parametrize(
    ("at_ms", "text"),
    [
        (DAY_MS + 10 * HOUR_MS + 123, "2026-11-21T10:00:00.123Z"),
        (DAY_MS, "2026-11-21T00:00:00.000Z"),
        (DAY_MS + DAYS - 1, "2026-11-21T23:59:59.999Z"),
        (0, "1970-01-01T00:00:00.000Z"),
        (1, "1970-01-01T00:00:00.001Z"),
        (4_102_444_800_007, "2100-01-01T00:00:00.007Z"),
    ],
)
def test_moments_are_iso_8601_in_utc(at_ms: int, text: str) -> None:
    """A moment keeps its milliseconds, always three digits of them, and ends in Z."""
    assert json.loads(row(page(7, at_ms=at_ms)))["fetched_at"] == text


@pytest.mark.parametrize(
    ("title", "raw"),
    [
        ("Grüße 日本 🕸", "Grüße 日本 🕸"),
        ("a\nb\r\tc", r"a\nb\r\tc"),
        ('"\\', r"\"\\"),
        ("\x00\x1b[31m", r"\u0000\u001b[31m"),
        ("\x7f\x85\x9b", r"\u007f\u0085\u009b"),
        ("\u2028\u2029", r"\u2028\u2029"),
        ("lone \ud800 and \udfff", "lone \ufffd and \ufffd"),
        ('{"level":"ERROR"}', r"{\"level\":\"ERROR\"}"),
        ("=cmd()", "=cmd()"),
        ("", ""),
    ],
)
def test_text_stays_on_its_line(title: str, raw: str) -> None:
    """Text is UTF-8 as it is, but for what could end a line, steer a terminal or not be encoded."""
    line = row(page(7, title=title)).decode()
    assert f'"title":"{raw}",' in line
    assert line.splitlines(keepends=True) == [line]
    assert json.loads(line)["title"] == title.replace("\ud800", "\ufffd").replace(
        "\udfff", "\ufffd"
    )


SCHEDULED = {"version": "0", "detail-type": "Scheduled Event", "source": "aws.events", "detail": {}}


@pytest.mark.parametrize(
    ("event", "job"),
    [
        ({}, Job(day="2026-11-20")),
        ({"day": "2026-01-31"}, Job(day="2026-01-31")),
        ({"day": DAY, "resume": False}, Job(day=DAY)),
        ({"day": DAY, "resume": True}, Job(day=DAY, resume=True)),
        (SCHEDULED, Job(day="2026-11-20")),
        (SCHEDULED | {"time": "2026-11-19T00:30:00Z"}, Job(day="2026-11-18")),
        (SCHEDULED | {"time": "2026-03-01T00:00:00Z"}, Job(day="2026-02-28")),
        (SCHEDULED | {"time": "2026-11-19T00:30:00.123456+00:00"}, Job(day="2026-11-18")),
        (SCHEDULED | {"time": "2026-11-19T00:30:00+01:00"}, Job(day="2026-11-17")),
        (SCHEDULED | {"time": "2026-11-19T00:30:00"}, Job(day="2026-11-18")),
    ],
)
def test_events_that_ask_for_a_day(event: dict[str, Any], job: Job) -> None:
    """Without a day it is the day before: the schedule's own time, or now."""
    assert job_of(event, NOON_MS) == job


@pytest.mark.parametrize(
    "event",
    [
        {"day": "2026-02-30"},
        {"day": "20261121"},
        {"day": "2026-W47-6"},
        {"day": "2026-11-21T00:00:00Z"},
        {"day": "2026-11-21\n"},
        {"day": "../../etc"},
        {"day": ""},
        {"day": None},
        {"day": 20261121},
        {"day": ["2026-11-21"]},
        {"resume": True},
        {"day": DAY, "resume": "true"},
        {"day": DAY, "resume": 1},
        {"dya": DAY},
        {"day": DAY, "format": "csv"},
        SCHEDULED | {"time": "yesterday"},
        SCHEDULED | {"time": 7},
        SCHEDULED | {"time": "0001-01-01T00:00:00Z"},
        [],
        None,
        DAY,
    ],
)
def test_events_that_ask_for_nothing_exportable(event: object) -> None:
    """A bad event is a typed error of bounded length, a ValueError too, that says what fits."""
    with pytest.raises(ExportEventError) as caught:
        job_of(event, NOON_MS)
    assert isinstance(caught.value, ValueError)
    assert len(str(caught.value)) <= 500


def test_a_long_bad_day_makes_no_long_error() -> None:
    """What is quoted back is bounded."""
    for event in ({"day": "9" * 100_000}, {"x" * 100_000: 1}, SCHEDULED | {"time": "9" * 100_000}):
        with pytest.raises(ExportEventError) as caught:
            job_of(event, NOON_MS)
        assert len(str(caught.value)) <= 500


def test_days_in_the_calendar_pass() -> None:
    """Leap days are days."""
    assert check_day("2028-02-29") == "2028-02-29"


@pytest.mark.parametrize(
    ("first_ms", "last_ms", "days"),
    [
        (NOON_MS, NOON_MS, (DAY,)),
        (DAY_MS, DAY_MS + DAYS - 1, (DAY,)),
        (DAY_MS - 1, DAY_MS, ("2026-11-20", DAY)),
        (NOON_MS, NOON_MS + 2 * DAYS, (DAY, "2026-11-22", "2026-11-23")),
    ],
)
def test_days_of_a_span(first_ms: int, last_ms: int, days: tuple[str, ...]) -> None:
    """A span names each UTC day that it touches."""
    assert days_between(first_ms, last_ms) == days


def test_names() -> None:
    """Keys are what readers hold on to, below a prefix or at the top of a folder."""
    place = Place(prefix="exports/", day=DAY)
    assert place.folder + part_name(0) == "exports/dt=2026-11-21/part-00000.jsonl.gz"
    assert place.manifest == "exports/dt=2026-11-21/manifest.json"
    assert place.state == "exports/_work/dt=2026-11-21/state.json"
    assert Place(prefix="", day=DAY).manifest == "dt=2026-11-21/manifest.json"
    assert part_name(123_456) == "part-123456.jsonl.gz"


def test_surplus_parts() -> None:
    """Only parts of the folder with numbers from the count on are surplus."""
    place = Place(prefix="exports/", day=DAY)
    names = ["part-00001.jsonl.gz", "part-00002.jsonl.gz", "part-100000.jsonl.gz"]
    others = ["part-2.jsonl.gz", "part-00002.jsonl", "xpart-00002.jsonl.gz", "manifest.json"]
    keys = [place.folder + name for name in names + others]
    assert place.surplus(keys, 2) == tuple(keys[1:3])


def test_a_manifest_contradicts_only_what_it_names() -> None:
    """The same part agrees, another one by its name does not, and a new name is free."""
    part = Part(name=part_name(0), rows=1, bytes=2, sha256="aa")
    manifest = Manifest(day=DAY, parts=(part,))
    assert not manifest.contradicts(part)
    assert manifest.contradicts(Part(name=part_name(0), rows=1, bytes=2, sha256="bb"))
    assert not manifest.contradicts(Part(name=part_name(1), rows=1, bytes=2, sha256="bb"))
