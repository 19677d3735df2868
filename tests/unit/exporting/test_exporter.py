"""The exporter over memory adapters: files that it writes, and how it splits them."""

from __future__ import annotations

import csv
import gzip
import io
import json
from dataclasses import replace
from typing import Any

import pytest

from orbweaver.exporting.manifest import encode_manifest
from orbweaver.extraction.extract import Field, ItemRule, ValueKind
from orbweaver.frontier import warc
from orbweaver.frontier.link_table import document_of
from orbweaver.model.columns import LINKS
from orbweaver.model.crawl import Crawl
from orbweaver.model.item import Item
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import COLUMNS, PageRecord
from orbweaver.parsing.link_rows import LinkRows
from tests.memory import ManualClock, MemoryFiles, Moment, World
from tests.unit.export_stage import (
    CRAWL,
    DAY,
    DAY_MS,
    HOUR_MS,
    MANIFEST,
    NOON_MS,
    drained,
    exported,
    exporter_of,
    manifest_of,
    numbers_of,
    page,
    pages_of,
    rows_of,
    store,
    world_of,
)

FOLDER = f"exports/pages/jsonl/dt={DAY}/{CRAWL}/"


async def test_rows_follow_shards_and_keys() -> None:
    world = world_of(pages_of(range(57)))
    manifest = await exported(world)
    rows = rows_of(world.files)
    assert [row["url"] for row in rows] == [
        record.url for _, record in sorted(world.pages.items(), key=lambda item: _order(item[0]))
    ]
    assert manifest.rows == {"pages": 57}
    assert all(tuple(row) == COLUMNS for row in rows)


def _order(key: tuple[str, str]) -> tuple[int, str]:
    return int(key[0].partition("#")[2]), key[1]


@pytest.mark.parametrize(
    ("rows", "limit", "parts"),
    [
        (0, 10, []),
        (1, 10, [1]),
        (9, 10, [9]),
        (10, 10, [10]),
        (11, 10, [10, 1]),
        (20, 10, [10, 10]),
        (21, 10, [10, 10, 1]),
        (3, 1, [1, 1, 1]),
    ],
)
async def test_parts_are_full_except_last(rows: int, limit: int, parts: list[int]) -> None:
    world = world_of(pages_of(range(rows)))
    manifest = await exported(world, part_rows_max=limit)
    assert [file.rows for file in manifest.files] == parts
    assert sorted(world.files) == [
        MANIFEST,
        *(f"{FOLDER}part-00-{number:05d}.jsonl.gz" for number in range(len(parts))),
    ]


async def test_large_crawl_has_several_units() -> None:
    large, small = pages_of(range(200)), pages_of(range(6), crawl="small")
    world = world_of([*large, *small])
    manifest = await exported(world, part_rows_max=5, cuts_crawls=True)
    groups = {(file.crawl, file.path.rpartition("part-")[2][:2]) for file in manifest.files}
    assert groups == {("small", "00"), *((CRAWL, f"{number:02d}") for number in range(4))}
    assert len(rows_of(world.files)) == 206
    whole = world_of([*large, *small])
    await exported(whole, part_rows_max=5)
    by_url = {(row["crawl"], row["url"]): row for row in rows_of(world.files)}
    assert by_url == {(row["crawl"], row["url"]): row for row in rows_of(whole.files)}


async def test_chunk_ends_at_byte_limit() -> None:
    random_texts = [f"{number:x}" * 40 for number in range(7**9, 7**9 + 100)]
    world = world_of(page(number, title=text) for number, text in enumerate(random_texts))
    manifest = await exported(
        world, part_rows_max=1_000, part_bytes_max=4_000, formats=("csv", "jsonl")
    )
    chunks: dict[str, list[int]] = {}
    for file in manifest.files:
        chunks.setdefault(file.format, []).append(file.rows)
    assert chunks["csv"] == chunks["jsonl"]
    assert len(chunks["csv"]) > 1
    assert sum(chunks["csv"]) == 100


async def test_manifest_describes_export() -> None:
    failed = replace(page(9), outcome=Outcome.FAILED, reason=Reason.DNS)
    world = world_of([*pages_of(range(3)), failed, *pages_of(range(2), crawl="other")])
    world.crawls[CRAWL] = Crawl(id=CRAWL, name="docs", started_at_ms=NOON_MS)
    await exported(world)
    raw = json.loads(world.files[MANIFEST])
    assert list(raw) == ["schema", "day", "crawl", "rows", "crawls", "files", "columns"]
    assert (raw["schema"], raw["day"], raw["crawl"], raw["rows"]) == (2, DAY, None, {"pages": 6})
    assert raw["crawls"][CRAWL] == {
        "name": "docs",
        "rows": {"pages": 4},
        "outcomes": {"failed": 1, "fetched": 3},
    }
    assert set(raw["crawls"]) == {CRAWL, "other"}
    assert [column[0] for column in raw["columns"]["pages"]] == list(COLUMNS)
    assert all(set(file) == FILE_KEYS for file in raw["files"])


FILE_KEYS = {"path", "table", "format", "crawl", "rows", "bytes", "sha256"}


async def test_complete_export_is_announced_with_manifest() -> None:
    world = world_of(pages_of(range(3)))
    manifest = await exported(world)
    assert world.exported == [(manifest, MANIFEST)]


# --- repeated exports -------------------------------------------------------------------------


async def test_second_export_writes_same_bytes() -> None:
    """The second run has another time and another random seed (case 27)."""
    world = world_of(pages_of(range(35)))
    await exported(world)
    first = dict(world.files)
    later = ManualClock(NOON_MS + 5 * HOUR_MS)
    await exported(world, "two", clock=later, read_ahead_rows=1, seed=2)
    assert world.files == first


async def test_export_of_unchanged_records_rewrites_no_file() -> None:
    world = world_of(pages_of(range(35)))
    await exported(world)
    standing = dict(world.files)

    async def gate(_name: str, _moment: Moment) -> None:
        seen = {key: body for key, body in world.files.items() if "/_work/" not in key}
        assert all(seen[key] is body for key, body in standing.items())

    await exported(world, "two", gate=gate)


@pytest.mark.parametrize(
    "options", [{"part_rows_max": 7}, {"cuts_crawls": True}, {"formats": ("csv",)}]
)
async def test_export_with_other_options_replaces_all_files(options: dict[str, Any]) -> None:
    world = world_of(pages_of(range(75)))
    await exported(world)
    await exported(world, "two", **options)
    clean = world_of(pages_of(range(75)))
    await exported(clean, **options)
    assert world.files == clean.files


async def test_shorter_export_removes_only_stale_parts() -> None:
    others = {
        f"{FOLDER}notes.txt": b"",
        f"exports/pages/jsonl/dt={DAY}/readme": b"",
        f"exports/pages/jsonl/dt=2026-11-20/{CRAWL}/part-00-00009.jsonl.gz": b"",
        f"exports/dt={DAY}/part-00009.jsonl.gz": b"",
        f"exports/_snapshots/docs/{CRAWL}/head.json": b"",
        f"bodies/{CRAWL}/dt={DAY}/a.warc.gz": b"",
    }
    stale = {
        f"{FOLDER}part-00-00099.jsonl.gz": b"",
        f"exports/items/docs/product/parquet/dt={DAY}/{CRAWL}/part-03-00000.parquet": b"",
        f"exports/pages/csv/dt={DAY}/gone/part-00-00000.csv.gz": b"",
    }
    world = world_of(pages_of(range(15)), {**others, **stale})
    await exported(world)
    clean = world_of(pages_of(range(15)), dict(others))
    await exported(clean)
    assert world.files == clean.files


@pytest.mark.parametrize("garbage", [b"", b"[]", b"{", b'{"schema": 0}', b'{"schema": 2}', b"\xff"])
async def test_unreadable_manifest_is_replaced(garbage: bytes) -> None:
    world = world_of(pages_of(range(12)))
    await exported(world)
    clean = dict(world.files)
    world.files[MANIFEST] = garbage
    await exported(world, "two")
    assert world.files == clean


async def test_damaged_or_missing_file_is_repaired() -> None:
    world = world_of(pages_of(range(25)))
    await exported(world)
    clean = dict(world.files)
    world.files[f"{FOLDER}part-00-00000.jsonl.gz"] = b"damaged"
    del world.files[f"{FOLDER}part-00-00001.jsonl.gz"]
    await exported(world, "two")
    assert world.files == clean


async def test_only_records_of_day_are_exported() -> None:
    moments = [DAY_MS - 1, DAY_MS, DAY_MS + 24 * HOUR_MS - 1, DAY_MS + 24 * HOUR_MS]
    world = world_of([page(place, at_ms=at_ms) for place, at_ms in enumerate(moments)])
    await exported(world)
    assert sorted(row["fetched_at"] for row in rows_of(world.files)) == [
        "2026-11-21T00:00:00.000Z",
        "2026-11-21T23:59:59.999Z",
    ]


async def test_expired_crawl_is_absent_from_manifest() -> None:
    world = world_of([*pages_of(range(5)), *pages_of(range(5), crawl="expired")])
    exporter = exporter_of(world)
    await exporter.begin({"day": DAY}, "one")
    world.pages = {key: one for key, one in world.pages.items() if one.crawl != "expired"}
    await drained(world, exporter)
    clean = world_of(pages_of(range(5)))
    await exported(clean)
    assert world.files == clean.files


# --- tables ------------------------------------------------------------------------------------

RULE = ItemRule(
    name="book",
    match="/",
    fields=(
        Field(name="title", where="h1", required=True),
        Field(name="price", where=".price", type=ValueKind.PRICE),
    ),
)


def _with_items(number: int, *items: Item) -> PageRecord:
    invalid = sum(not item.valid for item in items)
    return page(number, items=len(items), items_invalid=invalid, extracted=items)


def _book(place: int, title: str | None, **more: Any) -> Item:
    fields = {"title": title, "price": "12.30", "price_currency": "GBP"}
    return Item(table="book", place=place, fields=fields, **more)


def _shop(*records: PageRecord, **more: Any) -> World:
    world = world_of(records)
    world.crawls[CRAWL] = Crawl(id=CRAWL, name="docs", started_at_ms=NOON_MS, **more)
    return world


async def test_items_have_typed_table_and_invalid_items_own_table() -> None:
    bad = _book(1, None, problems=("title: missing",))
    world = _shop(_with_items(1, _book(0, "One"), bad), page(2), items=(RULE,))
    manifest = await exported(world, formats=("jsonl", "csv"))
    assert manifest.rows == {"pages": 2, "items/docs/book": 1, "invalid_items": 1}
    (row,) = rows_of(world.files, "items/docs/book")
    assert row == {
        "crawl": CRAWL,
        "url": "https://example.org/1",
        "fetched_at": "2026-11-21T12:00:00.000Z",
        "place": 0,
        "title": "One",
        "price": 12.3,
        "price_currency": "GBP",
    }
    (invalid,) = rows_of(world.files, "invalid_items")
    assert (invalid["rule"], invalid["problems"]) == ("book", ["title: missing"])
    types = {name: str(type_) for name, type_, _ in _columns(manifest, "items/docs/book")}
    assert (types["price"], types["place"], types["title"]) == ("decimal", "integer", "string")
    tables = {(file.table, file.format) for file in manifest.files}
    assert len(tables) == 6


def _columns(manifest: Any, table: str) -> list[list[Any]]:
    found: list[list[Any]] = json.loads(encode_manifest(manifest))["columns"][table]
    return found


@pytest.mark.parametrize("known", [False, True])
async def test_items_without_rule_are_one_json_column(known: bool) -> None:
    world = _shop(_with_items(1, _book(0, "One")))
    if not known:
        world.crawls.clear()
    await exported(world)
    (row,) = rows_of(world.files, "items/docs/book")
    assert json.loads(row["item"]) == {"title": "One", "price": "12.30", "price_currency": "GBP"}


def _stored(world: World, number: int, *, text: bool = True) -> PageRecord:
    url = f"https://example.org/{number}"
    answer = warc.response(
        url, NOON_MS, status=200, headers={}, body=b"<p>" * number, truncated=False
    )
    document = {"title": f"T{number}", "text": f"text {number}", "markdown": f"*{number}*"}
    made = warc.conversion(url, NOON_MS, document, stored=True)
    key = f"bodies/{CRAWL}/dt={DAY}/{number:032x}.warc.gz"
    world.files[key] = answer + made
    found: dict[str, Any] = {"text_offset": len(answer), "text_length": len(made)} if text else {}
    return page(number, body_key=key, body_offset=0, body_length=len(answer), status=200, **found)


async def test_texts_are_read_from_stored_bodies() -> None:
    world = _shop(page(90))
    store(world, [_stored(world, number) for number in range(1, 40)])
    store(world, [_stored(world, 40, text=False)])
    gone = _stored(world, 41)
    store(world, [gone])
    del world.files[str(gone.body_key)]
    manifest = await exported(world)
    assert manifest.rows == {"pages": 42, "texts": 39}
    order = [row["url"] for row in rows_of(world.files)]
    texts = rows_of(world.files, "texts")
    assert [row["url"] for row in texts] == [url for url in order if _number(url) < 40]
    assert all(row["text"] == f"text {_number(row['url'])}" for row in texts)


async def test_links_are_read_once_per_file() -> None:
    rows = LinkRows(kinds="ai", targets=("https://example.org/1", "https://a.example/"))
    records: list[PageRecord] = []
    files: dict[str, bytes] = {}
    for file in range(3):
        key = f"bodies/{CRAWL}/dt={DAY}/{file:032x}.warc.gz"
        body = b"x" * 1_000
        for number in range(file * 10, file * 10 + 10):
            url = f"https://example.org/{number}"
            member = warc.links_record(url, NOON_MS, document_of(rows, url))
            place: dict[str, Any] = {
                "links_offset": len(body),
                "links_length": len(member),
                "body_key": key,
            }
            records.append(page(number, **place))
            body += member
        files[key] = body
    world = world_of(records, dict(files))
    asked: list[tuple[str, int]] = []

    class Counted(MemoryFiles):
        async def cut(self, key: str, offset: int, length: int) -> bytes | None:
            asked.append((key, length))
            return await super().cut(key, offset, length)

    manifest = await exported(world, files=Counted(world), part_rows_max=100)
    assert manifest.rows == {"pages": 30, "links": 60}
    assert sorted(asked) == [(key, len(body) - 1_000) for key, body in sorted(files.items())]
    found = rows_of(world.files, "links")
    order = [row["url"] for row in rows_of(world.files)]
    assert [row["url"] for row in found] == [url for url in order for _ in range(2)]
    assert [tuple(row) for row in found] == [tuple(one.name for one in LINKS.columns)] * 60
    assert {(row["position"], row["kind"]) for row in found} == {(0, "a"), (1, "img")}
    first = replace(records[0], links_length=9)
    del world.files[str(records[29].body_key)]
    store(world, [first])
    again = await exported(world, part_rows_max=100)
    assert again.rows == {"pages": 30, "links": 38}


def _number(url: str) -> int:
    return int(url.rpartition("/")[2])


async def test_answers_are_warc_file_with_index() -> None:
    world = _shop(page(90))
    records = [_stored(world, number) for number in range(1, 30)]
    store(world, records)
    forgotten = records[7]
    key, length = str(forgotten.body_key), forgotten.body_length or 0
    world.files[key] = warc.tombstone(length) + world.files[key][length:]
    manifest = await exported(world, formats=("warc",), part_rows_max=1_000)
    assert manifest.rows == {"pages": 30}
    (index, archive) = sorted(manifest.files, key=lambda file: file.path)
    assert (index.path[-5:], archive.path[-8:]) == (".cdxj", ".warc.gz")
    body = world.files[f"exports/{archive.path}"]
    members = list(warc.members(body))
    urls = [member.record.url for member in members if member.record.type == "response"]
    assert len(urls) == archive.rows == 28
    assert forgotten.url not in urls
    for line in world.files[f"exports/{index.path}"].decode().splitlines():
        entry = json.loads(line.split(" ", 2)[2])
        offset, size = int(entry["offset"]), int(entry["length"])
        assert warc.read(body[offset : offset + size]).url == entry["url"]


async def test_all_formats_contain_same_rows() -> None:
    world = world_of(pages_of(range(35)))
    manifest = await exported(world, formats=("csv", "jsonl", "parquet"))
    counts = {name: [0, 0] for name in ("csv", "jsonl", "parquet")}
    urls = []
    for file in manifest.files:
        counts[file.format][0] += 1
        counts[file.format][1] += file.rows
        if file.format == "csv":
            body = world.files[f"exports/{file.path}"]
            text = gzip.decompress(body) if file.path.endswith(".gz") else body
            urls += [row["url"] for row in csv.DictReader(io.StringIO(text.decode("utf-8-sig")))]
    assert set(map(tuple, counts.values())) == {(4, 35)}
    assert [_number(url) for url in urls] == numbers_of(world.files)
    assert manifest_of(world.files) == manifest
