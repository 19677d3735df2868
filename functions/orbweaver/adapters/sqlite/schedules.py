"""Schedules by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orbweaver.control.schedule import Scheduled

if TYPE_CHECKING:
    from orbweaver.adapters.sqlite.store import SqliteStore


class SqliteSchedules:
    """Schedules by name."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    async def put(self, scheduled: Scheduled) -> None:
        """See the port."""
        with self._store.writing() as db:
            db.execute(
                "INSERT OR REPLACE INTO schedules VALUES (?, ?, ?, ?, ?)",
                (
                    scheduled.name,
                    scheduled.expression,
                    scheduled.timezone,
                    scheduled.first_ms,
                    scheduled.told,
                ),
            )

    async def list(self) -> tuple[Scheduled, ...]:
        """See the port."""
        rows = self._store.rows(
            "SELECT name, expression, timezone, first_ms, told FROM schedules ORDER BY name"
        )
        return tuple(
            Scheduled(
                name=name, expression=expression, timezone=timezone, first_ms=first_ms, told=told
            )
            for name, expression, timezone, first_ms, told in rows
        )

    async def remove(self, name: str) -> bool:
        """See the port."""
        with self._store.writing() as db:
            return db.execute("DELETE FROM schedules WHERE name = ?", (name,)).rowcount == 1
