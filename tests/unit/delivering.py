"""Exports to deliver, and a deliverer over memory adapters."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from orbweaver.delivery.deliverer import Courier, Deliverer, ReceivedOrder, Receiver
from orbweaver.delivery.plan import LEDGERS
from orbweaver.exporting.formats import FORMATS
from orbweaver.exporting.manifest import (
    PREFIX,
    File,
    Manifest,
    Sums,
    decode_manifest,
    encode_manifest,
    path_of,
)
from tests.memory import (
    ManualClock,
    MemoryCourier,
    MemoryDeliveries,
    MemoryFiles,
    MemoryMetrics,
    World,
)
from tests.memory.world import Gate, open_gate

NOW_MS = 1_795_251_600_500
DAY = "2026-11-21"
MINUTE_MS = 60_000
SUFFIXES = {"jsonl": ".jsonl.gz", "csv": ".csv.gz", "parquet": ".parquet", "warc": ".warc.gz"}


def exported(
    files: dict[str, bytes],
    contents: Mapping[str, Sequence[bytes]],
    *,
    crawl: str | None = None,
    formats: Sequence[str] = ("jsonl",),
) -> Manifest:
    made = []
    for owner, bodies in contents.items():
        for chunk, body in enumerate(bodies):
            for name in formats:
                path = path_of("pages", name, DAY, owner, 0, chunk, SUFFIXES[name])
                told = body if name == "jsonl" else name.encode() + body
                files[PREFIX + path] = told
                made.append(
                    File(
                        path=path,
                        table="pages",
                        format=name,
                        crawl=owner,
                        rows=1,
                        bytes=len(told),
                        sha256=hashlib.sha256(told).hexdigest(),
                    )
                )
    sums = {one: Sums(name=one, rows={"pages": len(contents[one])}) for one in contents}
    manifest = Manifest(day=DAY, crawl=crawl, crawls=sums, files=tuple(made))
    files[PREFIX + manifest.path] = encode_manifest(manifest)
    return manifest


def order(**fields: Any) -> str:
    return json.dumps({"day": DAY, **fields})


def taken(body: str | None = None, *, receives: int = 1) -> ReceivedOrder:
    said = order() if body is None else body
    return ReceivedOrder(id="m1", body=said, handle="h1", receives=receives)


def lies(shelf: Mapping[str, bytes], manifest: Manifest, files: Mapping[str, bytes]) -> None:
    """Check that a receiver has exactly the files of a manifest."""
    there = decode_manifest(shelf[manifest.path])
    assert there == manifest
    ours = {path for path in shelf if not path.startswith((LEDGERS, "manifests/"))}
    assert ours == {file.path for file in manifest.files}
    for file in manifest.files:
        assert shelf[file.path] == files[PREFIX + file.path], file.path


class Stage:
    """A bucket, receivers' shelves, and a deliverer."""

    def __init__(
        self, *names: str, formats: Sequence[str] = FORMATS, gate: Gate = open_gate
    ) -> None:
        self.world = World()
        self.clock = ManualClock(NOW_MS)
        self.metrics = MemoryMetrics()
        self.shelves: dict[str, dict[str, bytes]] = {name: {} for name in names or ("one",)}
        self.gate = gate
        self.formats = tuple(formats)
        self.opened = 0

    def deliverer(self, gate: Gate | None = None) -> Deliverer:
        through = gate or self.gate
        return Deliverer(
            files=MemoryFiles(self.world, through),
            receivers={
                name: Receiver(formats=self.formats, courier=self._courier(shelf, through))
                for name, shelf in self.shelves.items()
            },
            queue=MemoryDeliveries(self.world, through),
            clock=self.clock,
            metrics=self.metrics,
        )

    def _courier(self, shelf: dict[str, bytes], gate: Gate) -> Any:
        @asynccontextmanager
        async def opened() -> AsyncIterator[Courier]:
            self.opened += 1
            yield MemoryCourier(self.world, shelf, clock=self.clock, gate=gate)

        return opened

    @property
    def shelf(self) -> dict[str, bytes]:
        (shelf,) = self.shelves.values()
        return shelf

    async def run(
        self, body: str | None = None, *, receives: int = 1, minutes: float = 15
    ) -> tuple[str, ...]:
        deadline_ms = self.clock.now_ms() + round(minutes * MINUTE_MS)
        return await self.deliverer().run(taken(body, receives=receives), deadline_ms)
