"""The exporter under any records, any timing, any number of runs: properties of the files."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict, dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from orbweaver.adapters.memory import ManualClock, Moment, World
from orbweaver.core.export import (
    Manifest,
    Part,
    Progress,
    decode_manifest,
    encode_manifest,
    encode_progress,
    resumed,
    row,
)
from orbweaver.core.outcome import Outcome, Reason
from orbweaver.core.record import COLUMNS, PageRecord
from orbweaver.exporter import Continue
from orbweaver.ports import Transient
from tests.unit.exporting import (
    DAY,
    NOON_MS,
    PLACE,
    exported,
    exporter_of,
    page,
    pages_of,
    rows_of,
    world_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orbweaver.adapters.memory import Gate

SEEDS = st.integers(0, 2**32)
TEXT = st.none() | st.text(st.characters(exclude_categories=[]))
COUNT = st.none() | st.integers(0, 2**53)
RECORDS = st.builds(
    PageRecord,
    crawl=st.text(),
    url=st.text(st.characters(exclude_categories=[])),
    outcome=st.sampled_from(Outcome),
    reason=st.sampled_from(Reason),
    fetched_at=st.integers(0, 253_402_300_799_999),
    depth=st.integers(0, 100),
    status=COUNT,
    bytes=COUNT,
    title=TEXT,
    description=TEXT,
    etag=TEXT,
    error=TEXT,
)
JSON = st.recursive(
    st.none() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.just("v"), inner),
)
PARTS = st.lists(
    st.builds(Part, name=st.text(), rows=st.integers(0), bytes=st.integers(0), sha256=st.text())
).map(tuple)


# --- pure --------------------------------------------------------------------------------------


@given(RECORDS)
def test_a_row_is_one_line_that_says_what_the_record_says(record: PageRecord) -> None:
    """Any record is one line of UTF-8 for any reader, and reads back as it was."""
    line = row(record)
    assert line.decode().splitlines(keepends=True) == [line.decode()]
    cells = json.loads(line)
    assert tuple(cells) == COLUMNS
    expected = asdict(record) | {"fetched_at": cells["fetched_at"]}
    assert cells == {name: _encodable(expected[name]) for name in COLUMNS}


def _encodable(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return "".join("\ufffd" if "\ud800" <= sign <= "\udfff" else sign for sign in value)


@given(st.text(), st.none() | st.text(), PARTS)
def test_a_manifest_reads_back(day: str, crawl: str | None, parts: tuple[Part, ...]) -> None:
    """The codec of the manifest round-trips, in ASCII."""
    manifest = Manifest(day=day, crawl=crawl, parts=parts)
    assert decode_manifest(encode_manifest(manifest)) == manifest
    assert encode_manifest(manifest).isascii()


@given(st.none() | st.text(), st.integers(0, 99), st.integers(1), st.none() | st.text(), PARTS)
def test_a_state_reads_back(
    crawl: str | None, shards: int, limit: int, after: str | None, parts: tuple[Part, ...]
) -> None:
    """The codec of a paused run's state round-trips, and goes on only with the same cut."""
    start = Progress(crawl=crawl, shards=shards, part_rows_max=limit)
    saved = Progress(
        crawl=crawl, shards=shards, part_rows_max=limit, shard=3, after=after, parts=parts
    )
    assert resumed(start, encode_progress(saved)) == saved
    other = Progress(crawl=crawl, shards=shards, part_rows_max=limit + 1)
    assert resumed(other, encode_progress(saved)) == other


@given(st.binary() | JSON.map(lambda value: json.dumps(value).encode()))
def test_garbage_is_neither_manifest_nor_state(body: bytes) -> None:
    """Reading anything at all raises nothing."""
    start = Progress(crawl=None, shards=4, part_rows_max=10)
    assert decode_manifest(body) is None
    assert resumed(start, body) == start


# --- timing ------------------------------------------------------------------------------------


def jitter(seed: int) -> Gate:
    """Make a gate that lets others go first, some number of turns."""
    random = Random(seed)

    async def gate(_name: str, _moment: Moment) -> None:
        for _ in range(random.randrange(8)):
            await asyncio.sleep(0)

    return gate


@settings(max_examples=60, deadline=None)
@given(
    SEEDS,
    st.sets(st.integers(0, 10_000), max_size=60),
    st.integers(1, 12),
    st.integers(1, 5),
)
def test_no_byte_depends_on_timing(
    seed: int, numbers: set[int], limit: int, read_ahead: int
) -> None:
    """Whatever shard answers when, and however far ahead is read, the files are the same."""

    async def run() -> None:
        calm = world_of(pages_of(numbers))
        await exported(calm, part_rows_max=limit)
        world = world_of(pages_of(numbers))
        await exported(world, gate=jitter(seed), part_rows_max=limit, read_ahead_rows=read_ahead)
        assert world.files == calm.files
        assert len(rows_of(world.files, PLACE)) == len(numbers)

    asyncio.run(run())


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.sets(st.integers(0, 10_000), max_size=60), st.integers(1, 12))
def test_no_byte_depends_on_where_runs_stop(seed: int, numbers: set[int], limit: int) -> None:
    """A day that is put off after any of its parts ends with the files of a single run."""

    async def run() -> None:
        single = world_of(pages_of(numbers))
        await exported(single, part_rows_max=limit)
        world, random, resume = world_of(pages_of(numbers)), Random(seed), False
        while True:
            late = random.random() < 0.5
            exporter = exporter_of(world, part_rows_max=limit, reserve_ms=late * 10_000)
            result = await exporter.export(DAY, deadline_ms=NOON_MS + 5_000, resume=resume)
            if not isinstance(result, Continue):
                break
            resume = True
        assert world.files == single.files

    asyncio.run(run())


# --- several runs at once ----------------------------------------------------------------------


class CrashError(Exception):
    """The process is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One delivery of a schedule: what it sees of the day, and what befalls it."""

    numbers: frozenset[int]
    late: bool
    crash_at: int | None


RUNS = st.builds(
    Run,
    numbers=st.frozensets(st.integers(0, 30), min_size=1),
    late=st.booleans(),
    crash_at=st.none() | st.integers(0, 80),
)


async def deliver(run: Run, files: dict[str, bytes], seed: int) -> None:
    """Invoke until a run is done, as the platform does: again after a failure or a crash."""
    event: Mapping[str, Any] = {}
    left = run.crash_at
    shuffle = jitter(seed)

    async def gate(name: str, moment: Moment) -> None:
        nonlocal left
        await shuffle(name, moment)
        if left is not None:
            left -= 1
            if left < 0:
                raise CrashError

    for _ in range(200):
        world = world_of((page(number) for number in run.numbers), files)
        deadline_ms = NOON_MS if run.late else None
        exporter = exporter_of(world, gate=gate, part_rows_max=3, clock=ManualClock(NOON_MS))
        try:
            result = await exporter.export(
                DAY, deadline_ms=deadline_ms, resume=event.get("resume", False)
            )
        except CrashError:
            left = None
        except Transient:
            pass
        else:
            if not isinstance(result, Continue):
                return
            event = result.event
    raise AssertionError("runs keep each other from ending")


@settings(max_examples=100, deadline=None)
@given(SEEDS, st.lists(RUNS, min_size=2, max_size=3))
def test_overlapping_runs_end_in_a_whole_export(seed: int, runs: list[Run]) -> None:
    """Runs at once that see different records, crash and are put off end with a whole export.

    Each row is there at most once, those that all of them saw exactly once; and whatever they
    left beside it, the next run leaves what a single one leaves.
    """
    files: dict[str, bytes] = {}

    async def run() -> None:
        await exported(world_of(pages_of(range(0, 30, 2)), files), part_rows_max=3)
        await asyncio.gather(*(deliver(run, files, seed + place) for place, run in enumerate(runs)))

    asyncio.run(run())
    rows = [int(cells["url"].rpartition("/")[2]) for cells in rows_of(files, PLACE)]
    assert len(rows) == len(set(rows))
    assert set(rows) >= frozenset.intersection(*(run.numbers for run in runs))
    assert set(rows) <= frozenset.union(*(run.numbers for run in runs))
    single, again = world_of(pages_of(range(25))), world_of(pages_of(range(25)), files)
    for world in (single, again):
        asyncio.run(_exported(world))
    assert again.files == single.files


async def _exported(world: World) -> None:
    await exported(world, part_rows_max=3)


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.integers(2, 3))
def test_a_schedule_that_fires_several_times_is_one_export(seed: int, times: int) -> None:
    """Deliveries at once over the same records leave byte for byte what one leaves."""
    single, world = world_of(pages_of(range(25))), World()

    async def run() -> None:
        await exported(single, part_rows_max=3)
        same = Run(numbers=frozenset(range(25)), late=False, crash_at=None)
        await asyncio.gather(*(deliver(same, world.files, seed + n) for n in range(times)))

    asyncio.run(run())
    assert world.files == single.files
