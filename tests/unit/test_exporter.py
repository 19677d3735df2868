"""The exporter over memory: what it writes, and how it cuts."""

from __future__ import annotations

import gzip
import hashlib
import json

import pytest

from orbweaver.adapters.memory import ManualClock, Moment
from orbweaver.core.export import SCHEMA, Place
from orbweaver.core.record import COLUMNS
from tests.unit.exporting import (
    DAY,
    DAY_MS,
    HOUR_MS,
    NOON_MS,
    PLACE,
    exported,
    exporter_of,
    page,
    pages_of,
    rows_of,
    world_of,
)


async def test_rows_come_shard_by_shard_in_key_order() -> None:
    """Rows follow the shards and within a shard its keys, each record once, all columns."""
    records = pages_of(range(57))
    world = world_of(records)
    manifest = await exported(world)
    rows = rows_of(world.files, PLACE)
    assert [row["url"] for row in rows] == [
        record.url for _, record in sorted(world.pages.items(), key=lambda item: _order(item[0]))
    ]
    assert manifest.rows == len(rows) == 57
    assert all(tuple(row) == COLUMNS for row in rows)


def _order(key: tuple[str, str]) -> tuple[int, str]:
    return int(key[0].partition("#")[2]), key[1]


async def test_the_manifest_says_what_is_there() -> None:
    """The manifest holds schema, day, columns, totals and sums of each part, and no time."""
    world = world_of(pages_of(range(25)))
    await exported(world)
    raw = json.loads(world.files[PLACE.manifest])
    assert list(raw) == ["schema", "day", "crawl", "columns", "rows", "parts"]
    assert (raw["schema"], raw["day"], raw["crawl"], raw["rows"]) == (SCHEMA, DAY, None, 25)
    assert raw["columns"] == list(COLUMNS)
    for part, rows in zip(raw["parts"], (10, 10, 5), strict=True):
        body = world.files[PLACE.folder + part["name"]]
        assert part["rows"] == rows == len(gzip.decompress(body).splitlines())
        assert part["bytes"] == len(body)
        assert part["sha256"] == hashlib.sha256(body).hexdigest()


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
        (9_999, 10_000, [9_999]),
        (10_000, 10_000, [10_000]),
        (10_001, 10_000, [10_000, 1]),
    ],
)
async def test_parts_are_full_but_for_the_last(rows: int, limit: int, parts: list[int]) -> None:
    """A part holds at most `part_rows_max` rows, and none is empty; an empty day has none."""
    world = world_of(pages_of(range(rows)))
    manifest = await exported(world, part_rows_max=limit)
    assert [part.rows for part in manifest.parts] == parts
    assert sorted(world.files) == [
        PLACE.manifest,
        *(f"exports/dt={DAY}/part-{number:05d}.jsonl.gz" for number in range(len(parts))),
    ]


async def test_a_part_carries_neither_time_nor_name() -> None:
    """The gzip header has mtime 0 and no optional fields, so equal rows are equal files."""
    world = world_of(pages_of(range(3)))
    await exported(world)
    header = world.files[PLACE.folder + "part-00000.jsonl.gz"][:10]
    assert header[:4] == b"\x1f\x8b\x08\x00"
    assert header[4:8] == bytes(4)


async def test_twice_is_once() -> None:
    """A second run, at another time and with other chances, leaves the same bytes (case 27)."""
    world = world_of(pages_of(range(35)))
    await exported(world)
    first = dict(world.files)
    await exported(world, clock=ManualClock(NOON_MS + 5 * HOUR_MS), read_ahead_rows=1)
    assert world.files == first


async def test_a_shorter_run_removes_stale_parts_and_nothing_else() -> None:
    """Parts beyond the new count go, other files of the folder and other days stay."""
    others = {
        f"exports/dt={DAY}/pages.csv": b"",
        f"exports/dt={DAY}/part-00009.parquet": b"",
        f"exports/dt={DAY}/old/part-00009.jsonl.gz": b"",
        "exports/dt=2026-11-20/part-00009.jsonl.gz": b"",
    }
    long = world_of(pages_of(range(45)), dict(others))
    await exported(long)
    short = world_of(pages_of(range(15)), long.files)
    await exported(short)
    clean = world_of(pages_of(range(15)), dict(others))
    await exported(clean)
    assert short.files == clean.files


async def test_only_the_days_own_records_are_exported() -> None:
    """A day begins and ends at midnight UTC, to the millisecond."""
    moments = [DAY_MS - 1, DAY_MS, DAY_MS + 24 * HOUR_MS - 1, DAY_MS + 24 * HOUR_MS]
    world = world_of([page(place, at_ms=at_ms) for place, at_ms in enumerate(moments)])
    await exported(world)
    assert sorted(row["fetched_at"] for row in rows_of(world.files, PLACE)) == [
        "2026-11-21T00:00:00.000Z",
        "2026-11-21T23:59:59.999Z",
    ]


async def test_one_crawl_over_midnight() -> None:
    """A crawl's span gives a folder for each of its days, with that crawl's records only."""
    world = world_of(
        [
            *pages_of(range(12), crawl="mine"),
            *pages_of(range(3), crawl="mine", at_ms=NOON_MS + 24 * HOUR_MS),
            *pages_of(range(20), crawl="theirs"),
        ]
    )
    exporter = exporter_of(world, prefix="")
    made = await exporter.export_between(NOON_MS, NOON_MS + 24 * HOUR_MS, crawl="mine")
    assert [(manifest.day, manifest.rows, manifest.crawl) for manifest in made] == [
        (DAY, 12, "mine"),
        ("2026-11-22", 3, "mine"),
    ]
    assert sorted(world.files) == [
        "dt=2026-11-21/manifest.json",
        "dt=2026-11-21/part-00000.jsonl.gz",
        "dt=2026-11-21/part-00001.jsonl.gz",
        "dt=2026-11-22/manifest.json",
        "dt=2026-11-22/part-00000.jsonl.gz",
    ]
    for manifest in made:
        rows = rows_of(world.files, Place(prefix="", day=manifest.day))
        assert {row["crawl"] for row in rows} == {"mine"}


async def test_unchanged_records_never_take_the_export_away() -> None:
    """A run over unchanged records never deletes the manifest: readers are not disturbed."""
    world = world_of(pages_of(range(25)))
    await exported(world)
    effects: list[str] = []

    async def gate(name: str, _moment: Moment) -> None:
        effects.append(name)
        assert PLACE.manifest in world.files

    await exported(world, gate=gate)
    assert "files.put" in effects


@pytest.mark.parametrize("garbage", [b"", b"[]", b"{", b'{"schema": 0}', b'{"schema": 1}', b"\xff"])
async def test_a_manifest_nobody_can_read_is_replaced(garbage: bytes) -> None:
    """What stands in the manifest's place and is none goes before the first part is put."""
    world = world_of(pages_of(range(12)))
    await exported(world)
    clean = dict(world.files)
    world.files[PLACE.manifest] = garbage
    await exported(world)
    assert world.files == clean


async def test_a_damaged_part_is_repaired() -> None:
    """A part that was damaged or lost is there again after a run, with the same manifest."""
    world = world_of(pages_of(range(25)))
    await exported(world)
    clean = dict(world.files)
    world.files[PLACE.folder + "part-00000.jsonl.gz"] = b"damaged"
    del world.files[PLACE.folder + "part-00001.jsonl.gz"]
    await exported(world)
    assert world.files == clean
