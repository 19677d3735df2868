"""State that the workers of an export share."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orbweaver.exporting.manifest import File
from orbweaver.exporting.run_state import (
    FIRST,
    ExportLimits,
    ExportScope,
    RunPlan,
    Unit,
    UnitProgress,
    begun_ms,
    changes_of,
    decode_plan,
    decode_progress,
    encode_plan,
    encode_progress,
    groups_of,
    manifest_of,
    run_name,
)
from orbweaver.model.columns import PAGES
from tests.unit.export_stage import CRAWL, DAY

CUT = ExportLimits(shards=16, formats=("jsonl",), part_rows_max=10, part_bytes_max=100)


def test_runs_of_day_and_crawl_have_separate_folders() -> None:
    assert ExportScope(day=DAY).runs == f"_work/dt={DAY}/all/runs/"
    assert ExportScope(day=DAY, crawl="c").state_folder == f"_work/dt={DAY}/crawl=c/"


@pytest.mark.parametrize(
    ("rows", "groups"), [(0, 1), (1, 1), (10, 1), (11, 2), (100, 10), (160, 16), (161, 16)]
)
def test_groups_follow_from_rows_of_first_shard(rows: int, groups: int) -> None:
    assert groups_of(rows, 16, 160) == groups


def test_run_names_are_ordered() -> None:
    first = run_name(1_700_000_000_000, "aa", [])
    assert first == "1700000000000-aa"
    assert begun_ms(first) == 1_700_000_000_000
    assert run_name(5, "aa", [first]) == first
    second = run_name(5, "bb", [first, "other.txt"])
    assert second == "1700000000001-bb"
    assert run_name(5, "aa", [first, second]) is None
    assert run_name(1_800_000_000_000, "cc", [first, second]) == "1800000000000-cc"


def test_plan_round_trips_and_other_version_is_an_error() -> None:
    plan = RunPlan(limits=CUT, units=(Unit(crawl="a", group=1, groups=2), changes_of("a")))
    assert decode_plan(encode_plan(plan)) == plan
    for body in (b"", b"[]", b"{}", encode_plan(plan).replace(b'"v": 1', b'"v": 2')):
        with pytest.raises(ValueError, match=r"plan|Expecting"):
            decode_plan(body)


def _done(crawl: str, rows: int, path: str) -> UnitProgress:
    file = File(
        path=path, table="pages", format="jsonl", crawl=crawl, rows=rows, bytes=1, sha256=path
    )
    return UnitProgress(
        name="docs",
        rows={"pages": rows},
        outcomes={"fetched": rows},
        files=(file,),
        columns={"pages": PAGES.columns},
    )


def test_progress_adds_chunks() -> None:
    held = UnitProgress(ticket=(3, "x"))
    two = held.after_key(_done("a", 2, "p1")).after_key(_done("a", 5, "p2"))
    assert (two.ticket, two.chunk, two.rows) == ((3, "x"), 2, {"pages": 7})
    assert [file.path for file in two.files] == ["p1", "p2"]
    unit = Unit("a", 0, 2)
    assert decode_progress(encode_progress(two, unit), unit) == replace(two, groups=2)


def test_progress_of_other_plan_restarts_unit() -> None:
    unit, other = Unit("a", 0, 2), Unit("a", 0, 1)
    body = encode_progress(_done("a", 2, "p1"), unit)
    assert decode_progress(body, other) == UnitProgress()


@pytest.mark.parametrize("body", [None, b"", b"[]", b"{}", b'{"v": 1}', b'{"v": 0, "ticket": [1]}'])
def test_unreadable_progress_restarts_unit(body: bytes | None) -> None:
    assert decode_progress(body, Unit("a")) == UnitProgress(ticket=FIRST)


def test_manifest_is_sum_of_units() -> None:
    states = [
        (Unit(crawl=CRAWL, group=0, groups=2), _done(CRAWL, 2, "p3")),
        (Unit(crawl=CRAWL, group=1, groups=2), _done(CRAWL, 5, "p1")),
        (Unit(crawl="empty"), UnitProgress(name="empty", done=True)),
        (changes_of(CRAWL), UnitProgress(name="docs", rows={"changes": 4}, done=True)),
    ]
    manifest = manifest_of(ExportScope(day=DAY), states)
    assert set(manifest.crawls) == {CRAWL}
    assert manifest.crawls[CRAWL].rows == {"pages": 7, "changes": 4}
    assert manifest.crawls[CRAWL].outcomes == {"fetched": 7}
    assert [file.path for file in manifest.files] == ["p1", "p3"]
