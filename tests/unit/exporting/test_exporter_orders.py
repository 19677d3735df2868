"""The exporter over memory adapters: how workers share, continue and finish units."""

from __future__ import annotations

import json

import pytest

from orbweaver.exporting.manifest import ExportEventError
from orbweaver.exporting.run_state import RUN_MS_MAX, OrderKind, decode_order
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
    return [mail.body for mail in world.ordered if decode_order(mail.body).kind is kind]


# --- continued units ---------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 10, 11, 45])
async def test_unit_continued_after_every_chunk_writes_same_files(rows: int) -> None:
    single = world_of(pages_of(range(rows)))
    await exported(single)
    world = world_of(pages_of(range(rows)))
    exporter = exporter_of(world)
    await exporter.begin({"day": DAY}, "one")
    orders = await drained(world, exporter, NOON_MS)
    assert world.files == single.files
    # One order per chunk, an empty one if the last chunk was full, and the seal.
    assert orders == -(-rows // 10) + (rows % 10 == 0) + 1


async def test_exporter_with_time_left_finishes_unit_in_one_order() -> None:
    world = world_of(pages_of(range(45)))
    exporter = exporter_of(world)
    await exporter.begin({"day": DAY}, "one")
    assert await drained(world, exporter, NOON_MS + 60_001) == 2


async def test_continued_unit_reads_only_remaining_rows() -> None:
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
async def test_copies_of_order_leave_one_worker(turns: int) -> None:
    world = world_of(pages_of(range(45)))
    exporter = exporter_of(world)
    await exporter.begin({"day": DAY}, "one")
    for _ in range(turns):
        await exporter.handle(world.ordered.pop(0).body, NOON_MS)
    # Simulates a crash after each of many continuations.
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


async def test_order_with_lower_ticket_does_nothing() -> None:
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


async def test_superseded_worker_stops_at_next_chunk() -> None:
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


async def test_repeated_request_continues_same_run() -> None:
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


async def test_later_request_supersedes_run() -> None:
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


async def test_later_request_wins_despite_slow_clock() -> None:
    world = world_of(pages_of(range(20)))
    exporter = exporter_of(world)
    await exporter.begin({"day": DAY}, "one")
    await exporter_of(world, clock=ManualClock(NOON_MS - HOUR_MS)).begin({"day": DAY}, "two")
    runs = [decode_order(body).run for body in bodies(world)]
    assert runs == sorted(runs)
    assert len(set(runs)) == 2


async def test_superseded_request_starts_nothing() -> None:
    world = world_of(pages_of(range(20)))
    exporter = exporter_of(world)
    for identity in ("one", "two"):
        await exporter.begin({"day": DAY}, identity)
    waiting = list(world.ordered)
    assert await exporter.begin({"day": DAY}, "one") == ()
    assert world.ordered == waiting


async def test_changed_options_do_not_affect_current_run() -> None:
    world = world_of(pages_of(range(45)))
    await exporter_of(world).begin({"day": DAY}, "one")
    await exporter_of(world).handle(world.ordered.pop(0).body, NOON_MS)
    await drained(world, exporter_of(world, part_rows_max=7, formats=("csv",)))
    clean = world_of(pages_of(range(45)))
    await exported(clean)
    assert world.files == clean.files


async def test_empty_day_has_manifest_without_files() -> None:
    world = World()
    manifest = await exported(world)
    assert (manifest.rows, manifest.files, list(world.files)) == ({}, (), [MANIFEST])


# --- events ------------------------------------------------------------------------------------


async def test_daily_schedule_exports_previous_day() -> None:
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
async def test_hourly_schedule_exports_current_day(time: str, days: tuple[str, ...]) -> None:
    exporter = exporter_of(World(), span="hour")
    event = {"detail-type": "Scheduled Event", "time": time}
    assert await exporter.begin(event, "one") == days


async def test_hourly_export_waits_for_current_run() -> None:
    """Otherwise an export longer than an hour would never end. A dead run is replaced."""
    world, clock = world_of(pages_of(range(45))), ManualClock(NOON_MS)
    exporter = exporter_of(world, span="hour", clock=clock)

    def event(hour: int) -> dict[str, str]:
        return {"detail-type": "Scheduled Event", "time": f"2026-11-21T{hour:02d}:05:00Z"}

    assert await exporter.begin(event(12), "one") == (DAY,)
    clock.at_ms += HOUR_MS
    assert await exporter.begin(event(13), "two") == ()
    assert await exporter.begin(event(12), "three") == (DAY,)  # same event again
    clock.at_ms = NOON_MS + RUN_MS_MAX - 1
    assert await exporter.begin(event(15), "four") == ()
    clock.at_ms += 1
    assert await exporter.begin(event(16), "five") == (DAY,)
    # The last export of a day does not wait.
    clock.at_ms = DAY_MS + 24 * HOUR_MS
    night = {"detail-type": "Scheduled Event", "time": "2026-11-22T00:05:00Z"}
    assert await exporter.begin(night, "six") == (DAY, "2026-11-22")


@pytest.mark.parametrize("event", [{"day": "2026-02-30"}, {"dya": DAY}, {"day": DAY, "x": 1}])
async def test_invalid_event_is_refused_without_effect(event: dict[str, object]) -> None:
    world = world_of(pages_of(range(5)))
    with pytest.raises(ExportEventError):
        await exporter_of(world).begin(event, "one")
    assert world.files == {}


@pytest.mark.parametrize("body", ["", "{}", "[]", "null", '{"v": 2}', '{"v": 1, "kind": "unit"}'])
async def test_invalid_order_is_refused(body: str) -> None:
    with pytest.raises(ExportEventError):
        await exporter_of(World()).handle(body)
