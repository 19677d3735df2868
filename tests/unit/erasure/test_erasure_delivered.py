"""What is forgotten is forgotten by receivers of exports: they are told of what was said anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from orbweaver.delivery.plan import DeliveryOrder, spelled
from orbweaver.erasure.files import FileEraser
from orbweaver.erasure.preview import preview
from orbweaver.erasure.scope import ErasureScope
from orbweaver.exporting.manifest import PREFIX, encode_manifest, manifest_path
from tests.memory import MemoryEvents, MemoryFiles
from tests.memory.world import Gate, World, open_gate
from tests.unit import delivering
from tests.unit.forgetting import (
    DAY,
    ENDED,
    PATH,
    URL,
    URLS,
    export,
    fill,
    forgetter_of,
    record_of,
    stores_of,
    traces_of,
    unpacked,
)
from tests.unit.stage import Stage, kill_at, survives

if TYPE_CHECKING:
    from pathlib import Path

WHOLE = ErasureScope(urls=frozenset({URL}))
OTHERS = ErasureScope(urls=frozenset({"https://nowhere.example/"}))
MANIFESTS = [PREFIX + manifest_path(DAY, crawl) for crawl in (None, ENDED.id)]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """Return a stage with something to forget."""
    made = Stage()
    fill(made.world, tmp_path)
    return made


def export_eraser_of(
    world: World, scope: ErasureScope = WHOLE, gate: Gate = open_gate
) -> FileEraser:
    """Make who says exports anew."""
    return FileEraser(
        files=MemoryFiles(world, gate),
        scope=scope,
        clock=Stage().clock,
        say=lambda _: None,
        events=MemoryEvents(world, gate),
    )


def told_of(world: World) -> dict[str, bytes]:
    """Say which manifests were announced, and what they said the last time."""
    return {key: encode_manifest(manifest) for manifest, key in world.exported}


async def test_what_was_said_anew_is_announced_once(stage: Stage) -> None:
    """Each export that held it, of the day and of the crawl, as it stands afterwards."""
    await forgetter_of(stage).forget(WHOLE)
    assert sorted(key for _, key in stage.world.exported) == sorted(MANIFESTS)
    assert told_of(stage.world) == {key: stage.world.files[key] for key in MANIFESTS}
    await forgetter_of(stage).forget(WHOLE)
    assert len(stage.world.exported) == len(MANIFESTS)


async def test_what_stays_as_it_was_is_not_announced(stage: Stage) -> None:
    """Exports that hold none of it are nobody's news, nor is what was only counted."""
    await export_eraser_of(stage.world, OTHERS).erase_exports()
    await forgetter_of(stage).count(WHOLE, await preview(stores_of(stage), WHOLE))
    assert stage.world.exported == []


async def test_of_what_means_nothing_any_more_nobody_is_told(stage: Stage) -> None:
    """A day of whose exports nothing is left has no manifest, and there is nothing to bring."""
    await export_eraser_of(stage.world, ErasureScope(runs=frozenset({ENDED.id}))).erase_exports()
    assert stage.world.exported == []
    assert not stage.world.files.keys() & set(MANIFESTS)


@pytest.mark.thorough
async def test_killed_anywhere_all_are_told_in_the_end(tmp_path: Path) -> None:
    """Killed at any moment and run again, each export is announced as it stands."""
    records = [record_of(url) for url in URLS]
    number, finished = 1, False
    while not finished:
        world = World()
        export(world, tmp_path, records)
        finished = await survives(export_eraser_of(world, gate=kill_at(number)).erase_exports())
        await export_eraser_of(world).erase_exports()
        assert told_of(world) == {key: world.files[key] for key in MANIFESTS}, number
        number += 2
    assert number > 50


async def test_what_was_delivered_is_put_right(stage: Stage) -> None:
    """What a receiver has is without it, once it has what it was told of."""
    before = delivering.Stage()
    before.world.files = stage.world.files
    for crawl in (None, ENDED.id):
        await before.run(spelled(DeliveryOrder(day=DAY, crawl=crawl)))
    assert holding(before.shelf)
    await forgetter_of(stage).forget(WHOLE)
    for manifest, _ in stage.world.exported:
        assert (
            await before.run(spelled(DeliveryOrder(day=manifest.day, crawl=manifest.crawl))) == ()
        )
    assert holding(before.shelf) == []
    for key in MANIFESTS:
        assert before.shelf[key.removeprefix(PREFIX)] == stage.world.files[key]
    assert traces_of(stage.world, PATH) == []


def holding(shelf: dict[str, bytes]) -> list[str]:
    """Name the files of a receiver that hold it."""
    return [path for path, body in shelf.items() if PATH in unpacked(path, body)]
