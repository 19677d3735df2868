"""The time of a store, which its processes share even if the machine's clock is set.

The store records its time minus the time since boot, so that a jump of the clock changes no request
time or expiry. When no crawl is unfinished and no other process works on the store, the store
adopts the clock's time and moves all stored times by the difference.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from orbweaver.adapters.local.clock import JUMP_MS_MIN
from orbweaver.adapters.sqlite.reaping import TABLES
from orbweaver.model.crawl import DEFAULT_CRAWL, State

if TYPE_CHECKING:
    import sqlite3

    from orbweaver.adapters.local.clock import SteadyClock
    from orbweaver.adapters.sqlite.store import SqliteStore

# Longer than any machine runs. `faketime` reports the wall time as the time since boot.
UPTIME_MS_MAX = 20 * 365 * 86_400_000
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
# A smaller jump of the clock does not move expiry times, because retentions are days.
EXPIRY_MS_MIN = 86_400_000
# Columns in milliseconds. 0 and NULL mean that there is no time.
TIMES = {
    "messages": ("due", "sent_at", "first_taken_at", "since_ms"),
    "backlog": ("due",),
    "sendings": ("at",),
    "hosts": ("tat", "line", "blocked_until", "struck_at", "failed_at"),
    "robots": ("fetched_at",),
    "budgets": ("taken_at_ms",),
    "claims": ("at",),
}
UNFINISHED = "SELECT 1 FROM crawls WHERE state != ? AND id != ? AND NOT forgotten"


def boot_id() -> str:
    """Return the id of the machine's last boot, or "" if the system has none."""
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return ""


def keep_time(
    store: SqliteStore, clock: SteadyClock, others: Callable[[], int], boot: str | None = None
) -> bool:
    """Adjust the clock to the store, or the store to the clock. Return True if stored times moved.

    `others` counts the other processes that work on the store.
    """
    boot = boot_id() if boot is None else boot
    if not boot or clock.uptime_ms > UPTIME_MS_MAX:
        return False
    ahead_ms = _kept(store, boot)
    # After a boot the difference is unknown. Request times and messages that are too far ahead are
    # then corrected (politeness/host_schedule.py, messages.py).
    if ahead_ms is None:
        if store.writes:
            with store.writing() as db:
                _keep(db, boot, clock.wall_ahead_ms)
        return False
    by_ms = clock.wall_ahead_ms - ahead_ms
    if abs(by_ms) < JUMP_MS_MIN:
        return False
    unfinished = store.row(UNFINISHED, (State.FINISHED, DEFAULT_CRAWL)) is not None
    if unfinished or not store.writes or others():
        clock.follow(ahead_ms)
        return False
    with store.writing() as db:
        clock.follow(ahead_ms + by_ms)
        if _kept(store, boot) == ahead_ms:  # another process may have moved it
            _move(db, by_ms, clock.now_ms())
            _keep(db, boot, ahead_ms + by_ms)
    return True


def _kept(store: SqliteStore, boot: str) -> int | None:
    row = store.row("SELECT value FROM facts WHERE name = 'clock'", ())
    kept, _, ahead_ms = ("" if row is None else str(row[0])).partition(" ")
    return int(ahead_ms) if kept == boot else None


def _keep(db: sqlite3.Connection, boot: str, ahead_ms: int) -> None:
    db.execute("INSERT OR REPLACE INTO facts VALUES ('clock', ?)", (f"{boot} {ahead_ms}",))


def _move(db: sqlite3.Connection, by_ms: int, now_ms: int) -> None:
    for table, columns in TIMES.items():
        moved = ", ".join(f"{name} = {name} + ({name} > 0) * {by_ms:d}" for name in columns)
        db.execute(f"UPDATE {table} SET {moved}")  # noqa: S608 - our own names
    # A schedule whose last run is in the future would not run before that time.
    db.execute("UPDATE schedules SET fired_ms = min(fired_ms, ?)", (now_ms,))
    if abs(by_ms) >= EXPIRY_MS_MIN:
        for table in TABLES:
            db.execute(f"UPDATE {table} SET expires = expires + ?", (by_ms // 1000,))  # noqa: S608
