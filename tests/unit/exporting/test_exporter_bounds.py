"""Memory of the exporter: bounded by its read-ahead, not by the size of the day."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import AsyncIterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from random import Random

import pytest

from orbweaver.adapters.local.folder import FolderFiles
from orbweaver.exporting.exporter import ExporterParts, InProcessExporter, WaitingExport
from orbweaver.exporting.file_store import FolderWorkspace
from orbweaver.model.page_record import PageRecord
from tests.memory import ManualClock, MemoryCrawls, World
from tests.unit.export_stage import CRAWL, DAY, NOON_MS, page

MIB = 1024 * 1024
# 50 rows of 1 KB are read ahead from four shards; rows of a chunk are in files. Measured: 1 MiB.
PEAK_BYTES_MAX = 4 * MIB


class Synthetic:
    """A day of generated records with distinct keys and only a few distinct contents."""

    def __init__(self, rows: int, shards: int) -> None:
        random = Random(1)
        noise = [f"{random.getrandbits(512):0128x}" for _ in range(500)]
        self._pages = [page(n, title=text, description=text * 3) for n, text in enumerate(noise)]
        self._rows = rows
        self._shards = shards

    @property
    def shards(self) -> int:
        return self._shards

    async def store(self, records: object) -> None:
        raise AssertionError("an exporter stores nothing")

    async def crawls_of(self, day: str) -> tuple[str, ...]:
        return (CRAWL,)

    async def count(self, day: str, shard: int, crawl: str, rows_max: int) -> int:
        return self._rows // self._shards

    async def read_shard(
        self, day: str, shard: int, *, after: str | None = None, crawl: str | None = None
    ) -> AsyncIterator[tuple[str, PageRecord]]:
        for number in range(shard, self._rows, self._shards):
            yield f"{CRAWL}#{number:032x}", self._pages[number % len(self._pages)]


async def _peak_bytes(rows: int, part_rows_max: int, root: Path) -> int:
    (root / str(rows)).mkdir()
    waiting = WaitingExport()
    exporter = ExporterParts(
        pages=Synthetic(rows, 4),
        crawls=MemoryCrawls(World()),
        files=FolderFiles(root / str(rows)),
        orders=waiting,
        clock=ManualClock(NOON_MS),
        random=Random(1),
        formats=("csv", "jsonl"),
        part_rows_max=part_rows_max,
        part_bytes_max=100 * MIB,
        workspace=FolderWorkspace(folder=root),
        read_ahead_rows=part_rows_max // 20,
    ).exporter()
    tracemalloc.start()
    try:
        manifest = await InProcessExporter(exporter=exporter, waiting=waiting).export(DAY)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert manifest.rows == {"pages": rows}
    return peak


def _measure(rows: int, part_rows_max: int, root: Path) -> int:
    return asyncio.run(_peak_bytes(rows, part_rows_max, root))


@pytest.mark.thorough
def test_memory_does_not_grow_with_day(tmp_path: Path) -> None:
    """Memory is measured in a separate process, because threads of other tests would count too."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as alone:
        small = alone.submit(_measure, 5_000, 1_000, tmp_path).result()
        large = alone.submit(_measure, 20_000, 1_000, tmp_path).result()
    print(f"peak KiB: 5,000 rows {small // 1024}, 20,000 rows {large // 1024}")
    assert small <= PEAK_BYTES_MAX
    # The garbage collector runs now and then: a few compressors of 256 KB each remain.
    assert large <= small + 2 * MIB
