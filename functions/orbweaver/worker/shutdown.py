"""Stop a worker early: cancel its requests and requeue their URLs.

So after SIGTERM, no message waits for its visibility timeout or counts as a failed delivery.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


class ShutdownSignal:
    """Cancels work in progress when the end of the worker is announced."""

    def __init__(self) -> None:
        self.is_announced = False
        # True if no new requests may start. If only this is set, requests in progress finish.
        self.resting = False
        # Tasks in the order of their start. A set would have another order in each run.
        self._open: dict[asyncio.Task[None], None] = {}
        self._cut: set[asyncio.Task[None]] = set()

    def announce(self) -> None:
        """Announce the end of the worker. Repeated calls have no effect."""
        self.is_announced = self.resting = True
        for task in self._open:
            if task not in self._cut:
                self._cut.add(task)
                task.cancel()

    async def run_until_end(self, work: Coroutine[Any, Any, None]) -> bool:
        """Run `work` until the end is announced. Return True if it was cancelled or not started."""
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
