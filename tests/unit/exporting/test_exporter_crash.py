"""The exporter is killed before and after every effect.

Readers see the old export, the new one or none, but never a partial one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from orbweaver.exporting.run_state import ExportOrder, OrderKind, Unit, decode_order, encode_order
from orbweaver.model.page_record import PageRecord
from tests.memory import Moment, World
from tests.simulation.tables import SimWorkspace
from tests.unit.export_stage import (
    CRAWL,
    DAY,
    MANIFEST,
    NOON_MS,
    SCOPE,
    drained,
    exported,
    exporter_of,
    manifest_of,
    page,
    pages_of,
    rows_of,
    store,
    world_of,
)

OPTIONS: dict[str, Any] = {"workspace": SimWorkspace(), "part_rows_max": 3, "cuts_crawls": True}


CHANGING = frozenset({"files.put", "files.delete", "orders.send", "events.exported"})


class CrashError(Exception):
    """Simulates a killed process."""


class Doom:
    """A gate that kills the process at its nth moment and checks the reader's view at each one."""

    def __init__(self, world: World, fatal: int) -> None:
        self.world = world
        self.fatal = fatal
        self.count = 0
        self.dead = False
        self.manifests: set[bytes | None] = set()

    async def __call__(self, name: str, _moment: Moment) -> None:
        if name in CHANGING:  # between two other effects, every moment is the same
            self.look()
            self.count += 1
            self.dead = self.dead or self.count == self.fatal
        if self.dead:
            raise CrashError  # and at every later moment, because a dead process has no effect

    def look(self) -> None:
        if manifest_of(self.world.files) is not None:
            rows_of(self.world.files)
        self.manifests.add(self.world.files.get(MANIFEST))


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Records at the last export (None: no export), and records now."""

    old: list[PageRecord] | None
    new: list[PageRecord]


def _changed(numbers: range, number: int) -> list[PageRecord]:
    return [page(n, title="changed") if n == number else page(n) for n in numbers]


CHANGES = {
    "first export": Change(old=None, new=pages_of(range(8))),
    "unchanged": Change(old=pages_of(range(8)), new=pages_of(range(8))),
    "one row changed": Change(old=pages_of(range(8)), new=_changed(range(8), 0)),
    "a late row": Change(old=pages_of(range(8)), new=pages_of(range(9))),
    "longer": Change(old=pages_of(range(3)), new=pages_of(range(20))),
    "shorter": Change(old=pages_of(range(20)), new=pages_of(range(3))),
    "emptied": Change(old=pages_of(range(8)), new=[]),
    "filled": Change(old=[], new=pages_of(range(8))),
}


async def _before_and_after(change: Change) -> tuple[dict[str, bytes], dict[str, bytes]]:
    old: dict[str, bytes] = {}
    if change.old is not None:
        await exported(world_of(change.old, old), **OPTIONS)
    new: dict[str, bytes] = {}
    await exported(world_of(change.new, new), **OPTIONS)
    return old, new


async def _delivered(world: World, gate: Doom, deadline_ms: int | None) -> bool:
    """Export, and deliver each event and order again after a crash.

    Return True if a crash occurred.
    """
    begun = False
    while not begun or world.ordered:
        exporter = exporter_of(world, gate=gate, seed=gate.count, **OPTIONS)
        try:
            if begun:
                order = world.ordered[0]
                await exporter.handle(order.body, deadline_ms)
                world.ordered.remove(order)
            else:
                await exporter.begin({"day": DAY}, "one")
                begun = True
        except CrashError:
            gate.dead = False
    return gate.count >= gate.fatal


@pytest.mark.thorough
@pytest.mark.parametrize("short", [False, True], ids=["at one go", "a chunk a turn"])
@pytest.mark.parametrize("name", CHANGES)
async def test_export_killed_at_any_moment_continues(name: str, short: bool) -> None:
    """At every moment readers see the complete old export, the new one, or none (case 28)."""
    old, new = await _before_and_after(CHANGES[name])
    fatal, crashed = 1, True
    while crashed:
        world = world_of(CHANGES[name].new, dict(old))
        doom = Doom(world, fatal)
        crashed = await _delivered(world, doom, NOON_MS if short else None)
        doom.look()
        assert doom.manifests <= {old.get(MANIFEST), new[MANIFEST], None}
        assert world.files == new, f"not repaired after moment {fatal}"
        fatal += 1
    assert fatal > 10


@pytest.mark.parametrize("name", ["first export", "one row changed", "shorter"])
async def test_export_killed_at_any_moment_is_replaced_by_new_request(name: str) -> None:
    old, new = await _before_and_after(CHANGES[name])
    fatal, crashed = 1, True
    while crashed:
        world = world_of(CHANGES[name].new, dict(old))
        doom = Doom(world, fatal)
        exporter = exporter_of(world, gate=doom, **OPTIONS)
        try:
            await exporter.begin({"day": DAY}, "one")
            await drained(world, exporter)
            crashed = False
        except CrashError:
            doom.dead = False
        doom.look()
        assert doom.manifests <= {old.get(MANIFEST), new[MANIFEST], None}
        late = [order.body for order in world.ordered]
        world.ordered.clear()
        await exported(world, "two", **OPTIONS)
        assert world.files == new, f"not repaired after moment {fatal}"
        # Orders of the dead run arrive late and change nothing.
        for body in late:
            await exporter_of(world, **OPTIONS).handle(body)
            await drained(world, exporter_of(world, **OPTIONS))
        assert world.files == new, f"changed by what came late after moment {fatal}"
        fatal += 1
    assert fatal > 10


async def test_files_of_other_run_are_noticed_before_manifest() -> None:
    clean = world_of(pages_of(range(8)))
    await exported(clean, **OPTIONS)
    world = world_of(pages_of(range(8)))
    hit: list[str] = []

    async def intruder(name: str, _moment: Moment) -> None:
        if name == "files.delete" and MANIFEST in world.files and not hit:
            hit.extend(key for key in world.files if "/part-" in key)
            world.files[hit[0]] = b"another run's"

    async def listed(name: str, moment: Moment) -> None:
        if name == "files.list" and MANIFEST in world.files:
            await intruder("files.delete", moment)

    exporter = exporter_of(world, gate=listed, **OPTIONS)
    await exporter.begin({"day": DAY}, "one")
    await drained(world, exporter)
    assert hit
    assert world.files == clean.files
    assert len(world.exported) == 1


@pytest.mark.parametrize("damage", ["changed", "lost", "stray", "no manifest"])
async def test_order_of_superseded_run_repairs_its_changes(
    damage: str,
) -> None:
    world = world_of(pages_of(range(8)))
    exporter = exporter_of(world, **OPTIONS)
    await exporter.begin({"day": DAY}, "one")
    order = next(o.body for o in world.ordered if decode_order(o.body).kind is OrderKind.UNIT)
    await drained(world, exporter)
    clean = dict(world.files)
    path = next(key for key in world.files if "/part-" in key)
    match damage:
        case "changed":
            world.files[path] = b"an older run's"
        case "lost":
            del world.files[path]
        case "stray":
            world.files[path.replace("-00000", "-00077")] = b"an older run's"
        case _:
            del world.files[MANIFEST]
    await exporter.handle(order)
    assert (len(world.ordered) > 0) is (damage != "stray")
    assert (MANIFEST in world.files) is (damage == "stray")
    await drained(world, exporter)
    assert world.files == clean
    await exporter.handle(order)
    assert not world.ordered


async def test_paused_worker_withdraws_file_of_superseded_run() -> None:
    world = world_of(pages_of(range(8)))
    await exported(world, **OPTIONS)
    store(world, pages_of(range(8), title="then"))
    done = False

    async def gate(name: str, moment: Moment) -> None:
        nonlocal done
        if name == "files.put" and moment == "before" and _working(world) and not done:
            done = True
            store(world, pages_of(range(8), title="now"))
            await exported(world, "two", **OPTIONS)

    exporter = exporter_of(world, gate=gate, **OPTIONS)
    await exporter.begin({"day": DAY}, "one")
    await drained(world, exporter)
    assert done
    await drained(world, exporter_of(world, **OPTIONS))
    clean = world_of(pages_of(range(8), title="now"))
    await exported(clean, **OPTIONS)
    assert world.files == clean.files


OTHER = "wiki-20261121-120000"
THEN, NOW = pages_of(range(2), title="then"), pages_of(range(9), title="now")


@pytest.mark.parametrize(
    ("now", "dies"),
    [
        pytest.param(NOW[:2], False, id="the same files"),
        pytest.param(NOW, False, id="more files"),
        pytest.param([*THEN, *pages_of(range(2), crawl=OTHER)], False, id="files of another crawl"),
        pytest.param(NOW[:2], True, id="the same files, and dies of its next change"),
        pytest.param(NOW, True, id="more files, and dies of its next change"),
    ],
)
async def test_superseded_run_keeps_files_of_later_run(
    now: list[PageRecord], *, dies: bool
) -> None:
    """A worker may pause after listing the files to remove.

    Files that the later run has written meanwhile are written again, even if the worker dies during
    the removal.
    """
    clean = world_of(now)
    await exported(clean, **OPTIONS)
    moments, overtaken = 0, True
    stale: set[int] = set()
    while overtaken:
        world, left, overtaken = world_of(THEN), moments, False
        dead = False

        async def gate(name: str, moment: Moment, world: World = world, at: int = moments) -> None:
            nonlocal left, overtaken, dead
            if overtaken and world.files.get(MANIFEST) not in (None, clean.files[MANIFEST]):
                stale.add(at)
            if overtaken and dies and not dead and moment == "after" and name in CHANGING:
                dead = True
                raise CrashError
            left -= 1
            if left == 0:
                overtaken = True
                store(world, now)
                await exported(world, "two", **OPTIONS)

        left += 1
        exporter = exporter_of(world, gate=gate, **OPTIONS)
        await _repeated(lambda exporter=exporter: exporter.begin({"day": DAY}, "one"))  # type: ignore[misc]
        while world.ordered:
            body = world.ordered.pop(0).body
            await _repeated(lambda exporter=exporter, body=body: exporter.handle(body))  # type: ignore[misc]
        assert not overtaken or world.files == clean.files, moments
        moments += 1
    assert moments > 10
    assert len(stale) <= 2


async def test_notes_of_removed_run_are_removed_too() -> None:
    """The removal has already listed the files when a worker writes another note."""
    world = world_of([*THEN, *pages_of(range(2), crawl=OTHER)])
    late: set[str] = set()

    async def gate(name: str, moment: Moment) -> None:
        if late or (name, moment) != ("files.put", "after"):
            return
        late.update(key for key in world.files if "/done/" in key)
        if late:
            for key in [key for key in world.files if "/_work/" in key and "/runs/" not in key]:
                if key not in late:
                    del world.files[key]

    exporter = exporter_of(world, gate=gate, **OPTIONS)
    await exporter.begin({"day": DAY}, "one")
    await exporter.handle(world.ordered.pop(0).body)
    assert late
    assert not [key for key in world.files if "/_work/" in key and "/runs/" not in key]


async def test_run_planned_twice_has_one_plan() -> None:
    """A paused planner may split a crawl more finely.

    Units of both plans then share names but not rows.
    """
    more = pages_of(range(80))
    clean = world_of(more)
    await exported(clean, **OPTIONS)
    world = world_of(more[:1])
    exporter = exporter_of(world, **OPTIONS)
    await exporter.begin({"day": DAY}, "one")
    (first,) = [order.body for order in world.ordered]
    await exporter.handle(world.ordered.pop(0).body)
    (plan,) = [key for key in world.files if key.endswith("/plan.json")]
    del world.files[plan]  # the state that the other planner saw
    store(world, more)
    await exporter.begin({"day": DAY}, "one")
    assert len(world.ordered) > 2
    await drained(world, exporter)
    assert world.files == clean.files
    await exporter.handle(first)
    assert world.files == clean.files


async def _repeated(deliver: Callable[[], Awaitable[object]]) -> None:
    try:
        await deliver()
    except CrashError:
        await deliver()


def _working(world: World) -> bool:
    """Return True while a unit is in progress and the old manifest is withdrawn."""
    return MANIFEST not in world.files


async def test_second_seal_changes_nothing() -> None:
    world = world_of(pages_of(range(8)))
    await exported(world, **OPTIONS)
    clean = dict(world.files)
    exporter = exporter_of(world, **OPTIONS)
    await exporter.begin({"day": DAY}, "two")
    run = decode_order(world.ordered[0].body).run
    seal = encode_order(ExportOrder(kind=OrderKind.SEAL, scope=SCOPE, run=run))
    await exporter.handle(seal)  # too early: it orders the remaining units again
    await drained(world, exporter)
    await exporter.handle(seal)
    assert not world.ordered
    assert world.files == clean


def test_units_cover_every_shard_once() -> None:
    for shards in range(1, 20):
        for groups in range(1, shards + 1):
            units = [Unit(crawl=CRAWL, group=group, groups=groups) for group in range(groups)]
            found = [shard for unit in units for shard in unit.shards(shards)]
            assert found == list(range(shards))
            assert all(unit.shards(shards) for unit in units)
