"""What reads answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from orbweaver.worker.page_reading import Job, Read


class Reader(Protocol):
    """What makes readings of answers, within what a page may cost."""

    async def read(self, job: Job, host: str, until_ms: int) -> Read:
        """Read an answer of a host, begun by then; never raises for what is in it.

        Raises Transient where it cannot be read for reasons of ours.
        """
