"""Page records, sorted by day, shard and key.

A key derives from its record, so storing a record twice changes nothing. Records past their
retention are not returned.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from isal import isal_zlib

from orbweaver.model.errors import readable
from orbweaver.model.page_record import PageRecord, from_fields, page_key, prior_keys, to_fields
from orbweaver.model.version import NewerVersion

if TYPE_CHECKING:
    from orbweaver.adapters.sqlite.store import SqliteStore
    from orbweaver.model.ports import Clock
    from orbweaver.model.target import Prior

# All keys are between these two.
FIRST, LAST = " ", "\U0010ffff"
ROWS_AT_ONCE = 256
NEWEST_MAX = 2_000  # records searched by `newest`
# A record of 600 bytes takes 6 us and 377 bytes at this level, 63 us and 372 bytes by zlib.
LEVEL = 1
_ENCODER = json.JSONEncoder(separators=(",", ":"))


class SqlitePages:
    """Implements `Pages` and `History` on SQLite."""

    def __init__(self, store: SqliteStore, *, clock: Clock, retention_s: int, shards: int) -> None:
        self._store = store
        self._clock = clock
        self._retention_s = retention_s
        self._shards = shards

    @property
    def shards(self) -> int:
        return self._shards

    async def store(self, records: Sequence[PageRecord]) -> None:
        rows = [
            (
                *page_key(record, self._shards),
                record.fetched_at // 1000 + self._retention_s,
                _packed(record),
            )
            for record in records
        ]
        with self._store.writing() as db:
            db.executemany(
                "INSERT INTO pages (part, k, expires, fields) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (part, k) DO UPDATE"
                " SET expires = excluded.expires, fields = excluded.fields",
                rows,
            )

    async def earlier_records(self, priors: Mapping[str, Prior]) -> Mapping[str, PageRecord]:
        now_s = self._now_s()
        records: dict[str, PageRecord] = {}
        for url, prior in priors.items():
            for key in prior_keys(prior, url, self._shards):  # the record of the later day counts
                row = self._store.row(
                    "SELECT fields FROM pages WHERE part = ? AND k = ? AND expires > ?",
                    (*key, now_s),
                )
                if row is not None:
                    try:
                        records[url] = from_fields(fields_in(row[0]))
                    except NewerVersion:  # as without a record, the URL is requested in full
                        records.pop(url, None)
        return records

    async def read_shard(
        self, day: str, shard: int, *, after: str | None = None, crawl: str | None = None
    ) -> AsyncIterator[tuple[str, PageRecord]]:
        # "$" follows "#" in ASCII, so all keys of a crawl are between the two.
        first, last = (FIRST, LAST) if crawl is None else (f"{crawl}#", f"{crawl}$")
        behind = max(first, after or first)
        while True:
            rows = self._store.rows(
                "SELECT k, expires, fields FROM pages WHERE part = ? AND k > ? AND k < ?"
                " ORDER BY k LIMIT ?",
                (f"{day}#{shard}", behind, last, ROWS_AT_ONCE),
            )
            now_s = self._now_s()
            for key, expires, packed in rows:
                if expires > now_s:
                    with readable():
                        record = from_fields(fields_in(packed))
                    yield key, record
            if len(rows) < ROWS_AT_ONCE:
                return
            behind = rows[-1][0]

    def stored_after(self, behind: int, crawl: str) -> Iterator[tuple[int, PageRecord]]:
        """Yield a crawl's records in stored order, with row numbers, after row `behind`."""
        while True:
            rows = self._store.rows(
                "SELECT n, k, fields FROM pages WHERE n > ? ORDER BY n LIMIT ?",
                (behind, ROWS_AT_ONCE),
            )
            for behind, key, packed in rows:  # noqa: PLR1704 - the next read starts there
                if key.startswith(f"{crawl}#"):
                    with readable():
                        yield behind, from_fields(fields_in(packed))
            if len(rows) < ROWS_AT_ONCE:
                return

    def newest(self, crawl: str, limit: int) -> list[PageRecord]:
        """Return a crawl's newest records, newest first, among the `NEWEST_MAX` newest of all."""
        rows = self._store.rows(
            "SELECT fields FROM (SELECT k, fields FROM pages ORDER BY n DESC LIMIT ?)"
            " WHERE substr(k, 1, ?) = ? LIMIT ?",
            (NEWEST_MAX, len(crawl) + 1, f"{crawl}#", limit),
        )
        with readable():
            return [from_fields(fields_in(packed)) for (packed,) in rows]

    async def crawls_of(self, day: str) -> tuple[str, ...]:
        found: set[str] = set()
        for shard in range(self._shards):
            after = FIRST
            while True:  # from each crawl's first key to the key after its last
                row = self._store.row(
                    "SELECT k FROM pages WHERE part = ? AND k > ? ORDER BY k LIMIT 1",
                    (f"{day}#{shard}", after),
                )
                if row is None:
                    break
                crawl = row[0].rpartition("#")[0]
                found.add(crawl)
                after = f"{crawl}$"
        return tuple(sorted(found))

    async def count(self, day: str, shard: int, crawl: str, rows_max: int) -> int:
        row = self._store.row(
            "SELECT count(*) FROM (SELECT 1 FROM pages"
            " WHERE part = ? AND k > ? AND k < ? AND expires > ? LIMIT ?)",
            (f"{day}#{shard}", f"{crawl}#", f"{crawl}$", self._now_s(), rows_max),
        )
        return 0 if row is None else int(row[0])

    def _now_s(self) -> int:
        return self._clock.now_ms() // 1000


def _packed(record: PageRecord) -> bytes | str:
    text = _ENCODER.encode(to_fields(record))
    pressed: bytes = isal_zlib.compress(text.encode(), LEVEL)
    return pressed if len(pressed) < len(text) else text


def fields_in(packed: bytes | str) -> dict[str, Any]:
    text = zlib.decompress(packed) if isinstance(packed, bytes) else packed
    fields: dict[str, Any] = json.loads(text)
    return fields
