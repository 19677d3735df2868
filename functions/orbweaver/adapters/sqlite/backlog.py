"""Packs (batches of up to 25 URLs) that wait for their host, and the leased pack per host.

In a crawl with a delay, one pack of each host is queued or processed at a time.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from orbweaver.adapters.sqlite.store import put
from orbweaver.frontier.backlog import Lease, LeaseRequest, WaitingPack, kept_s

if TYPE_CHECKING:
    from orbweaver.adapters.sqlite.store import SqliteStore
    from orbweaver.model.ports import Clock

# Retention of the time at which a pack was last sent, which is used for one minute only.
SENDING_KEPT_S = 86_400
_WAITING = (
    "SELECT place, body, due, ifnull(at, 0)"
    " FROM backlog LEFT JOIN sendings USING (crawl, host, place) WHERE crawl = ? AND host = ?"
)


class SqliteBacklog:
    """Implements `Backlog` with one table for all crawls."""

    def __init__(self, store: SqliteStore, *, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def put(self, crawl: str, host: str, waiting: Sequence[WaitingPack]) -> None:
        expires_s = self._clock.now_ms() // 1000 + kept_s(host)
        bodies = [zlib.compress(one.body.encode()) for one in waiting]
        with self._store.writing() as db:
            for one, body in zip(waiting, bodies, strict=True):
                row = (crawl, host, one.place, body, one.due_ms, expires_s)
                put(db, "backlog", *row, otherwise="IGNORE")

    async def read(self, crawl: str, host: str, own: str = "") -> Lease:
        with self._store.reading() as db:
            out, by, edits = read_line(db, crawl, host)
            is_held = _is_there(db, crawl, host, out)
            waits = db.execute(
                f"{_WAITING} AND place NOT IN (?, ?) ORDER BY place LIMIT 1",
                (crawl, host, out, own),
            ).fetchone()
        first = _waiting(waits) if waits else None
        return Lease(epoch=edits, place=out, is_held=is_held, holder=by, first=first)

    async def acquire(self, request: LeaseRequest) -> bool:
        crawl, host = request.crawl, request.host
        with self._store.writing() as db:
            if read_line(db, crawl, host)[2] != request.epoch:
                return False
            if request.unsent:
                counted = db.execute(
                    "UPDATE ledgers SET leases = leases + 1 WHERE pack = ? AND sent = 0",
                    (request.unsent,),
                )
                if not counted.rowcount:
                    return False
            expires_s = self._clock.now_ms() // 1000 + kept_s(request.host)
            row = (request.place, request.holder, request.epoch + 1, expires_s)
            put(db, "lines", crawl, host, *row)
        return True

    async def get(self, crawl: str, host: str, place: str) -> WaitingPack | None:
        rows = self._store.rows(f"{_WAITING} AND place = ?", (crawl, host, place))
        return next(map(_waiting, rows), None)

    async def forget(self, crawl: str, host: str, place: str) -> None:
        with self._store.writing() as db:
            _forget(db, crawl, host, place)

    async def release(self, crawl: str, host: str, place: str, by: str = "") -> None:
        with self._store.writing() as db:
            db.execute(
                "UPDATE lines SET out = '', name = ?, edits = edits + 1"
                " WHERE crawl = ? AND host = ? AND out = ?",
                (by, crawl, host, place),
            )
            _forget(db, crawl, host, place)

    async def first_places(self, crawl: str, host: str, count_max: int) -> tuple[WaitingPack, ...]:
        rows = self._store.rows(f"{_WAITING} ORDER BY place LIMIT ?", (crawl, host, count_max))
        return tuple(map(_waiting, rows))

    async def note_sent(self, crawl: str, host: str, read: WaitingPack, at_ms: int) -> bool:
        with self._store.writing() as db:
            there = db.execute(f"{_WAITING} AND place = ?", (crawl, host, read.place)).fetchone()
            if there is None or _waiting(there).sent_at_ms != read.sent_at_ms:
                return False
            expires_s = at_ms // 1000 + SENDING_KEPT_S
            put(db, "sendings", crawl, host, read.place, at_ms, expires_s)
        return True


def read_line(db: sqlite3.Connection, crawl: str, host: str) -> tuple[str, str, int]:
    """Return the place of a host's leased pack, its holder's name, and the number of changes."""
    found: tuple[str, str, int] | None = db.execute(
        "SELECT out, name, edits FROM lines WHERE crawl = ? AND host = ?", (crawl, host)
    ).fetchone()
    return found or ("", "", 0)


def _is_there(db: sqlite3.Connection, crawl: str, host: str, place: str) -> bool:
    there = "SELECT 1 FROM backlog WHERE crawl = ? AND host = ? AND place = ?"
    return db.execute(there, (crawl, host, place)).fetchone() is not None


def _forget(db: sqlite3.Connection, crawl: str, host: str, place: str) -> None:
    key = (crawl, host, place)
    db.execute("DELETE FROM backlog WHERE crawl = ? AND host = ? AND place = ?", key)
    db.execute("DELETE FROM sendings WHERE crawl = ? AND host = ? AND place = ?", key)


def _waiting(row: Sequence[Any]) -> WaitingPack:
    place, body, due_ms, sent_at_ms = row
    return WaitingPack(
        place=place,
        body=zlib.decompress(body).decode(),
        due_ms=due_ms,
        sent_at_ms=sent_at_ms,
    )
