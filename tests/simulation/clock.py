"""Clocks that are wrong and jump."""

from __future__ import annotations

import asyncio

# Maximum error of a clock, before or after a jump.
ERROR_MS_MAX = 600_000


class SimClock:
    """A container's clock: `ahead_ms` fast, until it jumps (case 25)."""

    def __init__(self, start_ms: int, ahead_ms: int) -> None:
        self._start_ms = start_ms
        self.ahead_ms = self.least_ms = self.most_ms = ahead_ms

    def now_ms(self) -> int:
        return self._start_ms + self.ahead_ms + round(asyncio.get_running_loop().time() * 1000)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def jump(self, ahead_ms: int) -> None:
        self.ahead_ms = ahead_ms
        self.least_ms = min(self.least_ms, ahead_ms)
        self.most_ms = max(self.most_ms, ahead_ms)

    def begin(self) -> None:
        """Forget earlier jumps: only those during an invocation affect it."""
        self.least_ms = self.most_ms = self.ahead_ms
