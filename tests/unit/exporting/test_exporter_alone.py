"""An exporter that runs alone until another process exports into the same folder."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from orbweaver.exporting.exporter import InProcessExporter, WaitingExport
from tests.memory import World
from tests.unit.export_stage import DAY, SCOPE, exporter_of, manifest_of, pages_of, world_of


class Overtaken(WaitingExport):
    """A queue that starts a second process at its first order.

    `ends` decides if that process finishes.
    """

    def __init__(self, world: World, *, ends: bool) -> None:
        super().__init__()
        waiting = WaitingExport()
        self.other = InProcessExporter(
            exporter=exporter_of(world, seed=2, orders=waiting), waiting=waiting
        )
        self.ends = ends
        self.times = 0

    async def send(self, bodies: Sequence[tuple[str, str]]) -> None:
        await super().send(bodies)
        self.times += 1
        if self.times > 1:
            return
        if self.ends:
            await self.other.export(DAY)
        else:
            await self.other.exporter.planner.begin(SCOPE, "f" * 16)


@pytest.mark.parametrize("ends", [True, False])
async def test_later_process_ends_export_for_both(*, ends: bool) -> None:
    world = world_of(pages_of(range(25)))
    waiting = Overtaken(world, ends=ends)
    alone = InProcessExporter(exporter=exporter_of(world, orders=waiting), waiting=waiting)
    manifest = await alone.export(DAY)
    assert manifest.rows == {"pages": 25}
    assert manifest == manifest_of(world.files)
