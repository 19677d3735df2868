"""Interfaces of receivers and of the delivery queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from orbweaver.delivery.plan import FileRemoval
from orbweaver.exporting.manifest import File


class Courier(Protocol):
    """A connection to a receiver. Paths are relative to its folder or bucket."""

    async def read(self, path: str, bytes_max: int) -> bytes | None:
        """Read a small file, or return None if it is missing. Raises TooLarge above `bytes_max`."""

    async def sizes(self, paths: Sequence[str]) -> Mapping[str, int]:
        """Return the lengths in bytes of the files that exist."""

    async def write(self, path: str, body: bytes) -> None:
        """Write a small file. Readers see the whole new file, the old one, or none."""

    async def transfer(self, file: File, deadline_ms: int) -> bool:
        """Send a file, or continue a partial upload of it. Return False if time ran out.

        As with `write`, readers see the whole new file, the old one, or none.
        """

    async def remove(self, remains: Sequence[FileRemoval]) -> None:
        """Remove files and their partial uploads. Missing files are ignored."""


class Deliveries(Protocol):
    """The queue of delivery orders."""

    async def send(self, body: str) -> None: ...

    async def postpone(self, handle: str, seconds: int) -> None:
        """Hide a received message for `seconds`, before it is received again."""

    async def dead_letter(self, body: str, reason: str) -> None:
        """Send a message that can never succeed to the dead-letter queue."""
