"""Definitions, states and counters of crawls.

A crawl is one row: its fields as JSON, and separate columns for conditions. A write keeps fields
that only other releases use. Counters are in shards: counts as JSON, with the number of commits as
version.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from orbweaver.adapters.sqlite.store import put
from orbweaver.frontier.claims import UnreadableCrawl
from orbweaver.model import crawl_codec
from orbweaver.model.crawl import MOVED, Counters, CounterShard, Counts, Crawl, State
from orbweaver.model.errors import NOTHING, readable
from orbweaver.model.version import NewerVersion

if TYPE_CHECKING:
    from orbweaver.adapters.sqlite.store import SqliteStore
    from orbweaver.model.ports import Clock

# Cache of decoded crawls with many seeds: minimum length of their JSON, and number of crawls. A
# live screen reads its crawl every 0.2 s.
LONG_CHARS, LONG_KEPT = 100_000, 2
# Field of the row that is not part of a crawl: a stack has the same proxies for all crawls.
_PROXIED_SCHEMES = "proxied_schemes"
LIVE = (State.RUNNING, State.PAUSED)


class SqliteCrawls:
    """Implements `Crawls` on SQLite."""

    def __init__(self, store: SqliteStore, *, clock: Clock, crawl_retention_s: int) -> None:
        self._store = store
        self._clock = clock
        self._kept_s = crawl_retention_s
        self._long: deque[tuple[str, Crawl]] = deque(maxlen=LONG_KEPT)

    async def create(self, crawl: Crawl) -> bool:
        with self._store.writing() as db:
            row = (crawl.id, crawl.state, crawl.edits, crawl.started_at_ms, 0)
            kept_s, text = crawl.deletable_s(self._kept_s), _spelled(crawl_codec.to_fields(crawl))
            return put(db, "crawls", *row, kept_s, text, otherwise="IGNORE") == 1

    async def get(self, crawl_id: str) -> Crawl | None:
        row = self._store.row(
            "SELECT fields FROM crawls WHERE id = ? AND (expires IS NULL OR expires > ?)",
            (crawl_id, self._now_s()),
        )
        if row is None:
            return None
        with readable():
            return self._read(row[0])

    def _read(self, text: str) -> Crawl:
        for known, crawl in self._long:
            if known == text:
                return crawl
        crawl = crawl_codec.from_fields(json.loads(text))
        if len(text) >= LONG_CHARS:
            self._long.append((text, crawl))
        return crawl

    async def list(self) -> tuple[Crawl, ...]:
        return self._all()[0]

    async def newer(self) -> tuple[UnreadableCrawl, ...]:
        return self._all()[1]

    def _all(self) -> tuple[tuple[Crawl, ...], tuple[UnreadableCrawl, ...]]:
        """Return the crawls, newest first, and the crawls that are stored in a newer format."""
        rows = self._store.rows(
            "SELECT fields FROM crawls WHERE NOT forgotten AND (expires IS NULL OR expires > ?)"
            " ORDER BY started_at_ms DESC, id",
            (self._now_s(),),
        )
        crawls: list[Crawl] = []
        others: list[UnreadableCrawl] = []
        for (text,) in rows:
            try:
                crawls.append(self._read(text))
            except NewerVersion as error:
                fields = json.loads(text)
                others.append(UnreadableCrawl.from_fields(fields["id"], fields, str(error)))
        return tuple(crawls), tuple(others)

    async def counters(self, crawl: Crawl) -> Counters:
        rows = self._store.rows(
            "SELECT number, commits, closed, counts FROM shards WHERE crawl = ?", (crawl.id,)
        )
        shards = {number: shard_of_row(*rest) for number, *rest in rows}
        numbers = range(crawl.shards)
        return Counters.build(tuple(shards.get(number, CounterShard()) for number in numbers))

    async def seal(
        self, crawl: Crawl, counters: Counters, finished: Crawl, rest: Counts = NOTHING
    ) -> bool:
        with self._store.writing() as db:
            fields = read_fields(db, crawl.id)
            was = (crawl.state, crawl.seeds_planned)
            if fields is None or (fields["state"], fields.get("seeds_planned")) != was:
                return False
            now = [read_shard(db, crawl.id, number) for number in range(crawl.shards)]
            if any(
                shard.closed or shard.commits != seen.commits
                for shard, seen in zip(now, counters.shards, strict=True)
            ):
                return False
            for number, shard in enumerate(now):
                close_shard(db, crawl, number, shard, NOTHING if number else rest, self._kept_s)
            end = {name: getattr(finished, name) for name in ("state", "stop", "finished_at_ms")}
            write_fields(db, crawl.id, fields, end)
        return True

    async def move(self, crawl: Crawl, allowed: Iterable[State]) -> bool:
        with self._store.writing() as db:
            fields = read_fields(db, crawl.id)
            if fields is None or fields["state"] not in set(allowed):
                return False
            write_fields(db, crawl.id, fields, {name: getattr(crawl, name) for name in MOVED})
        return True

    async def edit(self, crawl: Crawl, was: Crawl) -> bool:
        with self._store.writing() as db:
            done = edit(db, crawl, was, LIVE)
            if done:
                kept_s = crawl.deletable_s(self._kept_s)
                db.execute("UPDATE crawls SET expires = ? WHERE id = ?", (kept_s, crawl.id))
        return done

    async def note_proxied(self, crawl_id: str, schemes: Collection[str]) -> None:
        """Record that workers request URLs of these schemes through proxies."""
        with self._store.writing() as db:
            fields = read_fields(db, crawl_id)
            if fields is not None:
                write_fields(db, crawl_id, fields, {_PROXIED_SCHEMES: sorted(schemes)})

    async def proxied_schemes(self, crawl_id: str) -> frozenset[str]:
        """Return the schemes of URLs that workers requested through proxies."""
        row = self._store.row("SELECT fields FROM crawls WHERE id = ?", (crawl_id,))
        return (
            frozenset() if row is None else frozenset(json.loads(row[0]).get(_PROXIED_SCHEMES, ()))
        )

    async def keep_samples(self, crawl: Crawl, samples: Mapping[str, Sequence[str]]) -> None:
        expires = crawl.deletable_s(self._kept_s)
        with self._store.writing() as db:
            for reason, urls in samples.items():
                text = json.dumps(tuple(urls))
                put(db, "samples", crawl.id, reason, text, expires, otherwise="IGNORE")

    async def samples(self, crawl_id: str) -> Mapping[str, Sequence[str]]:
        rows = self._store.rows("SELECT reason, urls FROM samples WHERE crawl = ?", (crawl_id,))
        return {reason: tuple(json.loads(urls)) for reason, urls in rows}

    async def learn(self, crawl: Crawl, counts: Counts) -> Counts:
        expires = crawl.deletable_s(self._kept_s)
        with self._store.writing() as db:
            db.executemany(
                "INSERT INTO kinds VALUES (?, ?, ?, ?)"
                " ON CONFLICT (crawl, k) DO UPDATE SET n = n + excluded.n",
                [(crawl.id, key, count, expires) for key, count in counts.items()],
            )
        return await self.learned(crawl.id)

    async def learned(self, crawl_id: str) -> Counts:
        rows = self._store.rows("SELECT k, n FROM kinds WHERE crawl = ?", (crawl_id,))
        return dict(rows)

    async def announced(self, crawl_id: str) -> None:
        with self._store.writing() as db:
            fields = read_fields(db, crawl_id)
            if fields is not None:
                write_fields(db, crawl_id, fields, {"announced": True})

    def _now_s(self) -> int:
        return self._clock.now_ms() // 1000


def edit(db: sqlite3.Connection, crawl: Crawl, was: Crawl, allowed: Sequence[State] = ()) -> bool:
    """Write a crawl's changes, if nothing else changed it and its state is allowed."""
    fields = read_fields(db, crawl.id)
    if fields is None or fields.get("edits", 0) != was.edits:
        return False
    if allowed and fields["state"] not in allowed:
        return False
    write_fields(db, crawl.id, fields, crawl_codec.edit_fields(crawl, was))
    return True


def read_fields(db: sqlite3.Connection, crawl_id: str) -> dict[str, Any] | None:
    """Return a crawl's stored fields, of any version, or None if it does not exist."""
    row = db.execute("SELECT fields FROM crawls WHERE id = ?", (crawl_id,)).fetchone()
    return None if row is None else json.loads(row[0])


def write_fields(
    db: sqlite3.Connection, crawl_id: str, fields: dict[str, Any], changes: Mapping[str, Any]
) -> None:
    """Write a crawl's fields with changes. Fields changed to None are removed."""
    changed = {name: value for name, value in {**fields, **changes}.items() if value is not None}
    db.execute(
        "UPDATE crawls SET state = ?, edits = ?, fields = ? WHERE id = ?",
        (changed["state"], changed.get("edits", 0), _spelled(changed), crawl_id),
    )


def _spelled(fields: Mapping[str, Any]) -> str:
    return json.dumps(fields, separators=(",", ":"))


def read_shard(db: sqlite3.Connection, crawl_id: str, number: int) -> CounterShard:
    row = db.execute(
        "SELECT commits, closed, counts FROM shards WHERE crawl = ? AND number = ?",
        (crawl_id, number),
    ).fetchone()
    return CounterShard() if row is None else shard_of_row(*row)


def shard_of_row(commits: int, closed: int, counts: str) -> CounterShard:
    read = MappingProxyType(json.loads(counts))
    return CounterShard(commits=commits, closed=bool(closed), counts=read)


def add_counts(
    db: sqlite3.Connection,
    crawl: Crawl,
    number: int,
    shard: CounterShard,
    counts: Counts,
    kept_s: int,
) -> None:
    write_shard(db, crawl, number, _sum(shard, counts), kept_s, commits=shard.commits + 1)


def close_shard(
    db: sqlite3.Connection,
    crawl: Crawl,
    number: int,
    shard: CounterShard,
    rest: Counts,
    kept_s: int,
) -> None:
    """Add the last counts (`rest`) to a shard and close it.

    `shard` was read in this transaction.
    """
    total, commits = _sum(shard, rest), shard.commits
    write_shard(db, crawl, number, total, kept_s, commits=commits, closed=True)


def write_shard(
    db: sqlite3.Connection,
    crawl: Crawl,
    number: int,
    counts: Counts,
    kept_s: int,
    *,
    commits: int,
    closed: bool = False,
) -> None:
    text = json.dumps(dict(counts), separators=(",", ":"))
    put(db, "shards", crawl.id, number, commits, int(closed), text, crawl.deletable_s(kept_s))


def _sum(shard: CounterShard, counts: Counts) -> Counts:
    total = Counter(shard.counts)
    total.update({key: count for key, count in counts.items() if count})
    return total
