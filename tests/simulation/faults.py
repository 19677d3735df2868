"""Fault probabilities."""

from __future__ import annotations

from dataclasses import dataclass

from tests.simulation.clock import ERROR_MS_MAX


@dataclass(slots=True, kw_only=True)
class Faults:
    """Fault probabilities per effect (one call to AWS or to the web), batch or container."""

    # The call is refused without effect: throttles, conflicting transactions, partly processed
    # batches, S3's 503 (case 12) (case 16).
    throttled: float = 0.0
    # The call succeeds, but its answer is lost, as in a time-out (case 17).
    unknown: float = 0.0
    # The process ends before or after any effect (case 3) (case 4) (case 5) (case 6).
    killed: float = 0.0
    # The process ends right after it has finished a crawl, before it announces the end.
    killed_sealing: float = 0.0
    # The process gets SIGTERM at any effect, and is killed soon afterwards, or not at all.
    told: float = 0.0
    # The process freezes, at worst until after its lease (case 18).
    frozen: float = 0.0
    # A message is processed, but delivered again (case 2).
    ack_lost: float = 0.0
    # Two containers receive the same message or event at once (case 1) (case 27).
    doubled: float = 0.0
    # A message becomes visible again while it is in flight (case 18).
    early: float = 0.0
    # The previous release sent the message, without later fields (case 26).
    aged: float = 0.0
    # A backlog call takes as long as a whole pack, so that other workers reach the backlog
    # meanwhile.
    held_up: float = 0.0
    latency_s: float = 0.02
    # Additional duration of each read that sums a crawl's counters.
    counters_s: float = 0.0
    # This many times, each running crawl gets another seed just before it ends.
    late_seeds: int = 0
    # Initial clock errors, and frequency of clock jumps (case 25).
    skew_ms: int = 0
    jumps: float = 0.0

    @property
    def clock_error_ms(self) -> int:
        return ERROR_MS_MAX if self.jumps else self.skew_ms

    @property
    def none(self) -> bool:
        """True if no fault occurs, apart from durations and wrong clocks."""
        return self == Faults(
            latency_s=self.latency_s, counters_s=self.counters_s, skew_ms=self.skew_ms
        )

    def calmed(self) -> Faults:
        """Return the faults that remain after the others stop: clocks stay wrong."""
        return Faults(latency_s=0.001, skew_ms=self.skew_ms)
