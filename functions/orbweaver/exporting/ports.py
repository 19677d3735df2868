"""Define interfaces of exporters: the queue, the event bus, and the catalogue of tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from orbweaver.exporting.manifest import Manifest
from orbweaver.model.columns import Table


class ExportEvents(Protocol):
    """The event bus, as exporters use it."""

    async def exported(self, manifest: Manifest, key: str) -> None:
        """Announce an export by the key of its manifest. A repetition has the same event id."""


class Catalogue(Protocol):
    """Catalogue of tables for queries."""

    async def register(self, table: Table) -> None:
        """Register a table, or add its new columns. Another table with this name is not changed."""

    async def remove(self, folder: str) -> int:
        """Remove the tables of exports in a folder. Returns their number."""


class Orders(Protocol):
    """The queue of messages to exporters."""

    async def send(self, bodies: Sequence[tuple[str, str]]) -> None:
        """Send messages, each with its group (a crawl or a day). Returns when all are accepted."""
