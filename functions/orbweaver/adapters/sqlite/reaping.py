"""Delete expired rows, a few at a time.

Each call checks the next rows of each table, so no index of expiry times is needed and no call
takes long.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from orbweaver.adapters.sqlite.messages import QueueName

if TYPE_CHECKING:
    from orbweaver.adapters.sqlite.store import SqliteStore
    from orbweaver.model.ports import Clock

ROWS_AT_ONCE = 1_000
# Tables and their primary keys.
TABLES = {
    "claims": ("n",),
    "pages": ("n",),
    "journals": ("n",),
    "ledgers": ("pack",),
    "strikes": ("pack",),
    "counted": ("pack", "host"),
    "parked": ("crawl", "pack"),
    "backlog": ("crawl", "host", "place"),
    "lines": ("crawl", "host"),
    "sendings": ("crawl", "host", "place"),
    "crawls": ("id",),
    "shards": ("crawl", "number"),
    "samples": ("crawl", "reason"),
    "kinds": ("crawl", "k"),
    "budgets": ("crawl", "part"),
    "host_pages": ("crawl", "host"),
    "hosts": ("host",),
    "robots": ("host",),
    "cookies": ("crawl", "site"),
}
# Queues with packs. Others can keep messages for years, such as events without `orbweaver serve`.
PACK_QUEUES = (QueueName.CRAWL, QueueName.EXPRESS, QueueName.SEEDS, QueueName.DEAD_LETTERS)
OF_PACKS = frozenset({"journals", "ledgers", "strikes", "counted"})


class SqliteReaper:
    """Deletes expired rows."""

    def __init__(self, store: SqliteStore, *, clock: Clock, ledger_retention_s: int) -> None:
        self._store = store
        self._clock = clock
        self._ledgers_kept_s = ledger_retention_s
        # The key after which the next call continues, per table.
        self._behind: dict[str, tuple[object, ...]] = {}

    async def reap(self, rows_max: int = ROWS_AT_ONCE) -> int:
        """Check `rows_max` rows of each table. Return the number of deleted rows."""
        now_s = self._clock.now_ms() // 1000
        return sum(self._look(table, now_s, rows_max) for table in TABLES)

    def _look(self, table: str, now_s: int, rows_max: int) -> int:
        names = ", ".join(TABLES[table])
        marks = ", ".join("?" * len(TABLES[table]))
        behind = self._behind.get(table, ())
        where = f"WHERE ({names}) > ({marks})" if behind else ""
        rows = self._store.rows(
            f"SELECT expires, {names} FROM {table} {where} ORDER BY {names} LIMIT ?",  # noqa: S608
            (*behind, rows_max),
        )
        self._behind[table] = tuple(rows[-1][1:]) if len(rows) == rows_max else ()
        expired = [row for row in rows if row[0] is not None and row[0] <= now_s]
        if not expired:
            return 0
        with self._store.writing() as db:
            # Queues keep messages without a time limit. A pack's rows must stay while a copy of its
            # message may exist: until all stored messages are newer than the rows.
            if table in OF_PACKS:
                now_s = min(now_s, self._oldest_s(db, now_s) + self._ledgers_kept_s - 1)
            return db.executemany(
                # `expires` is checked again, because the row may have been rewritten.
                f"DELETE FROM {table} WHERE expires <= ? AND ({names}) = ({marks})",  # noqa: S608
                [(now_s, *row[1:]) for row in expired],
            ).rowcount

    def _oldest_s(self, db: sqlite3.Connection, now_s: int) -> int:
        query = "SELECT min(sent_at) FROM messages WHERE queue IN (?, ?, ?, ?)"
        (oldest_ms,) = db.execute(query, PACK_QUEUES).fetchone()
        return now_s if oldest_ms is None else int(oldest_ms) // 1000
