"""Ports for receivers of exports, and for the delivery queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from orbweaver.delivery.plan import Remains
from orbweaver.exporting.manifest import File


class Courier(Protocol):
    """A receiver's folder or bucket. Paths are relative to it."""

    async def read(self, path: str, bytes_max: int) -> bytes | None:
        """Read a small file, or return None if it is missing. Raises TooLarge above `bytes_max`."""

    async def sizes(self, paths: Sequence[str]) -> Mapping[str, int]:
        """Return the lengths of existing files. Missing files are left out."""

    async def write(self, path: str, body: bytes) -> None:
        """Write a small file. Readers see the whole new file, the old one, or none."""

    async def bring(self, file: File, deadline_ms: int) -> bool:
        """Transfer a file of the export, as atomically as `write`. False if time ran out.

        Parts from earlier attempts are not transferred again.
        """

    async def remove(self, remains: Sequence[Remains]) -> None:
        """Remove files and their parts. Missing ones are ignored."""


class Deliveries(Protocol):
    """The delivery queue."""

    async def send(self, body: str) -> None: ...

    async def postpone(self, handle: str, seconds: int) -> None:
        """Make a received message visible again after `seconds`."""

    async def bury(self, body: str, reason: str) -> None:
        """Send a message that can never succeed to the dead-letter queue."""
