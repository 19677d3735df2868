"""The machine's clock, and a steady clock that ignores changes of the machine's clock.

A person or a time service might set the machine's clock during a crawl. A local crawl needs one
steady time for delays, records and deadlines.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

JUMP_MS_MIN = 5_000
# Clock of the time since boot. It includes the time that the machine sleeps, if the system has such
# a clock.
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


@dataclass(slots=True)
class _Epoch:
    """`ahead_ms`: the process's time minus the time since boot. `jumped_ms`: last reported jump."""

    ahead_ms: int
    jumped_ms: int = 0
    on_jump: Callable[[int], None] | None = None


@cache
def _epoch() -> _Epoch:
    return _Epoch(SystemClock().now_ms() - _passed_ms())


class SteadyClock(SystemClock):
    """The time at the start of the process plus the elapsed time. All instances share the start."""

    def __init__(
        self,
        *,
        on_jump: Callable[[int], None] | None = None,
        wall_ms: Callable[[], int] | None = None,
        passed_ms: Callable[[], int] = _passed_ms,
    ) -> None:
        """`on_jump` is called with the milliseconds by which the machine's clock was moved."""
        self._wall_ms = wall_ms or super().now_ms
        self._passed_ms = passed_ms
        self._epoch = _Epoch(wall_ms() - passed_ms()) if wall_ms else _epoch()
        self._epoch.on_jump = on_jump or self._epoch.on_jump

    @property
    def wall_ahead_ms(self) -> int:
        """The machine's clock minus the time since boot."""
        return self._wall_ms() - self._passed_ms()

    @property
    def uptime_ms(self) -> int:
        """The time since boot."""
        return self._passed_ms()

    def follow(self, ahead_ms: int) -> None:
        """Set all steady clocks of the process to `ahead_ms` plus the time since boot."""
        self._epoch.ahead_ms, self._epoch.jumped_ms = ahead_ms, 0

    def now_ms(self) -> int:
        epoch = self._epoch
        now_ms = epoch.ahead_ms + self._passed_ms()
        jumped_ms = self._wall_ms() - now_ms
        by_ms = jumped_ms - epoch.jumped_ms
        if abs(by_ms) >= JUMP_MS_MIN:
            epoch.jumped_ms = jumped_ms
            if epoch.on_jump is None:
                _log.warning("clock.jumped", extra={"by_ms": by_ms})
            else:
                epoch.on_jump(by_ms)
        return now_ms
