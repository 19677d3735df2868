"""Announced end of a worker: requests are cancelled, and their URLs are requeued.

After SIGTERM, a process has little time left. It cancels requests and waits for slots, but first
records backoffs that hosts demanded with 429 or 503. It journals and commits the responses that it
has. The other URLs return at once, in new messages or in the same pack sent again. So their
messages do not wait for the visibility timeout, and do not count as received by a worker that died:
no strike, and no step towards the dead-letter queue.

A process without time pressure *rests* first: it finishes requests in progress and starts no
others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


class Ending:
    """Cancels work when the worker's end is announced."""

    def __init__(self) -> None:
        self.told = False
        # True if no new requests may start.
        self.resting = False
        # Ordered by start: a set of tasks has another order in each run.
        self._open: dict[asyncio.Task[None], None] = {}
        self._cut: set[asyncio.Task[None]] = set()

    def tell(self) -> None:
        """Announce the end. Repeated calls have no effect."""
        self.told = self.resting = True
        for task in self._open:
            if task not in self._cut:
                self._cut.add(task)
                task.cancel()

    async def cut_short(self, work: Coroutine[Any, Any, None]) -> bool:
        """Run `work` until the end is announced.

        Return True if it was cancelled or not started.
        """
        if self.resting:
            work.close()
            return True
        task = asyncio.ensure_future(work)
        self._open[task] = None
        try:
            await task
        except asyncio.CancelledError:
            own = asyncio.current_task()
            if task not in self._cut or (own is not None and own.cancelling()):
                raise
            return True
        finally:
            self._open.pop(task, None)
            self._cut.discard(task)
        return False


async def to_its_end(work: Coroutine[Any, Any, None]) -> None:
    """Run short work to completion, even if the calling task is cancelled meanwhile."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise
