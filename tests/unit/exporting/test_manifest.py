"""Exports by example: where files lie, manifests, days."""

from __future__ import annotations

import json

import pytest

from orbweaver.exporting.manifest import (
    CRAWL_KEY,
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


def test_where_files_lie() -> None:
    """Paths are what readers hold on to, below a prefix or in a folder."""
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
def test_what_is_no_file_of_an_export(path: str) -> None:
    """What is not named as ours are is left to whoever put it there."""
    assert place_of(path) is None


@pytest.mark.parametrize("key", ["", CRAWL_KEY])
def test_place_of_reads_path_back(key: str) -> None:
    """Files of earlier versions have a key before the crawl."""
    place = FilePlace(
        table="items/a/b",
        format="jsonl",
        day=DAY,
        crawl=CRAWL,
        group=7,
        chunk=100_000,
        suffix=".jsonl.gz",
        key=key,
    )
    assert place_of(place.path) == place


FILE = File(path=PATH, table="pages", format="parquet", crawl=CRAWL, rows=1, bytes=2, sha256="aa")


def test_a_manifest_adds_up() -> None:
    """Rows are counted once, in however many formats; bytes are those of all files."""
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


def test_days_in_the_calendar_pass() -> None:
    """Leap days are days."""
    assert check_day("2028-02-29") == "2028-02-29"


@pytest.mark.parametrize(
    "day",
    ["2026-02-30", "20261121", "2026-W47-6", "2026-11-21\n", "../../etc", "", None, 20261121],
)
def test_what_is_no_day(day: object) -> None:
    """Only what is written as days are, and is in the calendar, is one."""
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
def test_days_of_a_span(first_ms: int, last_ms: int, days: tuple[str, ...]) -> None:
    """A span names each UTC day that it touches."""
    assert days_between(first_ms, last_ms) == days


def test_formats_are_listed_in_one_order() -> None:
    """Each once, however they are written; an unknown one is refused by its name."""
    assert formats_in("parquet, jsonl,parquet") == ("jsonl", "parquet")
    with pytest.raises(ValueError, match=r"'xml'.*jsonl,csv,parquet,warc"):
        formats_in("csv,xml")


def test_a_page_as_json_has_every_column() -> None:
    """In their order, empty ones as null; the moment is ISO 8601, and half a pair is mended."""
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
def test_archives_are_called_after_crawl_and_day(name: str, path: str) -> None:
    """Many of them may lie in one folder; a file of before is still known by its path."""
    assert path_of("pages", name, DAY, CRAWL, 3, 12, ".warc.gz") == path
    older = f"pages/warc/dt={DAY}/{CRAWL}/part-03-00012.cdxj"
    for one in (path, older):
        place = place_of(one)
        assert place is not None
        assert (place.path, place.crawl, place.day, place.chunk) == (one, CRAWL, DAY, 12)
    assert place_of(path.replace(f"{CRAWL}-{DAY}", f"other-{DAY}")) is None or name == "jsonl"
