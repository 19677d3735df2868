"""Parse pages within the limits of a crawl's workers, costly pages in a child process."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from orbweaver.adapters.local.clock import SystemClock
from orbweaver.adapters.local.reader import BudgetReader
from orbweaver.extraction.work_budget import HeavyError
from orbweaver.worker.page_reading import Read, ReadingJob, is_light, light_stages

WAIT_MS = 60_000


def read_within_budget(job: ReadingJob) -> Read:
    """Parse a page, in the child process if costly. Raises Transient if it cannot be started."""
    if is_light(job):
        try:
            *_, found = (reading for reading in light_stages(job) if reading is not None)
        except HeavyError:
            pass
        else:
            return found
    return _child_of(os.getpid()).read(job)


class _ReaderChild:
    """A child process that parses one page at a time for all threads of this program."""

    def __init__(self) -> None:
        self._clock = SystemClock()
        self._reader = BudgetReader(clock=self._clock, in_place=lambda _: False)
        self._lock = threading.Lock()
        self._loop = asyncio.new_event_loop()
        self._owner = os.getpid()
        atexit.register(self._close)

    def read(self, job: ReadingJob) -> Read:
        reading = self._reader.read(job, "", self._clock.now_ms() + WAIT_MS)
        with self._lock:
            if not _runs_loop():
                return self._loop.run_until_complete(reading)
            with ThreadPoolExecutor(1) as thread:
                return thread.submit(self._loop.run_until_complete, reading).result()

    def _close(self) -> None:
        if os.getpid() == self._owner:
            self._reader.close()
            self._loop.close()


def _runs_loop() -> bool:
    """Return True if the calling thread runs an event loop, so no second loop can run in it."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@cache
def _child_of(_pid: int) -> _ReaderChild:
    """Return the child of the process with this id. A fork must not use its parent's child."""
    return _ReaderChild()
