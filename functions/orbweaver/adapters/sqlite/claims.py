"""Claims: the records that make a URL belong to one pack (batch of URLs) of a crawl.

One transaction reads and writes the claims of a limited number of URLs (`slices`).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from orbweaver.frontier.claims import Claimer, ClaimStates, StoredClaim
from orbweaver.model.errors import NOTHING
from orbweaver.model.turns import slices

if TYPE_CHECKING:
    from orbweaver.adapters.sqlite.store import SqliteStore
    from orbweaver.model.crawl import Crawl
    from orbweaver.model.target import Target

# Length of the hash in the index. The URL is compared too, so a short hash is enough.
KEY_BYTES = 4
# Columns of a claim, and keys of the replaced claim in `was`.
FIELDS = ("crawl", "pack", "depth", "at", "expires", "unasked", "was")
FIND = f"SELECT n, {', '.join(FIELDS)} FROM claims WHERE k = ? AND url = ? AND name = ?"  # noqa: S608
UPDATE = f"UPDATE claims SET {', '.join(f'{name} = ?' for name in FIELDS)} WHERE n = ?"  # noqa: S608
INSERT = (
    f"INSERT INTO claims (k, url, name, {', '.join(FIELDS)})"  # noqa: S608
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


class SqliteFrontier:
    """Implements `Frontier` on SQLite."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    async def known(
        self, claimer: Claimer, urls: Sequence[str], modified: Mapping[str, int] = NOTHING
    ) -> ClaimStates:
        claims: dict[str, StoredClaim] = {}
        async for part in slices(urls):
            with self._store.reading() as db:
                for url in part:
                    _, claim = _find(db, claimer.name, url)
                    if claim is not None:
                        claims[url] = claim
        return ClaimStates.build(claimer, claims, modified)

    async def claim(self, claimer: Claimer, targets: Sequence[Target]) -> frozenset[str]:
        won: set[str] = set()
        async for part in slices(targets):
            with self._store.writing() as db:
                won.update(target.url for target in part if _claim(db, claimer, target))
        return frozenset(won)

    async def release(self, claimer: Claimer, urls: Sequence[str]) -> None:
        async for part in slices(urls):
            with self._store.writing() as db:
                for url in part:
                    _release(db, claimer, url)

    async def abandon(self, crawl: Crawl, urls: Sequence[str], *, failed: bool = False) -> None:
        async for part in slices(urls):
            with self._store.writing() as db:
                for url in part:
                    _abandon(db, crawl, url, failed=failed)

    async def last_claim(self, name: str, url: str) -> StoredClaim | None:
        with self._store.reading() as db:
            return _find(db, name, url)[1]


def _claim(db: sqlite3.Connection, claimer: Claimer, target: Target) -> bool:
    url = target.url
    number, claim = _find(db, claimer.name, url)
    if claim is None:
        mine = StoredClaim.create(claimer, target)
        db.execute(INSERT, (_key(claimer.name, url), url, claimer.name, *_columns(mine)))
        return True
    if claim.pack == claimer.pack:
        return True
    if claim.holds(claimer, target.modified_at_ms):
        if claim.was is not None and claim.was.pack == claimer.pack:
            _update(db, number, replace(claim, was=None))
        return False
    _update(db, number, StoredClaim.create(claimer, target, claim))
    return True


def _abandon(db: sqlite3.Connection, crawl: Crawl, url: str, *, failed: bool) -> None:
    number, claim = _find(db, crawl.name, url)
    if claim is None:
        return
    was = claim.was
    if claim.crawl == crawl.id:
        _update(db, number, replace(claim, unasked=True, was=None if failed else was))
    elif was is not None and was.crawl == crawl.id:
        _update(db, number, replace(claim, was=replace(was, unasked=True)))


def _release(db: sqlite3.Connection, claimer: Claimer, url: str) -> None:
    number, claim = _find(db, claimer.name, url)
    if claim is None:
        return
    if claim.pack == claimer.pack:
        if claim.was is None:
            db.execute("DELETE FROM claims WHERE n = ?", (number,))
        else:
            _update(db, number, claim.was)
    elif claim.was is not None and claim.was.pack == claimer.pack:
        _update(db, number, replace(claim, was=None))


def _find(db: sqlite3.Connection, name: str, url: str) -> tuple[int, StoredClaim | None]:
    row = db.execute(FIND, (_key(name, url), url, name)).fetchone()
    return (0, None) if row is None else (row[0], _stored(row[1:]))


def _update(db: sqlite3.Connection, number: int, claim: StoredClaim) -> None:
    db.execute(UPDATE, (*_columns(claim), number))


def _stored(row: Sequence[Any]) -> StoredClaim:
    crawl, pack, depth, at_ms, expires_s, unasked, was = row
    former = None if was is None else json.loads(was)
    return StoredClaim(
        crawl=crawl,
        pack=pack,
        at_ms=at_ms,
        expires_s=expires_s,
        depth=depth,
        unasked=bool(unasked),
        was=former and _stored([former.get(name) for name in FIELDS]),
    )


def _columns(claim: StoredClaim) -> tuple[Any, ...]:
    fields = (claim.crawl, claim.pack, claim.depth, claim.at_ms, claim.expires_s)
    if claim.was is None:
        return (*fields, claim.unasked, None)
    was = dict(zip(FIELDS, _columns(claim.was), strict=True))
    return (*fields, claim.unasked, json.dumps(was, separators=(",", ":")))


def _key(name: str, url: str) -> int:
    digest = blake2b(f"{name}#{url}".encode(), digest_size=KEY_BYTES).digest()
    return int.from_bytes(digest, "big", signed=True)
