"""Define interfaces of exporters: the queue, the event bus, and the catalogue of tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from orbweaver.exporting.manifest import Manifest
from orbweaver.model.columns import Table


class ExportEvents(Protocol):
    """The event bus, as exporters use it."""

    async def exported(self, manifest: Manifest, key: str) -> None:
        """Announce an export. `key` is the path of its manifest in the bucket.

        A repeated call sends the same event id.
        """


class Catalogue(Protocol):
    """Catalogue of tables for queries."""

    async def register(self, table: Table) -> None:
        """Register a table, or add its new columns to the registered one.

        A table with this name that Orbweaver did not register is not changed.
        """

    async def remove(self, folder: str) -> int:
        """Remove the tables of exports in a folder. Returns their number."""


class Orders(Protocol):
    """The queue of messages to exporters."""

    async def send(self, bodies: Sequence[tuple[str, str]]) -> None:
        """Send messages, each as its body and its group (a crawl or a day).

        Returns when the queue has accepted all messages.
        """
