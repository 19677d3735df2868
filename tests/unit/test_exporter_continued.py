"""The exporter over memory: how it goes on where a run ended, and what sets it going."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from orbweaver.adapters.memory import ManualClock, Moment, World
from orbweaver.core.export import ExportEventError
from orbweaver.exporter import Continue, Exported
from tests.unit.exporting import (
    DAY,
    HOUR_MS,
    NOON_MS,
    PLACE,
    Continuations,
    Scripted,
    exported,
    exporter_of,
    late_after,
    page,
    pages_of,
    world_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


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
