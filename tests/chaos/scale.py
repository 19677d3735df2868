"""Sizes of runs: a large one for `make chaos`, and a small one for a test."""

from __future__ import annotations

from dataclasses import dataclass, field

from orbweaver.model.settings import PREFIX
from tests.chaos.faults import Fault, Rates


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """Worker settings of a run, in seconds."""

    timeout_s: int
    fetch_total_s: float
    apply_reserve_s: float
    # Workers are killed many times, and a message that kills no worker must survive.
    receive_max: int = 30

    def variables(self) -> dict[str, str]:
        values = {
            "fetch_total_s": self.fetch_total_s,
            "apply_reserve_s": self.apply_reserve_s,
            "wait_s_max": self.timeout_s,
            "receive_max": self.receive_max,
        }
        return {PREFIX + name.upper(): str(value) for name, value in values.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Size of a run."""

    pages: int
    tuning: Tuning
    rates: Rates = field(default_factory=Rates)
    storm_share: float = 0.75
    storm_s_max: float = 170.0
    kills_min: int = 24
    replay_every_s: float = 4.0
    replay_count: int = 4
    late_count: int = 60
    kinds: frozenset[Fault] = frozenset(Fault)
    lethal: bool = True
    total_s_max: float = 900.0  # About 360 on two idle cores.


FULL = Scale(pages=3_000, tuning=Tuning(timeout_s=10, fetch_total_s=2.0, apply_reserve_s=5.0))
# Small enough for a test: messages of a killed worker return after 18 s.
SMALL = Scale(
    pages=150,
    tuning=Tuning(timeout_s=3, fetch_total_s=0.75, apply_reserve_s=1.25),
    rates=Rates(held=0.0, life_calls=100.0, lives=2),
    storm_share=0.6,
    storm_s_max=30.0,
    kills_min=1,
    replay_every_s=1.0,
    late_count=10,
    kinds=frozenset({Fault.THROTTLE}),
    lethal=False,
    total_s_max=90.0,
)
