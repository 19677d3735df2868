"""Schedules in memory; the test fires them."""

from __future__ import annotations

from orbweaver.control.schedule import Scheduled
from tests.memory.world import Gated


class MemorySchedules(Gated):
    """Schedules by name."""

    async def put(self, scheduled: Scheduled) -> None:
        held = self._world.schedules
        await self._do("schedules.put", lambda: held.__setitem__(scheduled.name, scheduled))

    async def list(self) -> tuple[Scheduled, ...]:
        held = self._world.schedules
        return await self._do("schedules.list", lambda: tuple(held[name] for name in sorted(held)))

    async def remove(self, name: str) -> bool:
        held = self._world.schedules
        return await self._do("schedules.remove", lambda: held.pop(name, None) is not None)
