"""The port of schedules."""

from __future__ import annotations

from typing import Protocol

from orbweaver.control.schedule import Scheduled


class Schedules(Protocol):
    """Schedules by name: what recurs, and what each firing is told."""

    async def put(self, scheduled: Scheduled) -> None:
        """Make a schedule, or make it anew."""

    async def list(self) -> tuple[Scheduled, ...]:
        """Read all schedules, by name."""

    async def remove(self, name: str) -> bool:
        """Remove a schedule; False if there is none."""
