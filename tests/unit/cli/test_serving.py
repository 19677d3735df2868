"""`serve`: when it exports crawls and days."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from orbweaver.cli.commands.serve import (
    DAYS_MAX,
    ENDED_LOOK_MS,
    ENDED_WAIT_MS,
    LOOK_MS,
    DailyExport,
    EndedExport,
)
from orbweaver.cli.session import stack_session
from orbweaver.cli.stack import StackPlace
from orbweaver.exporting.manifest import manifest_path
from orbweaver.model.crawl import Crawl, State
from orbweaver.model.page_record import DAY_MS
from orbweaver.model.settings import Settings
from tests.memory.world import ShardItem
from tests.unit.cli.fakes import NOW_MS, SITE, Machine, Stage

if TYPE_CHECKING:
    from pathlib import Path

HOUR_MS = 3_600_000
DAY = "2026-11-{}"  # NOW_MS is 09:00 on the 21st


class Desk:
    """A crawl that started some time ago, and daily exports that may fail."""

    def __init__(self, folder: Path, days: float) -> None:
        self.stage, settings = Stage(folder), Settings()
        begun = NOW_MS - round(days * DAY_MS)
        crawl = Crawl(id="shop-1", name="shop", started_at_ms=begun, seeds=(f"{SITE}/",))
        self.stage.world.crawls[crawl.id] = crawl
        place = StackPlace(machine=Machine(), settings=settings, environment={})
        session = stack_session(self.stage.ports(settings), place)
        self.exported: list[str] = []
        self.fails = False
        self.daily = DailyExport(session, folder, self.export)
        self.ended = EndedExport(session, folder, self.export)
        self.folder = folder

    async def export(self, day: str) -> None:
        self.exported.append(day)
        if not self.fails:
            path = self.folder / manifest_path(day)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()

    async def after(self, passed_ms: int) -> list[str]:
        """Move the clock and check. Returns the new exports."""
        self.exported.clear()
        self.stage.clock.at_ms += passed_ms
        await self.daily.poll()
        return list(self.exported)


async def test_day_is_exported_once_two_hours_after_its_end(tmp_path: Path) -> None:
    """The delay leaves time for records that are stored late."""
    desk = Desk(tmp_path, days=0)
    assert await desk.after(0) == []
    assert await desk.after(16 * HOUR_MS + HOUR_MS - 1) == []  # 01:59:59 of the next day
    assert await desk.after(LOOK_MS) == [DAY.format(21)]
    assert await desk.after(LOOK_MS) == []
    assert await desk.after(DAY_MS) == [DAY.format(22)]


@pytest.mark.parametrize(("days", "first"), [(2, 19), (100, 21 - DAYS_MAX)])
async def test_missed_days_are_exported_up_to_a_week(days: int, first: int, tmp_path: Path) -> None:
    missed = [DAY.format(day) for day in range(first, 21)]
    assert await Desk(tmp_path, days=days).after(0) == missed


async def test_failed_export_is_retried_later(tmp_path: Path) -> None:
    desk = Desk(tmp_path, days=1)
    desk.fails = True
    assert await desk.after(0) == [DAY.format(20)]
    assert await desk.after(LOOK_MS - 1) == []
    assert await desk.after(1) == [DAY.format(20)]
    desk.fails = False
    assert await desk.after(LOOK_MS) == [DAY.format(20)]
    assert await desk.after(LOOK_MS) == []


@pytest.mark.parametrize(
    ("ended_s", "claimed", "has_files", "exported"),
    [
        (1, 3, False, ["shop-1"]),
        (-1, 3, False, []),
        (1, 0, False, []),
        (1, 3, True, []),
        (None, 3, False, []),
    ],
)
async def test_ended_export_exports_each_ended_crawl_once(
    ended_s: int | None, claimed: int, has_files: bool, exported: list[str], tmp_path: Path
) -> None:
    desk = Desk(tmp_path, days=0)
    world = desk.stage.world
    world.shards["shop-1", 0] = ShardItem(counts={"claimed": claimed, "done": claimed})
    if ended_s is not None:
        ended_ms = NOW_MS + ended_s * 1_000
        crawl = replace(world.crawls["shop-1"], state=State.FINISHED, finished_at_ms=ended_ms)
        world.crawls["shop-1"] = crawl
    if has_files:
        path = tmp_path / "shop-1" / manifest_path("2026-11-21", "shop-1")
        path.parent.mkdir(parents=True)
        path.touch()
    desk.stage.clock.at_ms += ENDED_WAIT_MS
    await desk.ended.poll()
    assert desk.exported == []
    desk.stage.clock.at_ms += ENDED_LOOK_MS
    await desk.ended.poll()
    assert desk.exported == exported
    desk.stage.clock.at_ms += ENDED_LOOK_MS
    await desk.ended.poll()
    assert desk.exported == exported
    desk.stage.clock.at_ms += LOOK_MS
    await desk.ended.poll()  # the export in this test fails, so there is no file
    assert desk.exported == exported * 2
