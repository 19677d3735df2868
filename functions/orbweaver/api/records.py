"""Answers about single URLs: page records, a page of them at a time, and explanations.

Records lie by day and shard, in order of their keys within. A cursor is such a place. One request
reads so many records and shards and no more, so a page may be short, or empty, and have a next one.
"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from orbweaver.api.answered import Explained, Rows, row_of
from orbweaver.api.means import Reply
from orbweaver.core import cursor
from orbweaver.core.export import days_between

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from orbweaver.api.asked import Asking, OfCrawl, Records
    from orbweaver.api.means import Means
    from orbweaver.core.crawl import Crawl
    from orbweaver.core.record import PageRecord

ROWS_READ_MAX = 5_000
SHARDS_READ_MAX = 64


async def pages(means: Means, *, path: OfCrawl, query: Records) -> Reply:
    """List the page records of a crawl."""
    crawl = await means.crawl(path.id)
    listing = ("pages", crawl.id, query.outcome or "")
    day, shard, after = _begin(listing, query.cursor)
    reading = _Reading(limit=query.limit)
    places = _places(means, crawl, day, shard)
    for day, shard in islice(places, SHARDS_READ_MAX):
        rows = means.pages.read_shard(day, shard, after=after or None, crawl=crawl.id)
        async with aclosing(cast("AsyncGenerator[tuple[str, PageRecord]]", rows)):
            async for key, record in rows:
                after = key
                reading.take(record, wanted=query.outcome in (None, record.outcome))
                if reading.full:
                    break
        if reading.full:
            return _page(reading, cursor.encode(listing, (day, shard, after)))
        after = ""
    left = next(places, None)
    return _page(reading, None if left is None else cursor.encode(listing, (*left, "")))


async def explain(means: Means, *, query: Asking) -> Reply:
    """Say what became of a URL, and why."""
    crawl = None if query.crawl is None else await means.crawl(query.crawl)
    found = await means.explainer.explain(query.url, None if crawl is None else crawl.id)
    return Reply(status=200, body=Explained.of(*found))


@dataclass
class _Reading:
    """What one request has read."""

    limit: int
    read: int = 0
    rows: list[Any] = field(default_factory=list)

    @property
    def full(self) -> bool:
        return len(self.rows) >= self.limit or self.read >= ROWS_READ_MAX

    def take(self, record: PageRecord, *, wanted: bool) -> None:
        self.read += 1
        if wanted:
            self.rows.append(row_of(record))


def _page(reading: _Reading, following: str | None) -> Reply:
    return Reply(status=200, body=Rows(pages=tuple(reading.rows), next=following))


def _begin(listing: tuple[str, ...], text: str | None) -> tuple[str, int, str]:
    if text is None:
        return "", 0, ""
    match cursor.decode(listing, text):
        case [str(day), int(shard), str(after)]:
            return day, shard, after
        case _:
            raise cursor.CursorError


def _places(means: Means, crawl: Crawl, day: str, shard: int) -> Iterator[tuple[str, int]]:
    """List days and shards that may hold records, from a place on."""
    now_ms = means.clock.now_ms()
    oldest_ms = now_ms - means.page_retention_s * 1000
    last_ms = now_ms if crawl.finished_at_ms is None else crawl.finished_at_ms
    for one in days_between(max(crawl.started_at_ms, oldest_ms), last_ms):
        for number in range(means.pages.shards):
            if (one, number) >= (day, shard):
                yield one, number
