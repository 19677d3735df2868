"""State of packs (queue messages with up to 25 URLs): redo logs, commit records and failures.

A commit is one transaction: the commit record (ledger), the crawl's counts, and the amounts of its
limits.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from orbweaver.adapters.local.journal_blob import encoded
from orbweaver.adapters.sqlite.budgets import settle
from orbweaver.adapters.sqlite.crawls import add_counts, read_shard
from orbweaver.adapters.sqlite.store import put
from orbweaver.frontier.claims import (
    AlreadyCommitted,
    Closed,
    CommitResult,
    Committed,
    OverBudget,
    Recalled,
)
from orbweaver.frontier.journal import Journal, Ledger
from orbweaver.frontier.journal_codec import VERSION, WHAT, decode
from orbweaver.frontier.ledger_codec import from_fields, to_fields
from orbweaver.model.crawl import Counts, Crawl, Settlement, State
from orbweaver.model.errors import StoredNewer, readable
from orbweaver.model.page_record import shard_of
from orbweaver.model.version import FIELD, check

if TYPE_CHECKING:
    from orbweaver.adapters.sqlite.store import SqliteStore
    from orbweaver.model.ports import Clock

# Retention of parked packs. It exceeds the retention of every crawl that can be resumed.
PARKED_KEPT_S = 365 * 86_400
LEDGER_COLUMNS = (FIELD, "children", "surplus", "sent", "leases")


class SqlitePacks:
    """Implements `Packs` on SQLite."""

    def __init__(
        self,
        store: SqliteStore,
        *,
        clock: Clock,
        ledger_retention_s: int,
        crawl_retention_s: int,
        committed: Callable[[str], None] = lambda _pack: None,
    ) -> None:
        """`committed` is called with each pack's id right after its commit."""
        self._store = store
        self._clock = clock
        self._retention_s = ledger_retention_s
        self._crawl_kept_s = crawl_retention_s
        self._committed = committed

    async def recall(self, pack_ids: Sequence[str]) -> Mapping[str, Recalled]:
        with self._store.reading() as db:
            found = {pack_id: _recall(db, pack_id) for pack_id in dict.fromkeys(pack_ids)}
        return {pack_id: known for pack_id, known in found.items() if known is not None}

    def committed(self, pack_ids: Collection[str]) -> frozenset[str]:
        """Return the packs that have a ledger. Decodes nothing, because views call this often."""
        rows = self._store.rows(
            "SELECT pack FROM ledgers WHERE pack IN (SELECT value FROM json_each(?))",
            (json.dumps([*pack_ids]),),
        )
        return frozenset(str(pack) for (pack,) in rows)

    async def write_journal(self, pack_id: str, journal: Journal) -> Journal:
        blob = await encoded(journal)
        with self._store.writing() as db:
            standing = db.execute(
                "SELECT v, blob FROM journals WHERE pack = ?", (pack_id,)
            ).fetchone()
            if standing is not None:
                return read_journal(*standing)
            db.execute(
                "INSERT INTO journals (pack, v, blob, expires) VALUES (?, ?, ?, ?)",
                (pack_id, VERSION, blob, self._expires_s()),
            )
        return journal

    async def commit(
        self, crawl: Crawl, ledger: Ledger, counts: Counts, settled: Sequence[Settlement] = ()
    ) -> CommitResult:
        number = shard_of(ledger.pack, crawl.shards)
        with self._store.writing() as db:
            standing = _find_ledger(db, ledger.pack)
            if standing is not None:
                return AlreadyCommitted(ledger=_ledger(ledger.pack, standing))
            shard = read_shard(db, crawl.id, number)
            if shard.closed:
                return Closed()
            left = crawl.shard_quota(number) - shard.spent
            if (wanted := counts.get("claimed", 0)) and wanted > left:
                return OverBudget(left=max(0, left))
            add_counts(db, crawl, number, shard, counts, self._crawl_kept_s)
            for each in settled:
                settle(db, crawl, each)
            self._put_ledger(db, ledger)
        self._committed(ledger.pack)
        return Committed()

    async def commit_together(self, crawl: Crawl, commits: Sequence[tuple[Ledger, Counts]]) -> bool:
        number = shard_of(commits[0][0].pack, crawl.shards)
        total: Counter[str] = Counter()
        for _, counts in commits:
            total.update(counts)
        with self._store.writing() as db:
            shard = read_shard(db, crawl.id, number)
            left = crawl.shard_quota(number) - shard.spent
            done = any(_find_ledger(db, ledger.pack) is not None for ledger, _ in commits)
            if done or shard.closed or (total["claimed"] and total["claimed"] > left):
                return False
            add_counts(db, crawl, number, shard, total, self._crawl_kept_s)
            for ledger, _ in commits:
                self._put_ledger(db, ledger)
        for ledger, _ in commits:
            self._committed(ledger.pack)
        return True

    async def add_strike(self, pack_id: str) -> int:
        with self._store.writing() as db:
            db.execute(
                "INSERT INTO strikes VALUES (?, 1, ?) ON CONFLICT (pack) DO UPDATE"
                " SET strikes = strikes + 1, expires = excluded.expires",
                (pack_id, self._expires_s()),
            )
            (strikes,) = db.execute(
                "SELECT strikes FROM strikes WHERE pack = ?", (pack_id,)
            ).fetchone()
        return int(strikes)

    async def set_strikes(self, pack_id: str, strikes: int) -> None:
        with self._store.writing() as db:
            put(db, "strikes", pack_id, strikes, self._expires_s())

    async def note_sent(self, pack_id: str, leases: int) -> bool:
        with self._store.writing() as db:
            noted = db.execute(
                "UPDATE ledgers SET sent = 1 WHERE pack = ? AND (leases = ? OR sent = 1)",
                (pack_id, leases),
            )
            return bool(noted.rowcount) or _find_ledger(db, pack_id) is None

    async def park(self, crawl: str, body: str, pack_id: str) -> bool:
        expires_s = self._clock.now_ms() // 1000 + PARKED_KEPT_S
        with self._store.writing() as db:
            row = db.execute("SELECT state FROM crawls WHERE id = ?", (crawl,)).fetchone()
            if row is None or row[0] != State.PAUSED:
                return False
            put(db, "parked", crawl, pack_id, zlib.compress(body.encode()), expires_s)
        return True

    async def parked(self, crawl: str) -> Mapping[str, str]:
        rows = self._store.rows("SELECT pack, body FROM parked WHERE crawl = ?", (crawl,))
        return {pack_id: zlib.decompress(body).decode() for pack_id, body in rows}

    async def unpark(self, crawl: str, pack_ids: Sequence[str]) -> None:
        with self._store.writing() as db:
            db.executemany(
                "DELETE FROM parked WHERE crawl = ? AND pack = ?",
                [(crawl, pack_id) for pack_id in pack_ids],
            )

    def _put_ledger(self, db: sqlite3.Connection, ledger: Ledger) -> None:
        fields = to_fields(ledger)
        db.execute(
            "INSERT INTO ledgers VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                ledger.pack,
                fields[FIELD],
                fields["children"],
                int(fields["surplus"]),
                int(ledger.sent),
                ledger.leases,
                self._expires_s(),
            ),
        )

    def _expires_s(self) -> int:
        return self._clock.now_ms() // 1000 + self._retention_s


def _recall(db: sqlite3.Connection, pack_id: str) -> Recalled | None:
    """Read everything stored about a pack. An item of a newer version is described in `newer`."""
    recalled: Recalled | None = None
    row = db.execute("SELECT strikes FROM strikes WHERE pack = ?", (pack_id,)).fetchone()
    if row is not None:
        recalled = Recalled(strikes=row[0])
    try:
        row = db.execute("SELECT v, blob FROM journals WHERE pack = ?", (pack_id,)).fetchone()
        if row is not None:
            recalled = replace(recalled or Recalled(), journal=read_journal(*row))
        row = _find_ledger(db, pack_id)
        if row is not None:
            recalled = replace(recalled or Recalled(), ledger=_ledger(pack_id, row))
    except StoredNewer as newer:
        recalled = replace(recalled or Recalled(), newer=str(newer))
    return recalled


def read_journal(version: int, blob: bytes) -> Journal:
    """Decode a journal. Raises StoredNewer for a newer version."""
    with readable():
        check({FIELD: version}, WHAT, VERSION)
        return decode(blob)


def _ledger(pack_id: str, row: Sequence[Any]) -> Ledger:
    with readable():
        return from_fields(pack_id, dict(zip(LEDGER_COLUMNS, row, strict=True)))


def _find_ledger(db: sqlite3.Connection, pack_id: str) -> Sequence[Any] | None:
    row: Sequence[Any] | None = db.execute(
        f"SELECT {', '.join(LEDGER_COLUMNS)} FROM ledgers WHERE pack = ?",  # noqa: S608 - constant
        (pack_id,),
    ).fetchone()
    return row
