"""Schedules of crawls, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orbweaver.control.schedule import Scheduled

if TYPE_CHECKING:
    from orbweaver.adapters.sqlite.store import SqliteStore


class SqliteSchedules:
    """Implements `Schedules` on SQLite."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    async def put(self, scheduled: Scheduled) -> None:
        with self._store.writing() as db:
            db.execute(
                "INSERT OR REPLACE INTO schedules VALUES (?, ?, ?, ?, ?, NULL, ?)",
                (
                    scheduled.name,
                    scheduled.expression,
                    scheduled.timezone,
                    scheduled.first_ms,
                    scheduled.input,
                    scheduled.paused,
                ),
            )

    async def list(self) -> tuple[Scheduled, ...]:
        rows = self._store.rows(
            "SELECT name, expression, timezone, first_ms, told, paused FROM schedules ORDER BY name"
        )
        return tuple(
            Scheduled(
                name=name,
                expression=expression,
                timezone=timezone,
                first_ms=first_ms,
                input=told,
                paused=bool(paused),
            )
            for name, expression, timezone, first_ms, told, paused in rows
        )

    async def remove(self, name: str) -> bool:
        with self._store.writing() as db:
            return db.execute("DELETE FROM schedules WHERE name = ?", (name,)).rowcount == 1

    def fired_ms(self, name: str) -> int | None:
        """Return the time up to which a schedule's due runs were handled.

        None: the schedule is new.
        """
        row = self._store.row("SELECT fired_ms FROM schedules WHERE name = ?", (name,))
        return None if row is None else row[0]

    def fired(self, name: str, until_ms: int) -> None:
        """Record that all runs of a schedule due up to `until_ms` were handled."""
        with self._store.writing() as db:
            db.execute("UPDATE schedules SET fired_ms = ? WHERE name = ?", (until_ms, name))
