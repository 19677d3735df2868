"""Hosts: times of the next requests, blocks, robots.txt files and cookies.

One transaction reserves request times, by the rules in `politeness/host_schedule.py`.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections import OrderedDict
from dataclasses import replace
from typing import TYPE_CHECKING

from orbweaver.adapters.sqlite.store import put
from orbweaver.politeness.host_schedule import (
    Host,
    RobotsEntry,
    Slots,
    after_failure,
    is_doubtful,
    reserved,
)

if TYPE_CHECKING:
    from orbweaver.adapters.sqlite.store import SqliteStore

HOST_KEPT_S = 30 * 86_400
COOKIES_KEPT_S = 8 * 86_400  # a crawl lasts seven days at most
ROBOTS_BYTES_MAX = 512 * 1024
# Limits of a process's cache of robots.txt files. Each pack reads them, and they change once a day.
ROBOTS_KEPT_MAX = 4_096
ROBOTS_BYTES_KEPT_MAX = 32 * 1024 * 1024
COLUMNS = "tat, line, blocked_until, strikes, struck_at, failures, failed_at"
FIELDS = (
    "tat_ms",
    "line_ms",
    "blocked_until_ms",
    "strikes",
    "struck_at_ms",
    "failures",
    "failed_at_ms",
)


class SqliteHosts:
    """Implements `Hosts` on SQLite."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self._robots: OrderedDict[str, RobotsEntry] = OrderedDict()
        self._robots_bytes = 0

    async def read_host(self, host: str) -> Host:
        with self._store.reading() as db:
            return _host(db, host, self._robots_of(db, host))

    async def reserve(
        self, host: str, wanted: int, spacing_ms: int, now_ms: int, until_ms: int
    ) -> Slots:
        with self._store.writing() as db:
            before = _host(db, host)
            after, slots = reserved(before, wanted, spacing_ms, now_ms, until_ms)
            if after is not before:
                _put(db, after, now_ms)
        return slots

    async def release(self, host: str, from_ms: int, to_ms: int) -> None:
        with self._store.writing() as db:
            db.execute(
                "UPDATE hosts SET tat = ? WHERE host = ? AND tat = ?", (from_ms, host, to_ms)
            )

    async def block(self, host: str, until_ms: int, strikes: int, now_ms: int) -> None:
        with self._store.writing() as db:
            state = _host(db, host)
            if until_ms > state.blocked_until_ms:
                blocked = replace(
                    state, blocked_until_ms=until_ms, strikes=strikes, struck_at_ms=now_ms
                )
                _put(db, blocked, now_ms)

    async def fail(self, host: str, now_ms: int, chance: float, *, probe: bool) -> Host:
        with self._store.writing() as db:
            state = after_failure(_host(db, host), now_ms, chance, probe=probe)
            _put(db, state, now_ms)
            return replace(state, robots=self._robots_of(db, host))

    async def recover(self, host: str) -> None:
        failed = "SELECT 1 FROM hosts WHERE host = ? AND failures > 0"
        if self._store.row(failed, (host,)) is None:  # nearly always
            return
        with self._store.writing() as db:
            db.execute("UPDATE hosts SET failures = 0 WHERE host = ?", (host,))

    async def take_probe(self, host: str, until_ms: int, now_ms: int) -> bool:
        with self._store.writing() as db:
            state = _host(db, host)
            if not is_doubtful(state, now_ms):
                return False
            _put(db, replace(state, blocked_until_ms=until_ms), now_ms)
        return True

    async def keep_robots(self, host: str, entry: RobotsEntry) -> None:
        body = None if entry.body is None else zlib.compress(entry.body[:ROBOTS_BYTES_MAX])
        with self._store.writing() as db:
            row = (entry.fetched_at_ms, body, entry.verdict, entry.detail, entry.reason)
            put(db, "robots", host, *row, entry.fetched_at_ms // 1000 + HOST_KEPT_S)
        self._forget(host)

    async def cookies(self, crawl_id: str, site: str) -> str | None:
        key = (crawl_id, site)
        row = self._store.row("SELECT jar FROM cookies WHERE crawl = ? AND site = ?", key)
        return None if row is None else str(row[0])

    async def keep_cookies(self, crawl_id: str, site: str, text: str, now_ms: int) -> None:
        with self._store.writing() as db:
            put(db, "cookies", crawl_id, site, text, now_ms // 1000 + COOKIES_KEPT_S)

    async def session(self, crawl_id: str, origin: str) -> str | None:
        # No site contains "://", so an origin cannot be the key of a site's cookies.
        return await self.cookies(crawl_id, origin)

    async def keep_session(
        self, crawl_id: str, origin: str, text: str, was: str | None, now_ms: int
    ) -> bool:
        with self._store.writing() as db:
            sql = "SELECT jar FROM cookies WHERE crawl = ? AND site = ?"
            row = db.execute(sql, (crawl_id, origin)).fetchone()
            if (None if row is None else row[0]) != was:
                return False
            put(db, "cookies", crawl_id, origin, text, now_ms // 1000 + COOKIES_KEPT_S)
        return True

    def _robots_of(self, db: sqlite3.Connection, host: str) -> RobotsEntry | None:
        row = db.execute("SELECT fetched_at FROM robots WHERE host = ?", (host,)).fetchone()
        known = self._robots.get(host)
        if row is not None and known is not None and known.fetched_at_ms == row[0]:
            self._robots.move_to_end(host)
            return known
        self._forget(host)
        if row is None:
            return None
        fetched_at_ms, body, verdict, detail, reason = db.execute(
            "SELECT fetched_at, body, verdict, detail, reason FROM robots WHERE host = ?", (host,)
        ).fetchone()
        entry = RobotsEntry(
            fetched_at_ms=fetched_at_ms,
            body=None if body is None else zlib.decompress(body),
            verdict=verdict,
            detail=detail,
            reason=reason,
        )
        self._keep(host, entry)
        return entry

    def _keep(self, host: str, entry: RobotsEntry) -> None:
        self._robots[host] = entry
        self._robots_bytes += len(entry.body or b"")
        while len(self._robots) > ROBOTS_KEPT_MAX or self._robots_bytes > ROBOTS_BYTES_KEPT_MAX:
            self._forget(next(iter(self._robots)))

    def _forget(self, host: str) -> None:
        if host in self._robots:
            self._robots_bytes -= len(self._robots.pop(host).body or b"")


def _host(db: sqlite3.Connection, host: str, robots: RobotsEntry | None = None) -> Host:
    row = db.execute(
        f"SELECT {COLUMNS} FROM hosts WHERE host = ?",  # noqa: S608 - constant
        (host,),
    ).fetchone()
    if row is None:
        return Host(name=host, robots=robots)
    return Host(name=host, robots=robots, **dict(zip(FIELDS, row, strict=True)))


def _put(db: sqlite3.Connection, state: Host, now_ms: int) -> None:
    ahead_ms = max(now_ms, state.tat_ms, state.blocked_until_ms)
    fields = (getattr(state, name) for name in FIELDS)
    put(db, "hosts", state.name, *fields, ahead_ms // 1000 + HOST_KEPT_S)
