"""The exporter over memory: what it writes, how it cuts, how it goes on, what it waits out."""

from __future__ import annotations

import gzip
import hashlib
import json
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from orbweaver.adapters.memory import ManualClock, MemoryFiles, MemoryPages, Moment, World
from orbweaver.adapters.memory.world import Gate, open_gate
from orbweaver.core.export import SCHEMA, ExportEventError, Manifest, Place, decode_manifest
from orbweaver.core.outcome import Outcome, Reason
from orbweaver.core.record import COLUMNS, PageRecord, page_key
from orbweaver.exporter import Continue, Exported, Exporter
from orbweaver.ports import Permanent, Transient

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping

    from orbweaver.ports import Pages

DAY = "2026-11-21"
DAY_MS = 1_795_219_200_000
NOON_MS = DAY_MS + 12 * 3_600_000
HOUR_MS = 3_600_000
SHARDS = 4


# --- the rig, shared with the other tests of the exporter ----------------------------------------


def page(number: int, *, crawl: str = "docs", at_ms: int = NOON_MS, **more: Any) -> PageRecord:
    """Make a record of the day."""
    return PageRecord(
        crawl=crawl,
        url=f"https://example.org/{number}",
        outcome=Outcome.FETCHED,
        reason=Reason.OK,
        fetched_at=at_ms,
        depth=1,
        **more,
    )


def pages_of(numbers: Iterable[int], **more: Any) -> list[PageRecord]:
    """Make records, one for each number."""
    return [page(number, **more) for number in numbers]


def world_of(records: Iterable[PageRecord], files: dict[str, bytes] | None = None) -> World:
    """Make a world that holds these records, over files that may be another's."""
    world = World(files={} if files is None else files)
    world.pages.update({page_key(record, SHARDS): record for record in records})
    return world


def exporter_of(world: World, *, gate: Gate = open_gate, **options: Any) -> Exporter:
    """Make an exporter over a world; parts of 10 rows unless told."""
    options.setdefault("clock", ManualClock(NOON_MS))
    options.setdefault("part_rows_max", 10)
    options.setdefault("pages", MemoryPages(world, gate, shards=SHARDS))
    return Exporter(files=MemoryFiles(world, gate), random=Random(1), **options)


async def exported(world: World, **options: Any) -> Manifest:
    """Export the day at one go."""
    result = await exporter_of(world, **options).export(DAY)
    assert isinstance(result, Exported)
    return result.manifest


def manifest_of(files: Mapping[str, bytes], place: Place) -> Manifest | None:
    """Read the manifest as a reader does, if one stands."""
    body = files.get(place.manifest)
    if body is None:
        return None
    manifest = decode_manifest(body)
    assert manifest is not None
    return manifest


def rows_of(files: Mapping[str, bytes], place: Place) -> list[dict[str, Any]]:
    """Read a day as a careful reader does: by the manifest, each part checked against it."""
    manifest = manifest_of(files, place)
    assert manifest is not None
    rows: list[dict[str, Any]] = []
    for part in manifest.parts:
        body = files[place.folder + part.name]
        assert (len(body), hashlib.sha256(body).hexdigest()) == (part.bytes, part.sha256)
        lines = gzip.decompress(body).decode().splitlines()
        assert len(lines) == part.rows
        rows += [json.loads(line) for line in lines]
    return rows


PLACE = Place(prefix="exports/", day=DAY)


class Continuations:
    """Collects the events that ask for another invocation."""

    def __init__(self) -> None:
        self.events: list[Mapping[str, Any]] = []

    async def again(self, event: Mapping[str, Any]) -> None:
        self.events.append(event)


class Scripted:
    """A day's shards as lists, with faults: before row n of a shard, once for each mention."""

    def __init__(
        self, shards: list[list[tuple[str, PageRecord]]], faults: list[tuple[int, int]]
    ) -> None:
        self._shards = shards
        self._faults = list(faults)
        self.reads: list[tuple[int, str | None]] = []

    @property
    def shards(self) -> int:
        return len(self._shards)

    async def store(self, records: object) -> None:
        raise AssertionError("an exporter stores nothing")

    async def read_shard(
        self, day: str, shard: int, *, after: str | None = None, crawl: str | None = None
    ) -> AsyncIterator[tuple[str, PageRecord]]:
        self.reads.append((shard, after))
        for place, (key, record) in enumerate(self._shards[shard]):
            if after is not None and key <= after:
                continue
            if (shard, place) in self._faults:
                self._faults.remove((shard, place))
                raise Transient("throttled")
            yield key, record


def failing(effect: str, times: int, error: type[Exception] = Transient) -> Gate:
    """Make a gate that fails an effect's first calls, in turn before it and after it."""
    left = times

    async def gate(name: str, moment: Moment) -> None:
        nonlocal left
        if name == effect and left and (moment is Moment.BEFORE) == (left % 2 == 0):
            left -= 1
            raise error("S3 answers 503")

    return gate


def late_after(puts: int, clock: ManualClock) -> Gate:
    """Make a gate that lets an hour pass with the nth file written."""
    count = 0

    async def gate(name: str, moment: Moment) -> None:
        nonlocal count
        if (name, moment) == ("files.put", Moment.AFTER):
            count += 1
            if count == puts:
                clock.at_ms += HOUR_MS

    return gate


# --- what is written ---------------------------------------------------------------------------


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


# --- going on ----------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 10, 11, 45])
async def test_a_day_continued_after_every_part_is_the_same(rows: int) -> None:
    """With time always short each invocation writes one part, and the files are a single run's."""
    single = world_of(pages_of(range(rows)))
    await exported(single)
    world = world_of(pages_of(range(rows)))
    invocations, resume = 0, False
    while True:
        result = await exporter_of(world).export(DAY, deadline_ms=NOON_MS, resume=resume)
        invocations += 1
        if isinstance(result, Exported):
            break
        assert set(world.files) >= {PLACE.state}
        resume = True
    assert world.files == single.files
    assert invocations == -(-rows // 10) + 1


@pytest.mark.parametrize("boundary", range(1, 6))
async def test_a_day_continued_at_any_boundary_is_the_same(boundary: int) -> None:
    """Wherever time runs short, a second invocation ends with a single run's files."""
    single = world_of(pages_of(range(45)))
    await exported(single)
    world, clock = world_of(pages_of(range(45))), ManualClock(NOON_MS)
    first = exporter_of(world, clock=clock, gate=late_after(boundary, clock))
    assert await first.export(DAY, deadline_ms=NOON_MS + HOUR_MS) == Continue(day=DAY)
    assert PLACE.manifest not in world.files
    second = exporter_of(world, clock=clock)
    result = await second.export(DAY, deadline_ms=NOON_MS + 9 * HOUR_MS, resume=True)
    assert isinstance(result, Exported)
    assert world.files == single.files


async def test_a_run_with_time_left_is_not_put_off() -> None:
    """A deadline beyond the reserve changes nothing."""
    world = world_of(pages_of(range(45)))
    deadline_ms = NOON_MS + 30_001
    assert isinstance(await exporter_of(world).export(DAY, deadline_ms=deadline_ms), Exported)


async def test_a_resumed_run_reads_only_what_is_left() -> None:
    """A continued run asks no earlier shard again, and its own shard behind the last key."""
    shards = [
        [(f"docs#{number:03d}", page(number)) for number in range(start, start + 15)]
        for start in (0, 15, 30)
    ]
    world = World()
    pages = Scripted(shards, [])
    clock = ManualClock(NOON_MS)
    first = exporter_of(world, pages=pages, clock=clock, gate=late_after(2, clock))
    await first.export(DAY, deadline_ms=NOON_MS + HOUR_MS)
    pages.reads.clear()
    await exporter_of(world, pages=pages).export(DAY, resume=True)
    assert sorted(pages.reads) == [(1, "docs#019"), (2, None)]


async def test_a_state_of_another_cut_is_passed_over() -> None:
    """A state saved under another part size, by another version, or damaged: begin anew."""
    single = world_of(pages_of(range(25)))
    await exported(single, part_rows_max=7)
    world = world_of(pages_of(range(25)))
    await exporter_of(world).export(DAY, deadline_ms=NOON_MS)
    state = world.files[PLACE.state]
    damaged = [state, state[:-9], b"[]", b"{}", b'{"v": 0}', state.replace(b'"v": 1', b'"v": 2')]
    for body in damaged:
        world.files[PLACE.state] = body
        result = await exporter_of(world, part_rows_max=7).export(DAY, resume=True)
        assert isinstance(result, Exported)
        assert world.files == single.files
        world.files.pop(PLACE.manifest)


async def test_resuming_a_day_that_is_done_does_nothing() -> None:
    """A second copy of a continuation finds no state and a manifest: the day is exported."""
    world = world_of(pages_of(range(25)))
    manifest = await exported(world)
    before = dict(world.files)
    writes: list[str] = []

    async def gate(name: str, _moment: Moment) -> None:
        writes.append(name)

    again = await exporter_of(world, gate=gate).export(DAY, resume=True)
    assert again == Exported(manifest=manifest)
    assert world.files == before
    assert set(writes) == {"files.get"}


async def test_resuming_without_state_or_manifest_begins_anew() -> None:
    """A continuation whose state is gone exports the whole day."""
    world = world_of(pages_of(range(25)))
    result = await exporter_of(world).export(DAY, resume=True)
    assert isinstance(result, Exported)
    assert result.manifest.rows == 25


# --- events ------------------------------------------------------------------------------------


async def test_run_exports_the_day_before_and_asks_for_nothing_more() -> None:
    """The scheduled run exports yesterday; nothing is continued when it fits."""
    world, again = world_of(pages_of(range(25))), Continuations()
    exporter = exporter_of(world, clock=ManualClock(NOON_MS + 24 * HOUR_MS))
    result = await exporter.run({}, deadline_ms=NOON_MS + 48 * HOUR_MS, continuation=again)
    assert isinstance(result, Exported)
    assert (result.manifest.day, again.events) == (DAY, [])


async def test_run_goes_on_by_its_own_events() -> None:
    """Each event that a short run asks for is one that it accepts, until the day is done."""
    single = world_of(pages_of(range(25)))
    await exported(single)
    world, again = world_of(pages_of(range(25))), Continuations()
    event: Mapping[str, Any] = {"day": DAY}
    for _ in range(3):
        result = await exporter_of(world).run(event, deadline_ms=NOON_MS, continuation=again)
        assert isinstance(result, Continue)
        event = again.events[-1]
        assert event == {"day": DAY, "resume": True}
    result = await exporter_of(world).run(event, deadline_ms=NOON_MS, continuation=again)
    assert isinstance(result, Exported)
    assert len(again.events) == 3
    assert world.files == single.files


async def test_a_bad_day_is_refused_before_anything_is_touched() -> None:
    """A day that is none is a typed error, and no file is written."""
    world = world_of(pages_of(range(5)))
    with pytest.raises(ExportEventError, match="YYYY-MM-DD"):
        await exporter_of(world).export("2026-02-30")
    assert world.files == {}


# --- faults ------------------------------------------------------------------------------------


@pytest.mark.parametrize("effect", ["files.put", "files.get", "files.list", "files.delete"])
@pytest.mark.parametrize("times", [1, 2, 3])
async def test_a_busy_bucket_is_waited_out(effect: str, times: int) -> None:
    """503 on any call, before or after it took effect, costs seconds and changes no byte."""
    single = world_of(pages_of(range(25)))
    await exported(single)
    world, clock = world_of(pages_of(range(25))), ManualClock(NOON_MS)
    await exported(world, clock=clock, gate=failing(effect, times))
    assert world.files == single.files
    assert 1_000 * times <= clock.at_ms - NOON_MS <= 14_000


async def test_a_bucket_that_stays_busy_fails_the_run() -> None:
    """After a few tries the invocation fails, so that whoever invoked it tries again."""
    world, clock = world_of(pages_of(range(25))), ManualClock(NOON_MS)
    with pytest.raises(Transient):
        await exported(world, clock=clock, gate=failing("files.put", 99))
    assert PLACE.manifest not in world.files
    assert clock.at_ms - NOON_MS <= 14_000


async def test_a_permanent_fault_is_not_tried_again() -> None:
    """Access denied fails the run at once."""
    world, clock = world_of(pages_of(range(25))), ManualClock(NOON_MS)
    with pytest.raises(Permanent):
        await exported(world, clock=clock, gate=failing("files.put", 1, Permanent))
    assert clock.at_ms == NOON_MS


async def test_a_continuation_that_cannot_be_asked_for_is_tried_again() -> None:
    """A throttled self-invocation is repeated, not lost."""

    class Throttled(Continuations):
        async def again(self, event: Mapping[str, Any]) -> None:
            await super().again(event)
            if len(self.events) < 3:
                raise Transient("throttled")

    again = Throttled()
    exporter = exporter_of(world_of(pages_of(range(25))))
    await exporter.run({"day": DAY}, deadline_ms=NOON_MS, continuation=again)
    assert again.events == [{"day": DAY, "resume": True}] * 3


def _three_shards() -> list[list[tuple[str, PageRecord]]]:
    return [
        [(f"docs#{number:03d}", page(number)) for number in range(start, start + 15)]
        for start in (0, 15, 30)
    ]


@pytest.mark.parametrize(
    "faults",
    [
        [(0, 0)],
        [(0, 0), (0, 0), (0, 0)],
        [(shard, place) for shard in range(3) for place in range(15)],
        [(2, 14)] * 3,
    ],
)
async def test_throttled_reads_go_on_where_they_stopped(faults: list[tuple[int, int]]) -> None:
    """However often a read is throttled on its way, no row is lost, doubled or moved."""
    single, world = World(), World()
    await exported(single, pages=Scripted(_three_shards(), []))
    pages = Scripted(_three_shards(), faults)
    await exported(world, pages=pages)
    assert world.files == single.files
    assert len(pages.reads) == 3 + len(faults)


@pytest.mark.parametrize("shard", range(3))
async def test_a_shard_that_stays_throttled_fails_the_run(shard: int) -> None:
    """A shard that cannot be read fails the run, whichever it is, and the old export stands."""
    world = World()
    await exported(world, pages=Scripted(_three_shards(), []))
    before = dict(world.files)
    with pytest.raises(Transient):
        await exported(world, pages=Scripted(_three_shards(), [(shard, 7)] * 4))
    assert world.files == before


async def test_a_programming_error_in_a_reader_is_not_swallowed() -> None:
    """What a reader dies of comes out of the run as it is."""

    class Broken(Scripted):
        async def read_shard(
            self, day: str, shard: int, *, after: str | None = None, crawl: str | None = None
        ) -> AsyncIterator[tuple[str, PageRecord]]:
            async for item in super().read_shard(day, shard, after=after, crawl=crawl):
                yield item
            if shard == 1:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await exported(World(), pages=Broken(_three_shards(), []))


async def test_readers_stay_within_their_read_ahead() -> None:
    """While a part is written, no shard is read further than its bound."""
    read: dict[int, int] = {}
    seen_max: dict[int, int] = {}

    class Counting(Scripted):
        async def read_shard(
            self, day: str, shard: int, *, after: str | None = None, crawl: str | None = None
        ) -> AsyncIterator[tuple[str, PageRecord]]:
            async for item in super().read_shard(day, shard, after=after, crawl=crawl):
                read[shard] = read.get(shard, 0) + 1
                yield item

    async def gate(name: str, _moment: Moment) -> None:
        if name == "files.put" and not seen_max:
            seen_max.update(read)

    pages: Pages = Counting(_three_shards(), [])
    await exported(World(), pages=pages, gate=gate, part_rows_max=5, read_ahead_rows=4)
    # Five written, four waiting, one in the hand of a reader that has no room for it.
    assert seen_max[0] <= 5 + 4 + 1
    assert 1 <= seen_max[1] <= 4 + 1
    assert 1 <= seen_max[2] <= 4 + 1
