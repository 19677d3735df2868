"""The exporter's memory: bounded by its read-ahead and its parts, not by what the day holds."""

from __future__ import annotations

import tracemalloc
from random import Random
from typing import TYPE_CHECKING

import pytest

from orbweaver.adapters.memory import ManualClock
from orbweaver.exporter import Exported, Exporter
from tests.unit.exporting import DAY, NOON_MS, page

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from orbweaver.core.record import PageRecord

MIB = 1024 * 1024
# 4 shards x 500 rows of 1 KB read ahead, and a part of 10,000 rows in pieces and as a file.
PEAK_BYTES_MAX = 8 * MIB


class Synthetic:
    """A day of made-up records under keys of their own, of which there are only a few in fact."""

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

    async def read_shard(
        self, day: str, shard: int, *, after: str | None = None, crawl: str | None = None
    ) -> AsyncIterator[tuple[str, PageRecord]]:
        for number in range(shard, self._rows, self._shards):
            yield f"docs#{number:032x}", self._pages[number % len(self._pages)]


class Folder:
    """Files below a folder: what is written is not kept in memory."""

    def __init__(self, root: Path) -> None:
        self._root = root

    async def put(self, key: str, body: bytes) -> None:
        path = self._root / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)

    async def get(self, key: str, bytes_max: int | None = None) -> bytes | None:
        path = self._root / key
        return path.read_bytes() if path.exists() else None

    async def list(self, prefix: str) -> tuple[str, ...]:
        return tuple(
            sorted(
                path.relative_to(self._root).as_posix() for path in (self._root / prefix).rglob("*")
            )
        )

    async def cut(self, key: str, offset: int, length: int) -> bytes | None:
        raise NotImplementedError

    async def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            (self._root / key).unlink(missing_ok=True)


async def _peak_bytes(rows: int, part_rows_max: int, root: Path) -> int:
    """Export a day of so many rows, and tell how much memory it took at most."""
    pages = Synthetic(rows, 4)
    exporter = Exporter(
        pages=pages,
        files=Folder(root / str(rows)),
        clock=ManualClock(NOON_MS),
        random=Random(1),
        part_rows_max=part_rows_max,
        read_ahead_rows=part_rows_max // 20,
    )
    tracemalloc.start()
    try:
        result = await exporter.export(DAY)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(result, Exported)
    assert result.manifest.rows == rows
    return peak


@pytest.mark.parametrize(
    ("rows", "times", "part_rows_max", "peak_bytes_max"),
    [
        (5_000, 4, 1_000, 2 * MIB),
        pytest.param(25_000, 2, 10_000, PEAK_BYTES_MAX, marks=[pytest.mark.slow]),
    ],
)
@pytest.mark.timeout(600)
async def test_memory_does_not_grow_with_the_day(
    rows: int, times: int, part_rows_max: int, peak_bytes_max: int, tmp_path: Path
) -> None:
    """Several times the rows take no more memory, and both stay below the stated bound."""
    small = await _peak_bytes(rows, part_rows_max, tmp_path)
    large = await _peak_bytes(times * rows, part_rows_max, tmp_path)
    print(f"peak KiB: {rows} rows {small // 1024}, {times * rows} rows {large // 1024}")
    assert small <= peak_bytes_max
    assert large <= small * 1.1
