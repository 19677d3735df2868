"""Define interfaces of exporters: the queue, the event bus, and the catalogue of tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from orbweaver.exporting.manifest import Manifest
from orbweaver.model.columns import Table


class ExportEvents(Protocol):
    """The event bus, as exporters use it."""

    async def exported(self, manifest: Manifest, key: str) -> None:
        """Announce an export. `key` is the key of its manifest.

        The event's id follows from the manifest, so a repetition has the same id.
        """


class Catalogue(Protocol):
    """Catalogue of tables for queries."""

    async def register(self, table: Table) -> None:
        """Register a table of exports, or update it.

        Existing columns stay. A name that belongs to another table is not changed.
        """

    async def remove(self, folder: str) -> int:
        """Remove the tables of exports in a folder. Returns their number."""


class Orders(Protocol):
    """The queue of messages to exporters."""

    async def send(self, bodies: Sequence[tuple[str, str]]) -> None:
        """Send messages, each with its group (a crawl or a day). Returns when all are accepted."""
