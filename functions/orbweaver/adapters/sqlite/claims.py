"""Claims: the records that make a URL belong to one pack (batch of URLs) of a crawl.

The rules are the same as on DynamoDB (adapters/dynamodb/claims.py). One transaction reads and
writes the claims of a limited number of URLs (`slices`).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Self

from orbweaver.frontier.claims import Claimer, ClaimStates, StoredClaim
from orbweaver.model.errors import NOTHING
from orbweaver.model.target import Prior
from orbweaver.model.turns import slices

if TYPE_CHECKING:
    from orbweaver.adapters.sqlite.store import SqliteStore
    from orbweaver.model.crawl import Crawl
    from orbweaver.model.target import Target

# Length of the hash in the index. The URL is compared too, so a short hash is enough.
KEY_BYTES = 4
FIND = (
    "SELECT n, crawl, pack, depth, at, expires, unasked, was FROM claims"
    " WHERE k = ? AND url = ? AND name = ?"
)
UPDATE = (
    "UPDATE claims SET crawl = ?, pack = ?, depth = ?, at = ?, expires = ?, unasked = ?, was = ?"
    " WHERE n = ?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRow:
    """A stored claim. `was` is the expired or stale claim that it replaced."""

    crawl: str
    pack: str
    depth: int
    at: int
    expires: int
    # This run will never request the URL. Other runs can claim it.
    unasked: bool = False
    was: ClaimRow | None = None

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> Self:
        crawl, pack, depth, at, expires, unasked, was = row
        return cls(
            crawl=crawl,
            pack=pack,
            depth=depth,
            at=at,
            expires=expires,
            unasked=bool(unasked),
            was=None if was is None else ClaimRow(**json.loads(was)),
        )

    @property
    def columns(self) -> tuple[Any, ...]:
        was = self.was and json.dumps(asdict(self.was), separators=(",", ":"))
        mark = int(self.unasked)
        return self.crawl, self.pack, self.depth, self.at, self.expires, mark, was


class SqliteFrontier:
    """Implements `Frontier` on SQLite."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    async def known(
        self, claimer: Claimer, urls: Sequence[str], modified: Mapping[str, int] = NOTHING
    ) -> ClaimStates:
        held: set[str] = set()
        own: set[str] = set()
        lapsed: dict[str, Prior] = {}
        async for part in slices(urls):
            with self._store.reading() as db:
                for url in part:
                    _, claim = _find(db, claimer.name, url)
                    if claim is None or claim.pack == claimer.pack:
                        continue
                    seen = _seen_by(claimer, claim)
                    if seen is not None and _holds(seen, claimer, modified.get(url)):
                        held.add(url)
                        if claim.crawl == claimer.crawl:
                            own.add(url)
                    elif seen is not None:
                        lapsed[url] = Prior(crawl=seen.crawl, at_ms=seen.at)
        return ClaimStates(held=frozenset(held), own=frozenset(own), lapsed=lapsed)

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

    async def abandon(self, crawl: Crawl, urls: Sequence[str]) -> None:
        async for part in slices(urls):
            with self._store.writing() as db:
                for url in part:
                    _abandon(db, crawl, url)

    async def last_claim(self, name: str, url: str) -> StoredClaim | None:
        with self._store.reading() as db:
            _, claim = _find(db, name, url)
        if claim is None:
            return None
        return StoredClaim(
            crawl=claim.crawl,
            pack=claim.pack,
            at_ms=claim.at,
            expires_s=claim.expires,
            depth=claim.depth,
        )


def _claim(db: sqlite3.Connection, claimer: Claimer, target: Target) -> bool:
    url = target.url
    mine = ClaimRow(
        crawl=claimer.crawl,
        pack=claimer.pack,
        depth=target.depth,
        at=claimer.at_ms,
        expires=claimer.expires_s,
    )
    number, claim = _find(db, claimer.name, url)
    if claim is None:
        db.execute(
            "INSERT INTO claims (k, url, name, crawl, pack, depth, at, expires, unasked, was)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (_key(claimer.name, url), url, claimer.name, *mine.columns),
        )
        return True
    if claim.pack == claimer.pack:
        return True
    seen = _seen_by(claimer, claim)
    if seen is not None and _holds(seen, claimer, target.modified_at_ms):
        if claim.was is not None and claim.was.pack == claimer.pack:
            _update(db, number, replace(claim, was=None))
        return False
    _update(db, number, replace(mine, was=replace(seen or claim, was=None)))
    return True


def _abandon(db: sqlite3.Connection, crawl: Crawl, url: str) -> None:
    number, claim = _find(db, crawl.name, url)
    if claim is None:
        return
    was = claim.was
    if claim.crawl == crawl.id:
        _update(db, number, replace(claim, unasked=True))
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


def _find(db: sqlite3.Connection, name: str, url: str) -> tuple[int, ClaimRow | None]:
    row = db.execute(FIND, (_key(name, url), url, name)).fetchone()
    return (0, None) if row is None else (row[0], ClaimRow.from_row(row[1:]))


def _update(db: sqlite3.Connection, number: int, claim: ClaimRow) -> None:
    db.execute(UPDATE, (*claim.columns, number))


def _key(name: str, url: str) -> int:
    digest = blake2b(f"{name}#{url}".encode(), digest_size=KEY_BYTES).digest()
    return int.from_bytes(digest, "big", signed=True)


def _seen_by(claimer: Claimer, claim: ClaimRow) -> ClaimRow | None:
    """Return the claim that counts for a claimer. Ignores claims that other runs abandoned."""
    seen: ClaimRow | None = claim
    while seen is not None and seen.unasked and seen.crawl != claimer.crawl:
        seen = seen.was
    return seen


def _holds(seen: ClaimRow, claimer: Claimer, modified_at_ms: int | None) -> bool:
    """Whether another pack's claim is valid for `claimer`: not expired and not stale.

    It is stale if it is older than `modified_at_ms`, the page's last modification.
    """
    stale_before_ms = max(claimer.stale_before_ms, modified_at_ms or 0)
    return seen.expires > claimer.at_ms // 1000 and seen.at >= stale_before_ms
