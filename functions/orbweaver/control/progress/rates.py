"""Compute rates of completed URLs: current rate, mean, peak, and the bars of a chart."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

# The current rate is the mean over this time. A shorter time would fluctuate, because the URLs of a
# message are counted together.
WINDOW_MS = 10_000
# A bar covers this much time. URLs completed between two close readings are spread evenly over the
# time between them. A bar for a time without readings is None, not zero.
BAR_MS = 5_000
# If two readings are further apart than this, the chart has a gap. Causes are an unreachable stack,
# and a machine that was asleep.
GAP_MS = 12_000
BARS_MAX = 240


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Rates in completed URLs per second. `bars` are the last bars of the chart, oldest first."""

    now: float
    mean: float
    peak: float
    bars: tuple[float | None, ...] = ()


class RateHistory:
    """Computes rates from successive readings of the number of completed URLs."""

    def __init__(self) -> None:
        self._seen: deque[tuple[int, int]] = deque()
        self._last: tuple[int, int] | None = None
        # Number of completed URLs at the end of the last bar, if known.
        self._edge: float | None = None
        self._bars: deque[float | None] = deque(maxlen=BARS_MAX)
        self._peak = 0.0

    def add(self, at_ms: int, done: int, *, started_at_ms: int, elapsed_ms: int) -> Rates:
        """Add a reading of `done` at `at_ms`, and return the rates.

        The peak is the highest whole bar, or the current or mean rate if that is higher.
        """
        now = self._now(at_ms, done, started_at_ms)
        mean = done * 1000 / elapsed_ms if elapsed_ms > 0 else 0.0
        self._fill(at_ms, done)
        # The mean of the first seconds is not stored as peak, because one committed message makes
        # it high.
        peak = max(self._peak, now, mean)
        if elapsed_ms >= BAR_MS:
            self._peak = max(self._peak, mean)
        return Rates(now=now, mean=mean, peak=peak, bars=tuple(self._bars))

    def _now(self, at_ms: int, done: int, started_at_ms: int) -> float:
        seen = self._seen
        if not done or (seen and at_ms < seen[-1][0]):
            seen.clear()  # No worker has started yet, so this time does not count.
        seen.append((at_ms, done))
        while len(seen) > 2 and seen[1][0] <= at_ms - WINDOW_MS:  # noqa: PLR2004 - two make a rate
            seen.popleft()
        # With a single reading, the current rate is the mean since the start.
        first_ms, first_done = seen[0] if len(seen) > 1 else (started_at_ms, 0)
        if at_ms <= first_ms:
            return 0.0
        return max(0.0, (done - first_done) * 1000 / (at_ms - first_ms))

    def _fill(self, at_ms: int, done: int) -> None:
        last, self._last = self._last, (at_ms, done)
        if last is None or at_ms < last[0]:  # or the clock was set back
            self._edge = None
            return
        last_ms, last_done = last
        apart_ms, end = at_ms - last_ms, at_ms // BAR_MS
        for edge in range(max(last_ms // BAR_MS + 1, end - BARS_MAX), end + 1):
            at_edge = None
            if apart_ms <= GAP_MS:
                passed = (edge * BAR_MS - last_ms) / apart_ms
                at_edge = last_done + (done - last_done) * passed
            if at_edge is not None and self._edge is not None:
                bar = max(0.0, (at_edge - self._edge) * 1000 / BAR_MS)
                self._bars.append(bar)
                self._peak = max(self._peak, bar)
            elif self._bars:
                self._bars.append(None)
            self._edge = at_edge
