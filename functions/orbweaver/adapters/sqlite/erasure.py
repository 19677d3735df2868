"""Find and delete all stored data about URLs, hosts and crawls.

A row is changed only if it did not change after it was read. A row of a newer version raises
StoredNewer, because it might contain data that must be erased.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from orbweaver.adapters.sqlite.crawls import edit
from orbweaver.adapters.sqlite.pages import fields_in
from orbweaver.adapters.sqlite.store import put
from orbweaver.erasure.ports import ClaimTrace, RecordTrace
from orbweaver.model.crawl import Crawl, State
from orbweaver.model.errors import readable
from orbweaver.model.page_record import from_fields

if TYPE_CHECKING:
    from orbweaver.adapters.sqlite.store import SqliteStore
    from orbweaver.model.ports import Clock

ROWS_AT_ONCE = 500
# A host with an error or a 429 within this time is kept, so that it is not requested too fast
# (politeness/host_schedule.py).
QUIET_MS = 30 * 60_000
# Tables whose rows belong to a crawl, in addition to `crawls`.
OF_CRAWLS = ("shards", "samples", "kinds", "budgets", "host_pages")


class SqliteTraces:
    """Implements `Traces` on SQLite."""

    def __init__(self, store: SqliteStore, *, clock: Clock, ledger_retention_s: int) -> None:
        self._store = store
        self._clock = clock
        self._ledgers_kept_s = ledger_retention_s

    # --- claims and records -----------------------------------------------------------------

    async def claims(self) -> AsyncIterator[ClaimTrace]:
        for number, url, name, crawl, pack, at_ms, was in self._scan(
            "claims", "url, name, crawl, pack, at, was"
        ):
            yield ClaimTrace(
                key=number,
                name=name,
                url=url,
                crawl=crawl,
                pack=pack,
                at_ms=at_ms,
                was=json.loads(was)["crawl"] if was else "",
            )

    async def remove_claims(self, claims: Sequence[ClaimTrace]) -> None:
        with self._store.writing() as db:
            db.executemany("DELETE FROM claims WHERE n = ? AND pack = ? AND at = ?", _read(claims))

    async def strip_claims(self, claims: Sequence[ClaimTrace]) -> None:
        with self._store.writing() as db:
            db.executemany(
                "UPDATE claims SET was = NULL WHERE n = ? AND pack = ? AND at = ?", _read(claims)
            )

    async def records(self) -> AsyncIterator[RecordTrace]:
        for number, packed in self._scan("pages", "fields"):
            with readable():
                record = from_fields(fields_in(packed))
            yield RecordTrace(key=number, record=record)

    async def remove_records(self, records: Sequence[RecordTrace]) -> None:
        with self._store.writing() as db:
            db.executemany("DELETE FROM pages WHERE n = ?", [(trace.key,) for trace in records])

    # --- crawls -----------------------------------------------------------------------------

    async def redefine(self, crawl: Crawl, was: Crawl) -> bool:
        with self._store.writing() as db:
            return edit(db, crawl, was)

    async def put_samples(self, crawl_id: str, samples: dict[str, Sequence[str]]) -> None:
        with self._store.writing() as db:
            db.executemany(
                "INSERT INTO samples VALUES (?, ?, ?, NULL)"
                " ON CONFLICT (crawl, reason) DO UPDATE SET urls = excluded.urls",
                [(crawl_id, reason, json.dumps(tuple(urls))) for reason, urls in samples.items()],
            )

    async def tombstone_crawl(self, crawl: Crawl) -> None:
        stone = {
            "id": crawl.id,
            "name": crawl.id,
            "started_at_ms": crawl.started_at_ms,
            "finished_at_ms": crawl.finished_at_ms,
            "state": State.FINISHED,
            "announced": True,
        }
        expires_s = self._clock.now_ms() // 1000 + self._ledgers_kept_s
        with self._store.writing() as db:
            for table in OF_CRAWLS:
                db.execute(f"DELETE FROM {table} WHERE crawl = ?", (crawl.id,))  # noqa: S608
            row = (State.FINISHED, 0, crawl.started_at_ms, 1, expires_s, json.dumps(stone))
            put(db, "crawls", crawl.id, *row)

    # --- hosts ------------------------------------------------------------------------------

    async def hosts(self) -> AsyncIterator[str]:
        named = "SELECT host FROM hosts UNION SELECT host FROM robots ORDER BY host"
        for (host,) in self._store.rows(named):
            yield host

    async def cookies(self) -> AsyncIterator[tuple[str, str]]:
        for crawl, site in self._store.rows("SELECT crawl, site FROM cookies"):
            yield crawl, site

    async def remove_cookies(self, crawl_id: str, site: str) -> None:
        with self._store.writing() as db:
            db.execute("DELETE FROM cookies WHERE crawl = ? AND site = ?", (crawl_id, site))

    async def remove_host(self, host: str, now_ms: int) -> bool:
        quiet_ms = now_ms - QUIET_MS
        with self._store.writing() as db:
            db.execute("DELETE FROM robots WHERE host = ?", (host,))
            db.execute(
                "DELETE FROM hosts WHERE host = ? AND tat <= ? AND line <= ?"
                " AND blocked_until <= ? AND struck_at <= ? AND failed_at <= ?",
                (host, now_ms, now_ms, now_ms, quiet_ms, quiet_ms),
            )
            left = db.execute("SELECT 1 FROM hosts WHERE host = ?", (host,)).fetchone()
        return left is None

    def _scan(self, table: str, columns: str) -> Iterator[tuple[Any, ...]]:
        """Yield a table's rows with their keys, in short reads of `ROWS_AT_ONCE` rows."""
        behind = -1
        while True:
            rows = self._store.rows(
                f"SELECT n, {columns} FROM {table} WHERE n > ?"  # noqa: S608 - constants
                " ORDER BY n LIMIT ?",
                (behind, ROWS_AT_ONCE),
            )
            yield from rows
            if len(rows) < ROWS_AT_ONCE:
                return
            behind = rows[-1][0]


def _read(claims: Sequence[ClaimTrace]) -> list[tuple[Any, ...]]:
    return [(claim.key, claim.pack, claim.at_ms) for claim in claims]
