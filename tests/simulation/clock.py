"""Clocks that are wrong, and that jump."""

from __future__ import annotations

import asyncio

# No clock is further from the truth than this, before or after a jump.
ERROR_MS_MAX = 600_000


class SimClock:
    """A container's own idea of the time: `ahead_ms` before the truth, until it jumps (case 25)."""

    def __init__(self, start_ms: int, ahead_ms: int) -> None:
        self._start_ms = start_ms
        self.ahead_ms = self.least_ms = self.most_ms = ahead_ms

    def now_ms(self) -> int:
        """Milliseconds, as wrong as this container's clock is."""
        return self._start_ms + self.ahead_ms + round(asyncio.get_running_loop().time() * 1000)

    async def sleep(self, seconds: float) -> None:
        """Wait in virtual time."""
        await asyncio.sleep(seconds)

    def jump(self, ahead_ms: int) -> None:
        """Be wrong by another amount from here on."""
        self.ahead_ms = ahead_ms
        self.least_ms = min(self.least_ms, ahead_ms)
        self.most_ms = max(self.most_ms, ahead_ms)

    def begin(self) -> None:
        """Forget earlier jumps: what an invocation does depends on its own time alone."""
        self.least_ms = self.most_ms = self.ahead_ms
