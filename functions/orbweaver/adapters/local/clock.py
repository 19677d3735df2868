"""The machine's clock.

On one machine a crawl keeps slots, records and deadlines by one time from its beginning to its end.
A person or a time service may set the machine's clock meanwhile. `SteadyClock` reads the clock
once and adds the time that has passed since, sleep of the machine included. A jump is reported.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from functools import cache

JUMP_MS_MIN = 5_000
# Counts while the machine sleeps, too, where a system has such a clock.
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

_log = logging.getLogger(__name__)


class SystemClock:
    """Time as this machine has it."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def _passed_ms() -> int:
    return time.clock_gettime_ns(_STEADY) // 1_000_000


@cache
def _ahead_ms() -> int:
    """Return the distance of the two clocks when this process read them first."""
    return SystemClock().now_ms() - _passed_ms()


class SteadyClock(SystemClock):
    """Wall-clock time that ignores later settings of the machine's clock.

    All of a process share one beginning.
    """

    def __init__(
        self,
        *,
        on_jump: Callable[[int], None] | None = None,
        wall_ms: Callable[[], int] | None = None,
        passed_ms: Callable[[], int] = _passed_ms,
    ) -> None:
        """Begin now; `on_jump` gets by how many milliseconds the machine's clock was set."""
        self._on_jump = on_jump
        self._wall_ms = wall_ms or super().now_ms
        self._passed_ms = passed_ms
        self._ahead_ms = wall_ms() - passed_ms() if wall_ms else _ahead_ms()
        self._jumped_ms = 0

    def now_ms(self) -> int:
        now_ms = self._ahead_ms + self._passed_ms()
        jumped_ms = self._wall_ms() - now_ms
        if abs(jumped_ms - self._jumped_ms) >= JUMP_MS_MIN:
            by_ms, self._jumped_ms = jumped_ms - self._jumped_ms, jumped_ms
            _log.warning("clock.jumped", extra={"by_ms": by_ms})
            if self._on_jump is not None:
                self._on_jump(by_ms)
        return now_ms
