"""How often what goes wrong."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, kw_only=True)
class Faults:
    """How often what goes wrong: chances per effect, per batch, or per container."""

    throttled: float = 0.0
    unknown: float = 0.0
    killed: float = 0.0
    frozen: float = 0.0
    ack_lost: float = 0.0
    doubled: float = 0.0
    early: float = 0.0
    latency_s: float = 0.02
    # Seeds dropped on every running crawl just when one is about to be sealed, so many times.
    late_seeds: int = 0
    skew_ms: int = 0
