"""The machine's clock.

A local crawl uses one clock for slots, records and deadlines. A person or a time service may set
the machine's clock during the crawl. `SteadyClock` reads the clock once and adds the elapsed time,
including the machine's sleep. It reports jumps of the machine's clock.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from functools import cache

JUMP_MS_MIN = 5_000
# Includes the machine's sleep, where the system has such a clock.
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

_log = logging.getLogger(__name__)


class SystemClock:
    """The machine's wall clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def _passed_ms() -> int:
    return time.clock_gettime_ns(_STEADY) // 1_000_000


@cache
def _ahead_ms() -> int:
    """Return the offset between both clocks at this process's first call."""
    return SystemClock().now_ms() - _passed_ms()


class SteadyClock(SystemClock):
    """Wall-clock time that ignores later settings of the machine's clock.

    All instances of a process share one start.
    """

    def __init__(
        self,
        *,
        on_jump: Callable[[int], None] | None = None,
        wall_ms: Callable[[], int] | None = None,
        passed_ms: Callable[[], int] = _passed_ms,
    ) -> None:
        """`on_jump` receives the milliseconds by which the machine's clock was set."""
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
