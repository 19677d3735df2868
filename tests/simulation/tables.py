"""Memory adapters with the stricter conditions of the simulation."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn, TypeVar, cast

from orbweaver.exporting.file_store import ChunkWorkspace
from orbweaver.exporting.formats import Block
from orbweaver.exporting.formats.hashed_file import FinishedFile
from orbweaver.model.columns import Table
from orbweaver.model.errors import Transient
from orbweaver.model.page_record import PageRecord
from orbweaver.politeness.host_schedule import FAILURES_MAX, ROUNDS_MAX, Host
from tests.memory import MemoryFiles, MemoryHosts, MemoryOrders, MemoryPages, World
from tests.memory.world import Gate
from tests.simulation.web import SimWeb

T = TypeVar("T")
# Few, so that an exporter run has a countable number of steps.
SHARDS = 4
QUERY_ROWS = 4

# Transactions of several items: a refusal is a conflict.
TRANSACTIONS = frozenset({"packs.commit", "packs.park", "crawls.seal"})
# Batches of many items: a refusal leaves the other items written.
BATCHES = frozenset({"frontier.claim", "frontier.release", "pages.store", "queue.send"})


def fault_of(effect: str, kind: str) -> str:
    """Return the name under which a fault at this effect is counted."""
    if effect.startswith("files."):
        return f"S3 {kind}"
    if kind == "throttle" and effect in TRANSACTIONS:
        return "transaction conflict"
    if kind == "throttle" and effect in BATCHES:
        return "partial batch"
    return kind


class SimHosts(MemoryHosts):
    """Host records that also report recorded silences, and failed records, to the simulated web."""

    def __init__(self, world: World, gate: Gate, web: SimWeb) -> None:
        super().__init__(world, gate)
        self._web = web

    async def read_host(self, host: str) -> Host:
        with self._refused(host):
            return await super().read_host(host)

    async def fail(self, host: str, now_ms: int, chance: float, *, probe: bool) -> Host:
        state = await super().fail(host, now_ms, chance, probe=probe)
        if state.failures == 1:
            self._web.noted(host)
        elif state.failures >= FAILURES_MAX + ROUNDS_MAX:
            self._web.take_for_dead(host)
        return state

    async def recover(self, host: str) -> None:
        with self._refused(host):
            await super().recover(host)
        self._web.noted(host)

    @contextmanager
    def _refused(self, host: str) -> Iterator[None]:
        try:
            yield
        except Transient:
            self._web.refused.add(host)
            raise


class SimPages(MemoryPages):
    """Page records, read a few rows at a time: other processes write between two reads."""

    def __init__(self, world: World, gate: Gate) -> None:
        super().__init__(world, gate, shards=SHARDS)

    async def read_shard(
        self, day: str, shard: int, *, after: str | None = None, crawl: str | None = None
    ) -> AsyncIterator[tuple[str, PageRecord]]:
        partition = f"{day}#{shard}"
        while True:
            rows = await self._do("pages.query", lambda: self._rows(partition, after, crawl))  # noqa: B023
            for item in rows:
                yield item
            if len(rows) < QUERY_ROWS:
                return
            after = rows[-1][0]

    def _rows(
        self, partition: str, after: str | None, crawl: str | None
    ) -> list[tuple[str, PageRecord]]:
        rows = sorted(
            (key, record)
            for (owner, key), record in self._world.pages.items()
            if owner == partition
            and (after is None or key > after)
            and (crawl is None or record.crawl == crawl)
        )
        return rows[:QUERY_ROWS]


class SimFiles(MemoryFiles):
    """A bucket that is checked after every visible change."""

    def __init__(self, world: World, gate: Gate, look: Callable[[], None]) -> None:
        super().__init__(world, gate)
        self._look = look

    async def put(self, key: str, body: bytes) -> None:
        await self._do("files.put", lambda: self._put(key, body))

    async def put_file(self, key: str, path: Path, sha256: str) -> None:
        del sha256
        body = path.read_bytes()  # noqa: ASYNC240 - it is in memory
        await self._do("files.put", lambda: self._put(key, body))

    async def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            await self._do("files.delete", lambda key=key: self._pop(key))  # type: ignore[misc]

    def _put(self, key: str, body: bytes) -> None:
        self._world.files[key] = body
        self._seen(key)

    def _pop(self, key: str) -> None:
        if self._world.files.pop(key, None) is not None:
            self._seen(key)

    def _seen(self, key: str) -> None:
        if not key.startswith("exports/_"):
            self._look()


class SimOrders(MemoryOrders):
    """Export queue as one process sees it: each order is visible as soon as it is sent."""

    def __init__(self, world: World, gate: Gate, arrive: Callable[[], None]) -> None:
        super().__init__(world, gate)
        self._arrive = arrive

    async def _do(self, effect: str, act: Callable[[], T]) -> T:
        def sent() -> T:
            result = act()
            self._arrive()
            return result

        return await super()._do(effect, sent)


def line_of(row: Mapping[str, Any]) -> bytes:
    return json.dumps(row, separators=(",", ":")).encode() + b"\n"


class SimWorkspace:
    """Workspace for a chunk's files, in memory."""

    @contextmanager
    def opened(self) -> Iterator[ChunkWorkspace]:
        yield SimChunkWorkspace()


class SimChunkWorkspace:
    """Writes files in memory."""

    def writer(self, name: str, table: Table) -> SimWriter:
        return SimWriter(name, table)

    def archive(self, name: str) -> NoReturn:
        raise AssertionError(f"{name}: nobody asked for bodies")


class SimWriter:
    """A file of lines."""

    def __init__(self, name: str, table: Table) -> None:
        self._name = name
        self._columns = [column.name for column in table.columns]
        self._lines: list[bytes] = []
        self.size = 0

    def add(self, cells: Sequence[Any]) -> None:
        self._lines.append(line_of(dict(zip(self._columns, cells, strict=True))))
        self.size += len(self._lines[-1])

    def add_block(self, block: Block) -> None:
        for cells in block.cells():
            self.add(cells)

    def close(self) -> FinishedFile:
        return made(f".{self._name}", len(self._lines), b"".join(self._lines))

    def discard(self) -> None:
        pass


def made(suffix: str, rows: int, body: bytes) -> FinishedFile:
    """Describe a file; its path leads to its bytes."""
    path = cast("Path", SimpleNamespace(read_bytes=lambda: body))
    digest = sha256(body).hexdigest()
    return FinishedFile(path=path, suffix=suffix, rows=rows, bytes=len(body), sha256=digest)
