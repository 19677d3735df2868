"""Exports of any records with any timing and any number of orders."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict, replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orbweaver.exporting.manifest import (
    ExportEventError,
    File,
    FilePlace,
    Manifest,
    Sums,
    decode_manifest,
    encode_manifest,
    page_as_json,
    place_of,
)
from orbweaver.exporting.run_state import (
    ExportOrder,
    ExportScope,
    OrderKind,
    Unit,
    UnitProgress,
    decode_order,
    decode_progress,
    encode_order,
    encode_progress,
)
from orbweaver.model.columns import Column, Type
from orbweaver.model.errors import Transient
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import COLUMNS, PageRecord
from tests.memory import Moment, World
from tests.memory.world import Gate
from tests.simulation.tables import SimWorkspace
from tests.unit.export_stage import (
    DAY,
    NOON_MS,
    drained,
    exported,
    exporter_of,
    numbers_of,
    pages_of,
    store,
    world_of,
)

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
COUNTS = st.dictionaries(st.text(), st.integers(1))
FILES = st.lists(
    st.builds(
        File,
        path=st.text(),
        table=st.text(),
        format=st.text(),
        crawl=st.text(),
        rows=st.integers(0),
        bytes=st.integers(0),
        sha256=st.text(),
    )
).map(tuple)
COLUMN = st.builds(Column, name=st.text(), type=st.sampled_from(Type), many=st.booleans())
TABLES = st.dictionaries(st.text(), st.lists(COLUMN).map(tuple))
TICKETS = st.tuples(st.integers(-1, 99), st.text())
NAMES = st.text("abcdefghijklmnopqrstuvwxyz0123456789._-", min_size=1)


@given(RECORDS)
def test_page_as_json_has_all_columns_and_reads_back(record: PageRecord) -> None:
    cells = page_as_json(record)
    assert tuple(cells) == COLUMNS
    text = json.dumps(cells, ensure_ascii=False).encode().decode()
    assert json.loads(text) == cells
    expected = asdict(record) | {"fetched_at": cells["fetched_at"]}
    assert cells == {name: _encodable(expected[name]) for name in COLUMNS}


def _encodable(value: object) -> object:
    if not isinstance(value, str):
        return value
    return "".join("\ufffd" if "\ud800" <= sign <= "\udfff" else sign for sign in value)


@given(
    st.text(),
    st.none() | st.text(),
    st.dictionaries(st.text(), st.builds(Sums, name=st.text(), rows=COUNTS, outcomes=COUNTS)),
    FILES,
    TABLES,
)
def test_manifest_survives_encoding_in_ascii(
    day: str,
    crawl: str | None,
    crawls: dict[str, Sums],
    files: tuple[File, ...],
    columns: dict[str, tuple[Column, ...]],
) -> None:
    manifest = Manifest(day=day, crawl=crawl, crawls=crawls, files=files, columns=columns)
    assert decode_manifest(encode_manifest(manifest)) == manifest
    assert encode_manifest(manifest).isascii()


@pytest.mark.thorough
@given(
    st.builds(
        UnitProgress,
        ticket=TICKETS,
        done=st.booleans(),
        name=st.text(),
        shard=st.integers(0, 99),
        after=st.none() | st.text(),
        chunk=st.integers(0),
        rows=COUNTS,
        outcomes=COUNTS,
        files=FILES,
        columns=TABLES,
    )
)
def test_progress_survives_encoding(progress: UnitProgress) -> None:
    unit = Unit("a", 0, 3)
    assert decode_progress(encode_progress(progress, unit), unit) == replace(progress, groups=3)


@given(
    st.sampled_from(OrderKind),
    st.none() | st.text(),
    st.text(),
    st.builds(Unit, crawl=st.text(), group=st.integers(0, 99), groups=st.integers(0, 99)),
    TICKETS,
)
def test_order_survives_encoding_in_ascii(
    kind: OrderKind, crawl: str | None, run: str, unit: Unit, ticket: tuple[int, str]
) -> None:
    scope = ExportScope(day=DAY, crawl=crawl)
    order = ExportOrder(kind=kind, scope=scope, run=run)
    if kind is OrderKind.UNIT:
        order = ExportOrder(kind=kind, scope=scope, run=run, unit=unit, ticket=ticket)
    assert decode_order(encode_order(order)) == order
    assert encode_order(order).isascii()


@given(st.binary() | JSON.map(lambda value: json.dumps(value).encode()))
def test_garbage_decodes_to_empty_or_known_error(body: bytes) -> None:
    assert decode_manifest(body) is None
    assert decode_progress(body, Unit("a")) == UnitProgress()
    try:
        decode_order(body.decode(errors="replace"))
    except ExportEventError:
        return
    raise AssertionError(body)


@given(NAMES, NAMES, st.integers(0, 200), st.integers(0, 10**6))
def test_path_survives_parsing(table: str, crawl: str, group: int, chunk: int) -> None:
    place = FilePlace(
        table=table, format="csv", day=DAY, crawl=crawl, group=group, chunk=chunk, suffix=".csv"
    )
    assert place_of(place.path) == place


OPTIONS: dict[str, Any] = {"workspace": SimWorkspace(), "part_rows_max": 3, "cuts_crawls": True}


def jitter(seed: int, faults: float = 0.0) -> Gate:
    """Return a gate that yields several times and fails now and then."""
    random = Random(seed)

    async def gate(name: str, _moment: Moment) -> None:
        for _ in range(random.randrange(8)):
            await asyncio.sleep(0)
        if random.random() < faults:
            raise Transient(name)

    return gate


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.sets(st.integers(0, 10_000), max_size=60), st.integers(1, 12), st.integers(1, 5))
def test_files_do_not_depend_on_timing(
    seed: int, numbers: set[int], limit: int, read_ahead: int
) -> None:
    async def run() -> None:
        options = OPTIONS | {"part_rows_max": limit}
        calm, world = world_of(pages_of(numbers)), world_of(pages_of(numbers))
        await exported(calm, **options)
        await exported(world, gate=jitter(seed), read_ahead_rows=read_ahead, **options)
        assert world.files == calm.files
        assert sorted(numbers_of(world.files)) == sorted(numbers)

    asyncio.run(run())


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.sets(st.integers(0, 10_000), max_size=60))
def test_files_do_not_depend_on_interrupted_turns(seed: int, numbers: set[int]) -> None:
    async def run() -> None:
        single, world = world_of(pages_of(numbers)), world_of(pages_of(numbers))
        await exported(single, **OPTIONS)
        random, exporter = Random(seed), exporter_of(world, **OPTIONS)
        await exporter.begin({"day": DAY}, "one")
        while world.ordered:
            late = random.random() < 0.5
            await exporter.handle(world.ordered.pop(0).body, NOON_MS if late else None)
        assert world.files == single.files

    asyncio.run(run())


async def _serve(world: World, seed: int, done: asyncio.Event) -> None:
    """Process orders in any order, some of them twice."""
    random = Random(seed)
    while not done.is_set():
        if not world.ordered:
            await asyncio.sleep(0)
            continue
        mail = world.ordered.pop(random.randrange(len(world.ordered)))
        if random.random() < 0.2:
            world.ordered.append(mail)
        late = random.random() < 0.3
        exporter = exporter_of(
            world, gate=jitter(random.getrandbits(32), 0.01), seed=random.getrandbits(32), **OPTIONS
        )
        try:
            await exporter.handle(mail.body, NOON_MS if late else None)
        except Transient:
            world.ordered.append(mail)


@pytest.mark.thorough
@settings(max_examples=40, deadline=None)
@given(SEEDS, st.integers(1, 4), st.lists(st.sets(st.integers(0, 40), max_size=9), max_size=3))
def test_concurrent_workers_make_one_complete_export(
    seed: int, workers: int, later: list[set[int]]
) -> None:
    async def run() -> None:
        world, done = world_of(pages_of(range(0, 40, 3))), asyncio.Event()
        tasks = [asyncio.create_task(_serve(world, seed + n, done)) for n in range(workers)]
        await exporter_of(world, **OPTIONS).begin({"day": DAY}, "first")
        for place, numbers in enumerate(later):
            for _ in range(Random(seed + place).randrange(300)):
                await asyncio.sleep(0)
            store(world, pages_of(numbers))
            await exporter_of(world, seed=place, **OPTIONS).begin({"day": DAY}, f"later {place}")
        quiet = 0
        while quiet < 2_000:
            quiet = 0 if world.ordered or _at_work(world) else quiet + 1
            await asyncio.sleep(0)
        done.set()
        await asyncio.gather(*tasks)
        await drained(world, exporter_of(world, **OPTIONS))
        expected = {int(one.url.rpartition("/")[2]) for one in world.pages.values()}
        assert sorted(numbers_of(world.files)) == sorted(expected)
        assert not [key for key in world.files if "_work" in key]
        clean = world_of(world.pages.values())
        await exported(clean, **OPTIONS)
        assert world.files == clean.files

    asyncio.run(run())


def _at_work(world: World) -> bool:
    return any("/_work/" in key for key in world.files)
