"""Helpers for tests of the change feed: runs with records, and feeds over memory adapters."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

from orbweaver.exporting.change_feed import ChangeFeed
from orbweaver.exporting.file_store import Store
from orbweaver.exporting.snapshot import Snapshots
from orbweaver.model.crawl import Crawl, State, Stop
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import PageRecord
from tests.memory import ManualClock, MemoryCrawls, MemoryFiles, MemoryPages, World
from tests.memory.world import Gate, open_gate

HOUR_MS = 3_600_000
NOON_MS = 1_795_219_200_000 + 12 * HOUR_MS
SHARDS = 3
RETENTION_S = 30 * 86_400

PAGE = {"outcome": Outcome.FETCHED, "reason": Reason.OK, "status": 200}
SAME = {"outcome": Outcome.UNCHANGED, "reason": Reason.NOT_MODIFIED, "status": 304}
GONE = {"outcome": Outcome.FAILED, "reason": Reason.HTTP_CLIENT_ERROR, "status": 404}
MOVED = {"outcome": Outcome.REDIRECTED, "reason": Reason.REDIRECT, "status": 301}
BROKEN = {"outcome": Outcome.FAILED, "reason": Reason.HTTP_SERVER_ERROR, "status": 503}
SITEMAP = {"outcome": Outcome.FETCHED, "reason": Reason.SITEMAP, "status": 200}
FORBIDDEN = {"outcome": Outcome.SKIPPED, "reason": Reason.ROBOTS}
SKIPPED = {"outcome": Outcome.SKIPPED}


def url_of(name: str) -> str:
    return f"https://example.org/{name}"


def run(number: int, **more: Any) -> Crawl:
    """Return a run that began some hours after noon and took half an hour."""
    begun_ms = NOON_MS + number * HOUR_MS
    given: dict[str, Any] = {
        "id": f"site-{number}",
        "name": "site",
        "started_at_ms": begun_ms,
        "finished_at_ms": begun_ms + HOUR_MS // 2,
        "state": State.FINISHED,
        "stop": Stop.FINISHED,
        "window_s": 0,
    }
    return Crawl(**given | more)


def record(crawl: Crawl, name: str, kind: dict[str, Any], **more: Any) -> PageRecord:
    """Return a record of a run, one minute after its start; `by` is its referrer."""
    by = more.pop("by", None)
    given: dict[str, Any] = {
        "crawl": crawl.id,
        "url": url_of(name),
        "fetched_at": crawl.started_at_ms + 60_000,
        "depth": 1,
        "referrer": None if by is None else url_of(by),
    }
    return PageRecord(**given | kind | more)


def page(crawl: Crawl, name: str, body: str = "1", **more: Any) -> PageRecord:
    return record(crawl, name, PAGE, sha256=body, **more)


class Stand:
    """Runs in memory, and their change feeds."""

    def __init__(self, *, shards: int = SHARDS, lines_max: int = 2) -> None:
        self.world = World()
        self.shards = shards
        self.lines_max = lines_max
        self.clock = ManualClock(NOON_MS + 24 * HOUR_MS)

    async def add(self, crawl: Crawl, *records: PageRecord) -> Crawl:
        assert await MemoryCrawls(self.world).create(crawl)
        await MemoryPages(self.world, shards=self.shards).store(records)
        return crawl

    def feed(self, gate: Gate = open_gate, **options: Any) -> ChangeFeed:
        store = Store(files=MemoryFiles(self.world, gate), clock=self.clock, random=Random(1))
        return ChangeFeed(
            pages=MemoryPages(self.world, gate, shards=self.shards),
            crawls=MemoryCrawls(self.world),
            snapshots=Snapshots(store=store, lines_max=self.lines_max),
            page_retention_s=RETENTION_S,
            **options,
        )

    async def rows(self, crawl: Crawl, **options: Any) -> list[dict[str, Any]]:
        """Create the feed of a run and return its rows sorted by URL."""
        feed = self.feed(**options)
        assert await feed.make(crawl)
        found = [dict(row) async for row in feed.rows(crawl)]
        return sorted(found, key=lambda row: str(row["url"]))

    async def changes(self, crawl: Crawl, **options: Any) -> dict[str, str]:
        """Return the change of each page in the feed of a run."""
        rows = await self.rows(crawl, **options)
        found = {row["url"].rpartition("/")[2]: row["change"] for row in rows}
        assert len(found) == len(rows)
        return found


def named(rows: Iterable[dict[str, Any]], name: str) -> dict[str, Any]:
    [found] = [row for row in rows if row["url"] == url_of(name)]
    return found


FIRST, SECOND, THIRD = run(0), run(2), run(4)


async def begun(**more: Any) -> Stand:
    """Return runs with their feeds; the first run found three linked pages."""
    stand = Stand(**more)
    await stand.add(
        FIRST, page(FIRST, "home"), page(FIRST, "a", by="home"), page(FIRST, "b", by="a")
    )
    return stand
