"""Counters of crawls, in shards: counts as JSON, with the number of commits as version."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from types import MappingProxyType

from orbweaver.model.crawl import CounterShard, Counts, Crawl

COLUMNS = "commits, closed, counts"


def read_shard(db: sqlite3.Connection, crawl_id: str, number: int) -> CounterShard:
    row = db.execute(
        f"SELECT {COLUMNS} FROM shards WHERE crawl = ? AND number = ?",  # noqa: S608 - constant
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
    db.execute(
        "INSERT OR REPLACE INTO shards VALUES (?, ?, ?, ?, ?, ?)",
        (
            crawl.id,
            number,
            commits,
            int(closed),
            json.dumps(dict(counts), separators=(",", ":")),
            crawl.deletable_s(kept_s),
        ),
    )


def _sum(shard: CounterShard, counts: Counts) -> Counts:
    total = Counter(shard.counts)
    total.update({key: count for key, count in counts.items() if count})
    return total
