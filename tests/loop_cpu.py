"""CPU time of event-loop callbacks, independent of other load."""

from __future__ import annotations

import asyncio.events
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock


@dataclass(slots=True)
class LoopCpu:
    """CPU seconds of the longest callback, with its name."""

    longest_s: float = 0.0
    name: str = ""

    def note(self, spent_s: float, handle: asyncio.Handle) -> None:
        if spent_s > self.longest_s:
            self.longest_s, self.name = spent_s, _name_of(handle)


@contextmanager
def measured() -> Iterator[LoopCpu]:
    """Measure the callbacks of all loops in the calling thread during a block."""
    run: Any = asyncio.events.Handle._run
    found, thread = LoopCpu(), threading.get_ident()

    def timed(handle: asyncio.Handle) -> None:
        began_s = time.thread_time()
        try:
            run(handle)
        finally:
            if threading.get_ident() == thread:
                found.note(time.thread_time() - began_s, handle)

    with mock.patch.object(asyncio.events.Handle, "_run", timed):
        yield found


def _name_of(handle: asyncio.Handle) -> str:
    callback = getattr(handle, "_callback", None)
    task = getattr(callback, "__self__", None)
    coroutine = task.get_coro() if isinstance(task, asyncio.Task) else None
    return getattr(coroutine, "__qualname__", None) or repr(callback)
