"""Ports of exporters: orders among themselves, the bus, and tables for queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from orbweaver.exporting.manifest import Manifest
from orbweaver.model.columns import Table


class ExportEvents(Protocol):
    """The event bus, as exporters need it."""

    async def exported(self, manifest: Manifest, key: str) -> None:
        """Announce that an export stands under the key of its manifest.

        The event's id follows from what the manifest says: a repeat has the same.
        """


class Catalogue(Protocol):
    """Which tables can be queried."""

    async def register(self, table: Table) -> None:
        """Make a table of exports known, or bring it up to date.

        Columns that it had before stay; a name that is another one's is left to that one.
        """

    async def remove(self, folder: str) -> int:
        """Remove the tables of exports that lie in a folder; how many there were."""


class Orders(Protocol):
    """The queue of what exporters are to do."""

    async def send(self, bodies: Sequence[tuple[str, str]]) -> None:
        """Send messages, each with whose work it is; returns once all of them are accepted."""
