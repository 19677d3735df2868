"""Used amounts of crawls' limits, and the pages of each host that a pack has counted."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING

from orbweaver.adapters.sqlite.store import put
from orbweaver.budget.budget_rules import BudgetState, ReservationRequest

if TYPE_CHECKING:
    from orbweaver.adapters.sqlite.store import SqliteStore
    from orbweaver.model.crawl import Crawl, LimitPart, Settlement
    from orbweaver.model.ports import Clock


class SqliteBudgets:
    """Implements `Budgets` on SQLite."""

    def __init__(
        self,
        store: SqliteStore,
        *,
        clock: Clock,
        ledger_retention_s: int,
        crawl_retention_s: int,
    ) -> None:
        self._store = store
        self._clock = clock
        self._retention_s = ledger_retention_s
        self._crawl_kept_s = crawl_retention_s

    async def take(self, taking: ReservationRequest) -> BudgetState | None:
        key = (taking.crawl.id, taking.part)
        with self._store.writing() as db:
            row = db.execute(
                "SELECT used, reserved, taken_at_ms FROM budgets WHERE crawl = ? AND part = ?", key
            ).fetchone()
            if row is None:
                return BudgetState(is_started=False)
            used, reserved, taken_at_ms = row
            standing = BudgetState(used=used, reserved=reserved, taken_at_ms=taken_at_ms)
            if taking.instead not in (None, standing) or used + taking.amount > taking.limit:
                return standing
            mine = reserved if taking.instead is None else taking.mine
            db.execute(
                "UPDATE budgets SET used = used + ?, reserved = ?, taken_at_ms = ?"
                " WHERE crawl = ? AND part = ?",
                (taking.amount, mine + taking.amount, taking.at_ms, *key),
            )
        return None

    async def begin(self, crawl: Crawl, part: LimitPart, used: int) -> None:
        with self._store.writing() as db:
            expires_s = crawl.deletable_s(self._crawl_kept_s)
            put(db, "budgets", crawl.id, part, used, 0, 0, expires_s, otherwise="IGNORE")

    async def settle(self, crawl: Crawl, settled: Sequence[Settlement]) -> None:
        with self._store.writing() as db:
            for each in settled:
                settle(db, crawl, each)

    async def count(
        self, crawl: Crawl, pack_id: str, host: str, urls: Sequence[str], limit: int
    ) -> frozenset[str]:
        with self._store.writing() as db:
            row = db.execute(
                "SELECT urls FROM counted WHERE pack = ? AND host = ?", (pack_id, host)
            ).fetchone()
            counted: list[str] = [] if row is None else json.loads(row[0])
            row = db.execute(
                "SELECT pages FROM host_pages WHERE crawl = ? AND host = ?", (crawl.id, host)
            ).fetchone()
            pages: int = 0 if row is None else row[0]
            new = [url for url in dict.fromkeys(urls) if url not in counted]
            new = new[: max(0, limit - pages)]
            if new:
                expires_s = crawl.deletable_s(self._crawl_kept_s)
                put(db, "host_pages", crawl.id, host, pages + len(new), expires_s)
                expires_s = self._clock.now_ms() // 1000 + self._retention_s
                put(db, "counted", pack_id, host, json.dumps([*counted, *new]), expires_s)
        return frozenset(counted + new).intersection(urls)


def settle(db: sqlite3.Connection, crawl: Crawl, settlement: Settlement) -> None:
    """Give back the part of a reservation that was not spent."""
    back = settlement.spent - settlement.reserved
    db.execute(
        "UPDATE budgets SET used = used + ?, reserved = reserved - ? WHERE crawl = ? AND part = ?",
        (back, settlement.reserved, crawl.id, settlement.part),
    )
