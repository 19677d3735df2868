"""The exporter over memory: how work is shared, goes on, and comes down to a worker a unit."""

from __future__ import annotations

import json

import pytest

from orbweaver.exporting.manifest import ExportEventError
from orbweaver.exporting.requests import RUN_MS_MAX
from orbweaver.exporting.run_state import OrderKind, decode_order
from tests.memory import ManualClock, Moment, World
from tests.unit.export_stage import (
    DAY,
    DAY_MS,
    HOUR_MS,
    MANIFEST,
    NOON_MS,
    Scripted,
    drained,
    exported,
    exporter_of,
    manifest_of,
    numbers_of,
    pages_of,
    store,
    three_shards,
    world_of,
)


def bodies(world: World, kind: OrderKind = OrderKind.UNIT) -> list[str]:
    """List what is ordered of a kind."""
    return [mail.body for mail in world.ordered if decode_order(mail.body).kind is kind]


# --- going on ----------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 10, 11, 45])
async def test_a_unit_continued_after_every_chunk_is_the_same(rows: int) -> None:
    """With time always short each order makes one chunk, and the files are a single run's."""
    single = world_of(pages_of(range(rows)))
    await exported(single)
    world = world_of(pages_of(range(rows)))
    exporter = exporter_of(world)
    await exporter.begin({"day": DAY}, "one")
    orders = await drained(world, exporter, NOON_MS)
    assert world.files == single.files
    # A chunk each, one that finds no more if the last one was full, and the seal.
    assert orders == -(-rows // 10) + (rows % 10 == 0) + 1


async def test_an_exporter_with_time_left_goes_on_by_itself() -> None:
    """A deadline beyond the reserve changes nothing: one order for the unit, one to seal."""
    world = world_of(pages_of(range(45)))
    exporter = exporter_of(world)
    await exporter.begin({"day": DAY}, "one")
    assert await drained(world, exporter, NOON_MS + 60_001) == 2


async def test_a_turn_reads_only_what_is_left() -> None:
    """It asks no earlier shard again, and its own shard behind the last key."""
    world, pages = World(), Scripted(three_shards(), [])
    exporter = exporter_of(world, pages=pages)
    await exporter.begin({"day": DAY}, "one")
    for _ in range(2):
        await exporter.handle(world.ordered.pop(0).body, NOON_MS)
    pages.reads.clear()
    await drained(world, exporter)
    assert sorted(pages.reads, key=str) == [(1, f"{_crawl()}#019"), (2, None)]


def _crawl() -> str:
    return three_shards()[0][0][1].crawl


@pytest.mark.parametrize("turns", [0, 1, 3])
async def test_copies_of_an_order_come_down_to_one(turns: int) -> None:
    """However many copies there are and whichever goes first, one of them goes on."""
    world = world_of(pages_of(range(45)))
    exporter = exporter_of(world)
    await exporter.begin({"day": DAY}, "one")
    for _ in range(turns):
        await exporter.handle(world.ordered.pop(0).body, NOON_MS)
    # As if somebody had died after each of many continuations.
    world.ordered += world.ordered * 20
    most = 0
    while world.ordered:
        await exporter.handle(world.ordered.pop(0).body, NOON_MS)
        most = max(most, len(bodies(world)))
    assert most <= 21
    assert manifest_of(world.files) is not None
    clean = world_of(pages_of(range(45)))
    await exported(clean)
    assert world.files == clean.files


async def test_a_copy_stops_where_another_one_has_gone_on() -> None:
    """Of two orders with different tickets the lower one does nothing, before or after."""
    world = world_of(pages_of(range(45)))
    exporter = exporter_of(world)
    await exporter.begin({"day": DAY}, "one")
    first = world.ordered[0].body
    for _ in range(2):
        await exporter.handle(world.ordered.pop(0).body, NOON_MS)
    before = dict(world.files)
    await exporter.handle(first, NOON_MS)
    assert world.files == before
    assert len(world.ordered) == 1


async def test_a_worker_that_is_overtaken_in_the_middle_stops_at_its_next_chunk() -> None:
    """It leaves the unit to whoever has the higher ticket, with what that one has done."""
    world = world_of(pages_of(range(45)))
    rival = exporter_of(world, seed=2)
    calls = 0

    async def gate(name: str, moment: Moment) -> None:
        nonlocal calls
        calls += (name, moment) == ("files.put", Moment.AFTER)
        if calls == 3:
            calls += 1
            order = json.loads(first)
            order["ticket"] = [7, "rival"]
            await rival.handle(json.dumps(order), NOON_MS)

    exporter = exporter_of(world)
    await exporter.begin({"day": DAY}, "one")
    first = world.ordered.pop(0).body
    await exporter_of(world, gate=gate).handle(first)
    assert [decode_order(body).ticket[0] for body in bodies(world)] == [8]
    await drained(world, exporter)
    assert sorted(numbers_of(world.files)) == list(range(45))


# --- runs ---------------------------------------------------------------------------------------


async def test_the_same_request_twice_is_one_run() -> None:
    """Its second delivery orders what is not done, and the run stays the one that it was."""
    world = world_of(pages_of(range(45)))
    exporter = exporter_of(world)
    await exporter.begin({"day": DAY}, "one")
    first = decode_order(world.ordered[0].body)
    await exporter.begin({"day": DAY}, "one")
    again = decode_order(world.ordered[1].body)
    assert (again.run, again.unit) == (first.run, first.unit)
    assert again.ticket > first.ticket
    await drained(world, exporter)
    assert len(world.exported) == 1


async def test_a_later_request_takes_the_place_of_a_run() -> None:
    """What was stored when it came in is exported, and what the run before ordered is not done."""
    world = world_of(pages_of(range(20)))
    exporter = exporter_of(world)
    await exporter.begin({"day": DAY}, "one")
    await exporter.handle(world.ordered.pop(0).body, NOON_MS)
    store(world, pages_of(range(20, 25)))
    await exporter.begin({"day": DAY}, "two")
    await drained(world, exporter)
    assert sorted(numbers_of(world.files)) == list(range(25))
    assert len(world.exported) == 1
    assert not [key for key in world.files if "_work" in key]


async def test_a_later_request_counts_even_by_a_slow_clock() -> None:
    """Runs are ordered by who began last, though clocks differ."""
    world = world_of(pages_of(range(20)))
    exporter = exporter_of(world)
    await exporter.begin({"day": DAY}, "one")
    await exporter_of(world, clock=ManualClock(NOON_MS - HOUR_MS)).begin({"day": DAY}, "two")
    runs = [decode_order(body).run for body in bodies(world)]
    assert runs == sorted(runs)
    assert len(set(runs)) == 2


async def test_a_request_that_was_overtaken_begins_nothing() -> None:
    """Delivered again after a later one has begun, it has nothing to add."""
    world = world_of(pages_of(range(20)))
    exporter = exporter_of(world)
    for identity in ("one", "two"):
        await exporter.begin({"day": DAY}, identity)
    waiting = list(world.ordered)
    assert await exporter.begin({"day": DAY}, "one") == ()
    assert world.ordered == waiting


async def test_another_cut_does_not_change_a_run_that_is_going_on() -> None:
    """Settings that change between two orders count from the next run on."""
    world = world_of(pages_of(range(45)))
    await exporter_of(world).begin({"day": DAY}, "one")
    await exporter_of(world).handle(world.ordered.pop(0).body, NOON_MS)
    await drained(world, exporter_of(world, part_rows_max=7, formats=("csv",)))
    clean = world_of(pages_of(range(45)))
    await exported(clean)
    assert world.files == clean.files


async def test_no_records_make_a_manifest_without_files() -> None:
    """An empty day is exported as empty."""
    world = World()
    manifest = await exported(world)
    assert (manifest.rows, manifest.files, list(world.files)) == ({}, (), [MANIFEST])


# --- events ------------------------------------------------------------------------------------


async def test_a_schedule_by_the_day_exports_the_day_before() -> None:
    """The time of the event decides, whenever it is dealt with."""
    world = world_of(pages_of(range(5)))
    exporter = exporter_of(world, clock=ManualClock(NOON_MS + 99 * HOUR_MS))
    event = {"detail-type": "Scheduled Event", "time": "2026-11-22T02:00:00Z"}
    assert await exporter.begin(event, "one") == (DAY,)
    await drained(world, exporter)
    assert len(numbers_of(world.files)) == 5


@pytest.mark.parametrize(
    ("time", "days"),
    [
        ("2026-11-21T12:05:00Z", (DAY,)),
        ("2026-11-21T02:05:00Z", (DAY,)),
        ("2026-11-21T00:05:00Z", ("2026-11-20", DAY)),
        ("2026-11-22T01:05:00Z", (DAY, "2026-11-22")),
    ],
)
async def test_a_schedule_by_the_hour_exports_the_day_so_far(
    time: str, days: tuple[str, ...]
) -> None:
    """And in the first hours of a day what was late of the day before."""
    exporter = exporter_of(World(), span="hour")
    event = {"detail-type": "Scheduled Event", "time": time}
    assert await exporter.begin(event, "one") == days


async def test_by_the_hour_a_day_waits_for_a_run_that_is_going_on() -> None:
    """Or it would never end, if it took longer than an hour; one that has died is replaced."""
    world, clock = world_of(pages_of(range(45))), ManualClock(NOON_MS)
    exporter = exporter_of(world, span="hour", clock=clock)

    def event(hour: int) -> dict[str, str]:
        return {"detail-type": "Scheduled Event", "time": f"2026-11-21T{hour:02d}:05:00Z"}

    assert await exporter.begin(event(12), "one") == (DAY,)
    clock.at_ms += HOUR_MS
    assert await exporter.begin(event(13), "two") == ()
    assert await exporter.begin(event(12), "three") == (DAY,)  # the same once more
    clock.at_ms = NOON_MS + RUN_MS_MAX - 1
    assert await exporter.begin(event(15), "four") == ()
    clock.at_ms += 1
    assert await exporter.begin(event(16), "five") == (DAY,)
    # The last word on a day does not wait.
    clock.at_ms = DAY_MS + 24 * HOUR_MS
    night = {"detail-type": "Scheduled Event", "time": "2026-11-22T00:05:00Z"}
    assert await exporter.begin(night, "six") == (DAY, "2026-11-22")


@pytest.mark.parametrize("event", [{"day": "2026-02-30"}, {"dya": DAY}, {"day": DAY, "x": 1}])
async def test_a_bad_event_is_refused_before_anything_is_touched(event: dict[str, object]) -> None:
    """What asks for nothing is a typed error, and no file is written."""
    world = world_of(pages_of(range(5)))
    with pytest.raises(ExportEventError):
        await exporter_of(world).begin(event, "one")
    assert world.files == {}


@pytest.mark.parametrize("body", ["", "{}", "[]", "null", '{"v": 2}', '{"v": 1, "kind": "unit"}'])
async def test_a_bad_order_is_refused(body: str) -> None:
    """What is none of ours is a typed error, so that it ends among the dead letters."""
    with pytest.raises(ExportEventError):
        await exporter_of(World()).handle(body)
