"""Exports that erasure has rewritten are announced and delivered again."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import pytest

from orbweaver.delivery.plan import DeliveryOrder, spelled
from orbweaver.erasure.erasure import preview
from orbweaver.erasure.files import FileEraser
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

WHOLE = ErasureScope(urls=frozenset({URL}))
OTHERS = ErasureScope(urls=frozenset({"https://nowhere.example/"}))
MANIFESTS = [PREFIX + manifest_path(DAY, crawl) for crawl in (None, ENDED.id)]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    made = Stage()
    fill(made.world, tmp_path)
    return made


def export_eraser_of(
    world: World, scope: ErasureScope = WHOLE, gate: Gate = open_gate
) -> FileEraser:
    return FileEraser(
        files=MemoryFiles(world, gate),
        scope=scope,
        clock=Stage().clock,
        say=lambda _: None,
        events=MemoryEvents(world, gate),
    )


def told_of(world: World) -> dict[str, bytes]:
    """Return the announced manifests with their latest content."""
    return {key: encode_manifest(manifest) for manifest, key in world.exported}


async def test_rewritten_export_is_announced_once(stage: Stage) -> None:
    await forgetter_of(stage).forget(WHOLE)
    assert sorted(key for _, key in stage.world.exported) == sorted(MANIFESTS)
    assert told_of(stage.world) == {key: stage.world.files[key] for key in MANIFESTS}
    await forgetter_of(stage).forget(WHOLE)
    assert len(stage.world.exported) == len(MANIFESTS)


async def test_unchanged_export_is_not_announced(stage: Stage) -> None:
    await export_eraser_of(stage.world, OTHERS).erase_exports()
    await forgetter_of(stage).count(WHOLE, await preview(stores_of(stage), WHOLE))
    assert stage.world.exported == []


async def test_export_without_files_is_not_announced(stage: Stage) -> None:
    await export_eraser_of(stage.world, ErasureScope(runs=frozenset({ENDED.id}))).erase_exports()
    assert stage.world.exported == []
    assert not stage.world.files.keys() & set(MANIFESTS)


@pytest.mark.thorough
@pytest.mark.parametrize("step", [pytest.param(2, marks=pytest.mark.long), 7])
async def test_erasure_killed_at_any_moment_announces_all(tmp_path: Path, step: int) -> None:
    before = World()
    export(before, tmp_path, [record_of(url) for url in URLS])
    number, finished = 1, False
    while not finished:
        world = deepcopy(before)
        finished = await survives(export_eraser_of(world, gate=kill_at(number)).erase_exports())
        await export_eraser_of(world).erase_exports()
        assert told_of(world) == {key: world.files[key] for key in MANIFESTS}, number
        number += step
    assert number > 50


async def test_delivered_export_is_replaced_at_receiver(stage: Stage) -> None:
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
    return [path for path, body in shelf.items() if PATH in unpacked(path, body)]
