"""Define the interface of schedule stores."""

from __future__ import annotations

from typing import Protocol

from orbweaver.control.schedule import Scheduled


class Schedules(Protocol):
    """Schedules by name, with the input of their firings."""

    async def put(self, scheduled: Scheduled) -> None: ...

    async def list(self) -> tuple[Scheduled, ...]:
        """Read all schedules, by name."""

    async def remove(self, name: str) -> bool:
        """Remove a schedule. Returns False if there is none."""
