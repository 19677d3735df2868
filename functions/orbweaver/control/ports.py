"""Define the interface of schedule stores."""

from __future__ import annotations

from typing import Protocol

from orbweaver.control.schedule import Scheduled


class Schedules(Protocol):
    """Stores schedules. Each schedule contains the content of its events."""

    async def put(self, scheduled: Scheduled) -> None: ...

    async def list(self) -> tuple[Scheduled, ...]: ...

    async def remove(self, name: str) -> bool:
        """Remove a schedule. Returns False if no schedule has this name."""
