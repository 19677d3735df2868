"""The port of receivers: places for exports beside the bucket that they are made in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from orbweaver.delivery.plan import Remains
from orbweaver.exporting.manifest import File


class Courier(Protocol):
    """A receiver's folder or bucket; paths are below it."""

    async def read(self, path: str, bytes_max: int) -> bytes | None:
        """Read a small file, None if there is none; raises TooLarge for one that is larger."""

    async def sizes(self, paths: Sequence[str]) -> Mapping[str, int]:
        """Say how long these files are; those that are not there are left out."""

    async def write(self, path: str, body: bytes) -> None:
        """Write a small file whole; readers see all of it, what was there before, or nothing."""

    async def bring(self, file: File, deadline_ms: int) -> bool:
        """Bring a file of the export whole, as `write` does; False if there was no time for it.

        What is there of it from earlier attempts is not brought again.
        """

    async def remove(self, remains: Sequence[Remains]) -> None:
        """Remove files, and what was begun of them; those that are absent are passed over."""


class Deliveries(Protocol):
    """The queue of what is to be delivered."""

    async def send(self, body: str) -> None:
        """Put an order on the queue."""

    async def postpone(self, handle: str, seconds: int) -> None:
        """Have a message that was taken come back after so long."""

    async def bury(self, body: str, reason: str) -> None:
        """Put a message aside that can never succeed, with its reason."""
