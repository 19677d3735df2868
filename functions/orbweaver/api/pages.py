"""Answers about single URLs: page records, a page of them at a time, and explanations.

Records lie by day and shard, in order of their keys within. A cursor is such a place. One request
reads so many records and shards and no more, so a page may be short, or empty, and have a next one.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Protocol, TypeAlias, cast

from orbweaver.api.context import Means, Reply
from orbweaver.api.requests import Asking, OfCrawl, Records
from orbweaver.api.responses import Explained, Rows, row_of
from orbweaver.control import cursor
from orbweaver.exporting.manifest import days_between
from orbweaver.model.crawl import Crawl
from orbweaver.model.page_record import PageRecord

# Day, shard and key of a record.
Place: TypeAlias = tuple[str, int, str]

ROWS_READ_MAX = 5_000
SHARDS_READ_MAX = 64


class PagesReader(Protocol):
    """What takes records in until it is full."""

    @property
    def full(self) -> bool:
        """Whether one request has read enough."""

    def take(self, place: Place, record: PageRecord) -> None:
        """Take a record in that lies at a place."""


async def pages(means: Means, *, path: OfCrawl, query: Records) -> Reply:
    """List the page records of a crawl."""
    crawl = await means.crawl(path.id)
    listing = ("pages", crawl.id, query.outcome or "")
    reading = _PagesReading(limit=query.limit, outcome=query.outcome)
    following = await walk(means, crawl, listing, query.cursor, reading)
    return Reply(status=200, body=Rows(pages=tuple(reading.rows), next=following))


async def walk(
    means: Means, crawl: Crawl, listing: tuple[str, ...], text: str | None, reader: PagesReader
) -> str | None:
    """Have a reader take records in from a cursor on; the cursor to go on with, None at the end."""
    day, shard, after = _begin(listing, text)
    places = _places(means, crawl, day, shard)
    for day, shard in islice(places, SHARDS_READ_MAX):
        rows = means.pages.read_shard(day, shard, after=after or None, crawl=crawl.id)
        async with aclosing(cast("AsyncGenerator[tuple[str, PageRecord]]", rows)):
            async for key, record in rows:
                after = key
                reader.take((day, shard, key), record)
                if reader.full:
                    break
        if reader.full:
            return cursor.encode(listing, (day, shard, after))
        after = ""
    left = next(places, None)
    return None if left is None else cursor.encode(listing, (*left, ""))


async def explain(means: Means, *, query: Asking) -> Reply:
    """Say what became of a URL, and why."""
    crawl = None if query.crawl is None else await means.crawl(query.crawl)
    found = await means.explainer.explain(query.url, None if crawl is None else crawl.id)
    return Reply(status=200, body=Explained.of(*found))


@dataclass
class _PagesReading:
    """What one request has read."""

    limit: int
    outcome: str | None
    read: int = 0
    rows: list[Any] = field(default_factory=list)

    @property
    def full(self) -> bool:
        return len(self.rows) >= self.limit or self.read >= ROWS_READ_MAX

    def take(self, _place: Place, record: PageRecord) -> None:
        self.read += 1
        if self.outcome in (None, record.outcome):
            self.rows.append(row_of(record))


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
