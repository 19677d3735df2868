"""The rig for tests of the exporter: records of a day, an exporter over memory, careful readers."""

from __future__ import annotations

import gzip
import hashlib
import json
from random import Random
from typing import TYPE_CHECKING, Any

from orbweaver.adapters.memory import ManualClock, MemoryFiles, MemoryPages, Moment, World
from orbweaver.adapters.memory.world import Gate, open_gate
from orbweaver.core.export import Manifest, Place, decode_manifest
from orbweaver.core.outcome import Outcome, Reason
from orbweaver.core.record import PageRecord, page_key
from orbweaver.exporter import Exported, Exporter
from orbweaver.ports import Transient

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping


DAY = "2026-11-21"
DAY_MS = 1_795_219_200_000
NOON_MS = DAY_MS + 12 * 3_600_000
HOUR_MS = 3_600_000
SHARDS = 4


def page(number: int, *, crawl: str = "docs", at_ms: int = NOON_MS, **more: Any) -> PageRecord:
    """Make a record of the day."""
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
    """Make records, one for each number."""
    return [page(number, **more) for number in numbers]


def world_of(records: Iterable[PageRecord], files: dict[str, bytes] | None = None) -> World:
    """Make a world that holds these records, over files that may be another's."""
    world = World(files={} if files is None else files)
    world.pages.update({page_key(record, SHARDS): record for record in records})
    return world


def exporter_of(world: World, *, gate: Gate = open_gate, **options: Any) -> Exporter:
    """Make an exporter over a world; parts of 10 rows unless told."""
    options.setdefault("clock", ManualClock(NOON_MS))
    options.setdefault("part_rows_max", 10)
    options.setdefault("pages", MemoryPages(world, gate, shards=SHARDS))
    return Exporter(files=MemoryFiles(world, gate), random=Random(1), **options)


async def exported(world: World, **options: Any) -> Manifest:
    """Export the day at one go."""
    result = await exporter_of(world, **options).export(DAY)
    assert isinstance(result, Exported)
    return result.manifest


def manifest_of(files: Mapping[str, bytes], place: Place) -> Manifest | None:
    """Read the manifest as a reader does, if one stands."""
    body = files.get(place.manifest)
    if body is None:
        return None
    manifest = decode_manifest(body)
    assert manifest is not None
    return manifest


def rows_of(files: Mapping[str, bytes], place: Place) -> list[dict[str, Any]]:
    """Read a day as a careful reader does: by the manifest, each part checked against it."""
    manifest = manifest_of(files, place)
    assert manifest is not None
    rows: list[dict[str, Any]] = []
    for part in manifest.parts:
        body = files[place.folder + part.name]
        assert (len(body), hashlib.sha256(body).hexdigest()) == (part.bytes, part.sha256)
        lines = gzip.decompress(body).decode().splitlines()
        assert len(lines) == part.rows
        rows += [json.loads(line) for line in lines]
    return rows


PLACE = Place(prefix="exports/", day=DAY)


class Continuations:
    """Collects the events that ask for another invocation."""

    def __init__(self) -> None:
        self.events: list[Mapping[str, Any]] = []

    async def again(self, event: Mapping[str, Any]) -> None:
        self.events.append(event)


class Scripted:
    """A day's shards as lists, with faults: before row n of a shard, once for each mention."""

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


def failing(effect: str, times: int, error: type[Exception] = Transient) -> Gate:
    """Make a gate that fails an effect's first calls, in turn before it and after it."""
    left = times

    async def gate(name: str, moment: Moment) -> None:
        nonlocal left
        if name == effect and left and (moment is Moment.BEFORE) == (left % 2 == 0):
            left -= 1
            raise error("S3 answers 503")

    return gate


def late_after(puts: int, clock: ManualClock) -> Gate:
    """Make a gate that lets an hour pass with the nth file written."""
    count = 0

    async def gate(name: str, moment: Moment) -> None:
        nonlocal count
        if (name, moment) == ("files.put", Moment.AFTER):
            count += 1
            if count == puts:
                clock.at_ms += HOUR_MS

    return gate
