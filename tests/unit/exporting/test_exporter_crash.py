"""The exporter killed before and after every single effect: old, new or no export, never half."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from orbweaver.exporting.run_state import ExportOrder, OrderKind, Unit, decode_order, encode_order
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

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from orbweaver.model.page_record import PageRecord
    from tests.memory import Moment, World

OPTIONS: dict[str, Any] = {"workspace": SimWorkspace(), "part_rows_max": 3, "cuts_crawls": True}


CHANGING = frozenset({"files.put", "files.delete", "orders.send", "events.exported"})


class CrashError(Exception):
    """The process is gone."""


class Doom:
    """A gate that kills the process at its nth moment, and looks as a reader does at each one."""

    def __init__(self, world: World, fatal: int) -> None:
        self.world = world
        self.fatal = fatal
        self.count = 0
        self.dead = False
        self.manifests: set[bytes | None] = set()

    async def __call__(self, name: str, _moment: Moment) -> None:
        if name in CHANGING:  # between two others, one moment is like the next
            self.look()
            self.count += 1
            self.dead = self.dead or self.count == self.fatal
        if self.dead:
            raise CrashError  # and at every later moment: the dead do nothing more

    def look(self) -> None:
        """Check that what a reader sees is whole."""
        if manifest_of(self.world.files) is not None:
            rows_of(self.world.files)
        self.manifests.add(self.world.files.get(MANIFEST))


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What the day held at the last export (None: there was none), and what it holds now."""

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
    """Make the files of the last export, and those that the next one is to end with."""
    old: dict[str, bytes] = {}
    if change.old is not None:
        await exported(world_of(change.old, old), **OPTIONS)
    new: dict[str, bytes] = {}
    await exported(world_of(change.new, new), **OPTIONS)
    return old, new


async def _delivered(world: World, gate: Doom, deadline_ms: int | None) -> bool:
    """Export, with each event and order delivered again after a crash; whether one came."""
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
async def test_killed_anywhere_and_gone_on_with(name: str, short: bool) -> None:
    """At every moment a reader sees the old export whole, the new one whole, or none (case 28).

    Whatever was being done is delivered again, and then the files are those of a single run:
    nothing is doubled, and nothing is left over.
    """
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
async def test_killed_anywhere_and_asked_for_again(name: str) -> None:
    """A run that is left where it died is in nobody's way: another request does all of it."""
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
        # What was ordered before comes late: it changes nothing.
        for body in late:
            await exporter_of(world, **OPTIONS).handle(body)
            await drained(world, exporter_of(world, **OPTIONS))
        assert world.files == new, f"changed by what came late after moment {fatal}"
        fatal += 1
    assert fatal > 10


async def test_files_of_another_run_are_noticed_at_the_seal() -> None:
    """The manifest goes, the units are worked on once more, and then it stands."""
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
async def test_an_order_of_a_run_that_is_over_looks_after_what_it_may_have_done(
    damage: str,
) -> None:
    """It comes back after its worker died over it: what it changed is mended, nothing else is."""
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


async def test_a_worker_that_stands_still_before_it_puts_a_file_mends_it() -> None:
    """Superseded between looking and putting, it withdraws what is not true any more."""
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
async def test_a_run_that_is_overtaken_at_any_moment_leaves_the_later_one(
    now: list[PageRecord], *, dies: bool
) -> None:
    """Its manifest comes only if that happens between its last look and the put, and goes again.

    It may stand still after it has listed files to remove: what the later run has put is put again,
    also where the worker dies of the removal and its order comes once more.
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


async def test_what_a_worker_notes_while_its_run_is_removed_goes_with_it() -> None:
    """The one that removes has listed before, and has still to remove what says that it counts."""
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


async def test_a_run_that_is_planned_twice_has_one_plan() -> None:
    """Of two workers that plan it one may stand still, and cut a crawl more finely by then.

    A unit of the first plan has the same name, and other rows.
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
    del world.files[plan]  # as the other one saw it
    store(world, more)
    await exporter.begin({"day": DAY}, "one")
    assert len(world.ordered) > 2
    await drained(world, exporter)
    assert world.files == clean.files
    await exporter.handle(first)
    assert world.files == clean.files


async def _repeated(deliver: Callable[[], Awaitable[object]]) -> None:
    """Deliver once more what a worker died of."""
    try:
        await deliver()
    except CrashError:
        await deliver()


def _working(world: World) -> bool:
    """Whether a unit is being worked on, with the old manifest withdrawn for it."""
    return MANIFEST not in world.files


async def test_two_seals_are_one() -> None:
    """A second order to seal finds nothing to do, whenever it comes."""
    world = world_of(pages_of(range(8)))
    await exported(world, **OPTIONS)
    clean = dict(world.files)
    exporter = exporter_of(world, **OPTIONS)
    await exporter.begin({"day": DAY}, "two")
    run = decode_order(world.ordered[0].body).run
    seal = encode_order(ExportOrder(kind=OrderKind.SEAL, scope=SCOPE, run=run))
    await exporter.handle(seal)  # too early: it orders what is not done, once more
    await drained(world, exporter)
    await exporter.handle(seal)
    assert not world.ordered
    assert world.files == clean


def test_units_share_all_shards_among_them() -> None:
    """Each shard is in one group, however many there are."""
    for shards in range(1, 20):
        for groups in range(1, shards + 1):
            units = [Unit(crawl=CRAWL, group=group, groups=groups) for group in range(groups)]
            found = [shard for unit in units for shard in unit.shards(shards)]
            assert found == list(range(shards))
            assert all(unit.shards(shards) for unit in units)
