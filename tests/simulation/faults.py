"""How often what goes wrong."""

from __future__ import annotations

from dataclasses import dataclass

from tests.simulation.clock import ERROR_MS_MAX


@dataclass(slots=True, kw_only=True)
class Faults:
    """How often what goes wrong: chances per effect, per batch, or per container."""

    # Refused before it takes effect: throttles, conflicting transactions, batches that are taken
    # in part, S3's 503 (case 12) (case 16).
    throttled: float = 0.0
    # It took effect, and the answer was lost: time-outs (case 17).
    unknown: float = 0.0
    # The process ends before or after any effect (case 3) (case 4) (case 5) (case 6).
    killed: float = 0.0
    # The process ends right after it has finished a crawl, before it can tell anybody.
    killed_sealing: float = 0.0
    # The process is told to end (SIGTERM) at any effect, and ended soon afterwards, or not at all.
    told: float = 0.0
    # The process stands still, until after its lease at worst (case 18).
    frozen: float = 0.0
    # Done, and delivered again all the same (case 2).
    ack_lost: float = 0.0
    # The same message, or the same event, to two containers at once (case 1) (case 27).
    doubled: float = 0.0
    # Visible again while it is still being worked on (case 18).
    early: float = 0.0
    # Sent by the release before, without the fields that came later (case 26).
    aged: float = 0.0
    # Held up at a backlog for as long as a pack takes, so that others come to it meanwhile.
    held_up: float = 0.0
    latency_s: float = 0.02
    # So much longer takes each of the reads that add a crawl's books up.
    counters_s: float = 0.0
    # Seeds dropped on every running crawl just when one is about to be sealed, so many times.
    late_seeds: int = 0
    # How wrong clocks are from the beginning, and how often they jump (case 25).
    skew_ms: int = 0
    jumps: float = 0.0

    @property
    def clock_error_ms(self) -> int:
        """How far a clock may be from the truth."""
        return ERROR_MS_MAX if self.jumps else self.skew_ms

    @property
    def none(self) -> bool:
        """Whether nothing goes wrong, but that it takes its time, and clocks are wrong."""
        return self == Faults(
            latency_s=self.latency_s, counters_s=self.counters_s, skew_ms=self.skew_ms
        )

    def calmed(self) -> Faults:
        """What is left when nothing goes wrong any more: clocks are not set right by that."""
        return Faults(latency_s=0.001, skew_ms=self.skew_ms)
