"""The exporter killed before and after every single effect: old, new or no export, never half."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from orbweaver.adapters.memory import ManualClock, Moment, World
from orbweaver.exporter import Continue, Exported
from orbweaver.ports import Transient
from tests.unit.exporting import (
    DAY,
    NOON_MS,
    PLACE,
    exported,
    exporter_of,
    manifest_of,
    page,
    pages_of,
    rows_of,
    world_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orbweaver.core.record import PageRecord


class CrashError(Exception):
    """The process is gone."""


class Doom:
    """A gate that kills the process at its nth moment, and looks as a reader does at each one."""

    def __init__(self, world: World, fatal: int) -> None:
        self.world = world
        self.fatal = fatal
        self.count = 0
        self.manifests: set[bytes | None] = set()

    async def __call__(self, _name: str, _moment: Moment) -> None:
        self.look()
        self.count += 1
        if self.count > self.fatal:
            raise CrashError  # and at every later moment: the dead do nothing more

    def look(self) -> None:
        """Check that what a reader sees is whole."""
        if manifest_of(self.world.files, PLACE) is not None:
            rows_of(self.world.files, PLACE)
        self.manifests.add(self.world.files.get(PLACE.manifest))


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What the day held at the last export (None: there was none), and what it holds now."""

    old: list[PageRecord] | None
    new: list[PageRecord]


def _changed(numbers: range, number: int) -> list[PageRecord]:
    return [page(n, title="changed") if n == number else page(n) for n in numbers]


CHANGES = {
    "first export": Change(old=None, new=pages_of(range(25))),
    "unchanged": Change(old=pages_of(range(25)), new=pages_of(range(25))),
    "one row changed": Change(old=pages_of(range(25)), new=_changed(range(25), 0)),
    "another row changed": Change(old=pages_of(range(25)), new=_changed(range(25), 24)),
    "a late row": Change(old=pages_of(range(25)), new=pages_of(range(26))),
    "longer": Change(old=pages_of(range(10)), new=pages_of(range(45))),
    "shorter": Change(old=pages_of(range(45)), new=pages_of(range(10))),
    "emptied": Change(old=pages_of(range(25)), new=[]),
    "filled": Change(old=[], new=pages_of(range(25))),
}


async def _before_and_after(change: Change) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Make the files of the last export, and those that the next one is to end with."""
    old: dict[str, bytes] = {}
    if change.old is not None:
        await exported(world_of(change.old, old))
    new: dict[str, bytes] = {}
    await exported(world_of(change.new, new))
    return old, new


@pytest.mark.parametrize("name", CHANGES)
async def test_killed_anywhere_a_run_leaves_the_old_the_new_or_none(name: str) -> None:
    """At every moment of a run, the last too, a reader sees a whole export or none (case 28)."""
    old, new = await _before_and_after(CHANGES[name])
    fatal, done = 0, False
    while not done:
        world = world_of(CHANGES[name].new, dict(old))
        doom = Doom(world, fatal)
        try:
            await exported(world, gate=doom)
            done = True
        except CrashError:
            pass
        doom.look()
        assert doom.manifests <= {old.get(PLACE.manifest), new[PLACE.manifest], None}
        await exported(world)
        assert world.files == new, f"not repaired after moment {fatal}"
        fatal += 1
    assert fatal > 20


@pytest.mark.parametrize("name", ["first export", "one row changed", "shorter", "longer"])
async def test_killed_anywhere_in_a_continued_day(name: str) -> None:
    """A day of one part an invocation, killed once at any moment and invoked again, ends whole."""
    old, new = await _before_and_after(CHANGES[name])
    fatal, done = 0, False
    while not done:
        world = world_of(CHANGES[name].new, dict(old))
        doom = Doom(world, fatal)
        done = not await _chain(world, doom)
        assert world.files == new, f"not repaired after moment {fatal}"
        assert doom.manifests <= {old.get(PLACE.manifest), new[PLACE.manifest], None}
        fatal += 1
    assert fatal > 20


async def _chain(world: World, doom: Doom) -> bool:
    """Invoke until the day is exported, the same event again after a crash; whether one came."""
    event: Mapping[str, Any] = {"day": DAY}
    crashed = False
    while True:
        exporter = exporter_of(world, gate=doom, clock=ManualClock(NOON_MS))
        try:
            result = await exporter.export(
                DAY, deadline_ms=NOON_MS, resume=event.get("resume", False)
            )
        except CrashError:
            crashed = True
            doom.fatal = 1_000_000
            continue
        if isinstance(result, Continue):
            event = result.event
        else:
            return crashed


async def test_a_part_overwritten_by_another_run_is_noticed() -> None:
    """A run that ends over parts it did not write withdraws the manifest and fails."""
    world = world_of(pages_of(range(25)))

    async def intruder(name: str, moment: Moment) -> None:
        if (name, moment) == ("files.list", Moment.BEFORE):
            world.files[PLACE.folder + "part-00000.jsonl.gz"] = b"another run's"

    with pytest.raises(Transient, match="another run"):
        await exported(world, gate=intruder)
    assert PLACE.manifest not in world.files
    await exported(world)
    rows_of(world.files, PLACE)


async def test_parts_lost_between_two_invocations_are_noticed_and_made_again() -> None:
    """A continued run that counted on a changed part fails once, and the next one begins anew."""
    single = world_of(pages_of(range(25)))
    await exported(single)
    world = world_of(pages_of(range(25)))
    await exporter_of(world).export(DAY, deadline_ms=NOON_MS)
    world.files[PLACE.folder + "part-00000.jsonl.gz"] = b"another run's"
    with pytest.raises(Transient):
        await exporter_of(world).export(DAY, resume=True)
    assert PLACE.manifest not in world.files
    assert isinstance(await exporter_of(world).export(DAY, resume=True), Exported)
    assert world.files == single.files
