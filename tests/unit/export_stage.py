"""Helpers for tests of the exporter: records of a day, exporters in memory, strict readers."""

from __future__ import annotations

import gzip
import json
from hashlib import sha256
from random import Random
from typing import TYPE_CHECKING, Any

from orbweaver.exporting.exporter import ExporterParts
from orbweaver.exporting.manifest import Manifest, decode_manifest
from orbweaver.exporting.run_state import ExportScope
from orbweaver.model.errors import Transient
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import PageRecord, page_key
from tests.memory import (
    ManualClock,
    MemoryCrawls,
    MemoryEvents,
    MemoryFiles,
    MemoryOrders,
    MemoryPages,
    Moment,
    World,
)
from tests.memory.world import Gate, open_gate

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping

    from orbweaver.exporting.exporter import Exporter

DAY = "2026-11-21"
DAY_MS = 1_795_219_200_000
NOON_MS = DAY_MS + 12 * 3_600_000
HOUR_MS = 3_600_000
SHARDS = 4
SCOPE = ExportScope(day=DAY)
CRAWL = "docs-20261121-120000"
MANIFEST = f"exports/manifests/dt={DAY}.json"


def page(number: int, *, crawl: str = CRAWL, at_ms: int = NOON_MS, **more: Any) -> PageRecord:
    return PageRecord(
        crawl=crawl,
        url=f"https://example.org/{number}",
        outcome=Outcome.FETCHED,
        reason=Reason.OK,
        fetched_at=at_ms,
        depth=1,
        **more,
    )


def pages_of(numbers: Iterable[int], **more: Any) -> list[PageRecord]:
    return [page(number, **more) for number in numbers]


def world_of(records: Iterable[PageRecord], files: dict[str, bytes] | None = None) -> World:
    world = World(files={} if files is None else files)
    store(world, records)
    return world


def store(world: World, records: Iterable[PageRecord]) -> None:
    world.pages.update({page_key(record, SHARDS): record for record in records})


def exporter_of(world: World, *, gate: Gate = open_gate, seed: int = 1, **options: Any) -> Exporter:
    """Return an exporter over a world: chunks of 10 pages as JSONL, without interruptions."""
    given = {
        "pages": MemoryPages(world, gate, shards=SHARDS),
        "crawls": MemoryCrawls(world, gate),
        "files": MemoryFiles(world, gate),
        "orders": MemoryOrders(world, gate),
        "events": MemoryEvents(world, gate),
        "clock": ManualClock(NOON_MS),
        "random": Random(seed),
        "formats": ("jsonl",),
        "part_rows_max": 10,
        "part_bytes_max": 1_000_000,
        "cuts_crawls": False,
    }
    return ExporterParts(**{**given, **options}).exporter()


async def drained(
    world: World, exporter: Exporter, deadline_ms: int | None = None, orders_max: int = 500
) -> int:
    """Process orders one after the other and return their number."""
    count = 0
    while world.ordered:
        count += 1
        assert count <= orders_max, "orders beget orders"
        await exporter.handle(world.ordered.pop(0).body, deadline_ms)
    return count


async def exported(world: World, identity: str = "one", **options: Any) -> Manifest:
    """Export the day at once; another identity is another request."""
    exporter = exporter_of(world, **options)
    await exporter.begin({"day": DAY}, identity)
    await drained(world, exporter)
    manifest = manifest_of(world.files)
    assert manifest is not None
    return manifest


def manifest_of(files: Mapping[str, bytes], path: str = MANIFEST) -> Manifest | None:
    body = files.get(path)
    if body is None:
        return None
    manifest = decode_manifest(body)
    assert manifest is not None
    return manifest


def rows_of(
    files: Mapping[str, bytes], table: str = "pages", path: str = MANIFEST
) -> list[dict[str, Any]]:
    """Return the rows of a table, after checking every file against the manifest."""
    manifest = manifest_of(files, path)
    assert manifest is not None
    prefix = path.partition("manifests/")[0]
    rows: list[dict[str, Any]] = []
    for file in manifest.files:
        body = files[prefix + file.path]
        assert (len(body), sha256(body).hexdigest()) == (file.bytes, file.sha256)
        if (file.table, file.format) == (table, "jsonl"):
            text = gzip.decompress(body) if file.path.endswith(".gz") else body
            lines = text.decode().splitlines()
            assert len(lines) == file.rows
            rows += [json.loads(line) for line in lines]
    return rows


def numbers_of(files: Mapping[str, bytes]) -> list[int]:
    return [int(row["url"].rpartition("/")[2]) for row in rows_of(files)]


class Scripted:
    """Shards of a day as lists. Entries of `faults` make reading fail before row n of a shard."""

    def __init__(
        self, shards: list[list[tuple[str, PageRecord]]], faults: list[tuple[int, int]]
    ) -> None:
        self._shards = shards
        self._faults = list(faults)
        self.reads: list[tuple[int, str | None]] = []

    @property
    def shards(self) -> int:
        return len(self._shards)

    async def store(self, records: object) -> None:
        raise AssertionError("an exporter stores nothing")

    async def crawls_of(self, day: str) -> tuple[str, ...]:
        return (CRAWL,)

    async def count(self, day: str, shard: int, crawl: str, rows_max: int) -> int:
        return min(len(self._shards[shard]), rows_max)

    async def read_shard(
        self, day: str, shard: int, *, after: str | None = None, crawl: str | None = None
    ) -> AsyncIterator[tuple[str, PageRecord]]:
        self.reads.append((shard, after))
        for place, (key, record) in enumerate(self._shards[shard]):
            if after is not None and key <= after:
                continue
            if (shard, place) in self._faults:
                self._faults.remove((shard, place))
                raise Transient("throttled")
            yield key, record


def three_shards() -> list[list[tuple[str, PageRecord]]]:
    return [
        [(f"{CRAWL}#{number:03d}", page(number)) for number in range(start, start + 15)]
        for start in (0, 15, 30)
    ]


def failing(effect: str, times: int, error: type[Exception] = Transient) -> Gate:
    """Return a gate that fails the first calls of an effect, alternately before and after it."""
    left = times

    async def gate(name: str, moment: Moment) -> None:
        nonlocal left
        if name == effect and left and (moment is Moment.BEFORE) == (left % 2 == 0):
            left -= 1
            raise error("S3 answers 503")

    return gate
