"""File paths, manifests and days of exports."""

from __future__ import annotations

import json

import pytest

from orbweaver.exporting.manifest import (
    ExportEventError,
    File,
    FilePlace,
    Manifest,
    Sums,
    check_day,
    days_between,
    decode_manifest,
    encode_manifest,
    folder_of,
    formats_in,
    manifest_path,
    page_as_json,
    path_of,
    place_of,
)
from orbweaver.model.columns import Column, Type
from orbweaver.model.page_record import COLUMNS
from tests.unit.export_stage import CRAWL, DAY, DAY_MS, HOUR_MS, NOON_MS, page

DAYS = 24 * HOUR_MS
PATH = path_of("pages", "parquet", DAY, CRAWL, 3, 12, ".parquet")


def test_paths_of_export_files_are_stable() -> None:
    assert f"pages/parquet/dt={DAY}/{CRAWL}/part-03-00012.parquet" == PATH
    path = path_of("items/shop/book", "csv", DAY, CRAWL, 123, 1_234_567, ".csv.gz")
    assert path == f"items/shop/book/csv/dt={DAY}/{CRAWL}/part-123-1234567.csv.gz"
    assert folder_of("texts", "jsonl", DAY) == f"texts/jsonl/dt={DAY}/"
    assert manifest_path(DAY) == f"manifests/dt={DAY}.json"
    assert manifest_path(DAY, CRAWL) == f"manifests/dt={DAY}/crawl={CRAWL}.json"


@pytest.mark.parametrize(
    "path",
    [
        "pages/parquet/part-03-00012.parquet",
        PATH.replace("part-", "xpart-"),
        PATH.replace("-03-", "-3-"),
        PATH.replace("-00012", "-12"),
        PATH + "/more",
        PATH.removesuffix(".parquet"),
        f"dt={DAY}/part-00001.jsonl.gz",
        manifest_path(DAY),
        "",
    ],
)
def test_place_of_ignores_other_files(path: str) -> None:
    assert place_of(path) is None


def test_place_of_reads_path_back() -> None:
    place = FilePlace(
        table="items/a/b",
        format="jsonl",
        day=DAY,
        crawl=CRAWL,
        group=7,
        chunk=100_000,
        suffix=".jsonl.gz",
    )
    assert place_of(place.path) == place


FILE = File(path=PATH, table="pages", format="parquet", crawl=CRAWL, rows=1, bytes=2, sha256="aa")


def test_manifest_sums_rows_and_bytes() -> None:
    """Rows count once in any number of formats; bytes count in all files."""
    manifest = Manifest(
        day=DAY,
        crawls={
            "a": Sums(name="a", rows={"pages": 2, "texts": 1}),
            "b": Sums(name="b", rows={"pages": 3}),
        },
        files=(FILE, FILE),
        columns={"pages": (Column(name="url"), Column(name="links", type=Type.INTEGER))},
    )
    assert manifest.rows == {"pages": 5, "texts": 1}
    assert manifest.bytes == 4
    raw = json.loads(encode_manifest(manifest))
    assert raw["columns"] == {"pages": [["url", "string", False], ["links", "integer", False]]}
    assert decode_manifest(encode_manifest(manifest)) == manifest


def test_check_day_accepts_calendar_days() -> None:
    assert check_day("2028-02-29") == "2028-02-29"


@pytest.mark.parametrize(
    "day",
    ["2026-02-30", "20261121", "2026-W47-6", "2026-11-21\n", "../../etc", "", None, 20261121],
)
def test_check_day_rejects_other_text(day: object) -> None:
    with pytest.raises(ExportEventError, match="YYYY-MM-DD"):
        check_day(day)


@pytest.mark.parametrize(
    ("first_ms", "last_ms", "days"),
    [
        (NOON_MS, NOON_MS, (DAY,)),
        (DAY_MS, DAY_MS + DAYS - 1, (DAY,)),
        (DAY_MS - 1, DAY_MS, ("2026-11-20", DAY)),
        (NOON_MS, NOON_MS + 2 * DAYS, (DAY, "2026-11-22", "2026-11-23")),
    ],
)
def test_days_between_returns_every_utc_day(
    first_ms: int, last_ms: int, days: tuple[str, ...]
) -> None:
    assert days_between(first_ms, last_ms) == days


def test_formats_are_sorted_and_distinct() -> None:
    assert formats_in("parquet, jsonl,parquet") == ("jsonl", "parquet")
    with pytest.raises(ValueError, match=r"'xml'.*jsonl,csv,parquet,warc"):
        formats_in("csv,xml")


def test_page_as_json_has_every_column() -> None:
    cells = page_as_json(page(7, title="Se\ud800ven", links=0))
    assert tuple(cells) == COLUMNS
    assert (cells["title"], cells["links"], cells["outcome"]) == ("Se\ufffdven", 0, "fetched")
    assert cells["fetched_at"] == "2026-11-21T12:00:00.000Z"
    assert json.loads(json.dumps(cells)) == cells


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("warc", f"pages/warc/dt={DAY}/{CRAWL}/{CRAWL}-{DAY}-03-00012.warc.gz"),
        ("jsonl", f"pages/jsonl/dt={DAY}/{CRAWL}/part-03-00012.warc.gz"),
    ],
)
def test_archive_name_contains_crawl_and_day(name: str, path: str) -> None:
    assert path_of("pages", name, DAY, CRAWL, 3, 12, ".warc.gz") == path
    older = f"pages/warc/dt={DAY}/{CRAWL}/part-03-00012.cdxj"
    for one in (path, older):
        place = place_of(one)
        assert place is not None
        assert (place.path, place.crawl, place.day, place.chunk) == (one, CRAWL, DAY, 12)
    assert place_of(path.replace(f"{CRAWL}-{DAY}", f"other-{DAY}")) is None or name == "jsonl"
