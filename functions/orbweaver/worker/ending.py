"""The announced end of a worker: requests are cut short, and their URLs are requeued.

A process that is told to end (SIGTERM) has a moment left. Requests and waits for slots are given
up. What a host asked for with 429 or 503 is noted first. What was answered is journaled and
committed. The other URLs return at once, in messages of their own or in the same pack sent again.
So a message that was in work does not wait for its visibility. It does not count as received by a
worker that died: no strike, and no step towards the dead-letter queue.

A process that need not hurry rests first: what is being asked for is finished, nothing more is
begun.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


class Ending:
    """The announced end of a worker, and the work to be cut short then."""

    def __init__(self) -> None:
        self.told = False
        # No request is begun any more.
        self.resting = False
        # In the order in which they began: a set of tasks has another one in each run.
        self._open: dict[asyncio.Task[None], None] = {}
        self._cut: set[asyncio.Task[None]] = set()

    def tell(self) -> None:
        """Announce the end; a second time changes nothing."""
        self.told = self.resting = True
        for task in self._open:
            if task not in self._cut:
                self._cut.add(task)
                task.cancel()

    async def cut_short(self, work: Coroutine[Any, Any, None]) -> bool:
        """Do some work, unless it rests, until an end is announced; whether it is left undone."""
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
    """Do some short work to its end, also where its task is cancelled meanwhile."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise
