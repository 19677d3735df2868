"""An exporter that is alone: what it orders, it does."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from orbweaver.exporting.exporter import TOKEN_BYTES, Exporter
from orbweaver.exporting.manifest import Manifest, check_day, days_between, decode_manifest
from orbweaver.exporting.run_state import ExportScope


class WaitingExport:
    """The queue of an exporter that is alone."""

    def __init__(self) -> None:
        """Begin with nothing to do."""
        self.bodies: deque[str] = deque()

    async def send(self, bodies: Sequence[tuple[str, str]]) -> None:
        """See the port `Orders`."""
        self.bodies.extend(body for body, _ in bodies)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alone:
    """An exporter, and what it has ordered of itself."""

    exporter: Exporter
    waiting: WaitingExport

    async def export(self, day: str, *, crawl: str | None = None) -> Manifest:
        """Export a day, or one crawl's records of it, here and now."""
        exporter, scope = self.exporter, ExportScope(day=check_day(day), crawl=crawl)
        chance = exporter.store.random.getrandbits(8 * TOKEN_BYTES)
        self.waiting.bodies.clear()
        await exporter.planner.begin(scope, f"{chance:0{2 * TOKEN_BYTES}x}")
        while self.waiting.bodies:
            manifest = await exporter.handle(self.waiting.bodies.popleft())
            if manifest is not None:
                return manifest
        # Another process exports the same into the same folder, and was later.
        body = await exporter.store.get(scope.manifest)
        manifest = None if body is None else decode_manifest(body)
        return await self.export(day, crawl=crawl) if manifest is None else manifest

    async def export_between(
        self, first_ms: int, last_ms: int, *, crawl: str
    ) -> tuple[Manifest, ...]:
        """Export every day that a time span touches, as a crawl's does."""
        days = days_between(first_ms, last_ms)
        return tuple([await self.export(day, crawl=crawl) for day in days])
