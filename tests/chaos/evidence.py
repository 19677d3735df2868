"""What is known of a run when it is over: plain values, from which the verdict is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tests.chaos.faults import Fault
from tests.chaos.gaps import Gaps

OUTCOMES = ("fetched", "unchanged", "redirected", "skipped", "failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The URLs that a crawl must record, by how they must end."""

    pages: frozenset[str]
    redirects: frozenset[str]
    forbidden: frozenset[str]
    requests_in_vain: int

    @property
    def outcomes(self) -> dict[str, frozenset[str]]:
        """Return the URLs by outcome and reason."""
        return {
            "fetched.ok": self.pages,
            "redirected.redirect": self.redirects,
            "skipped.robots": self.forbidden,
        }

    @property
    def total(self) -> int:
        """Count all URLs."""
        return sum(map(len, self.outcomes.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A page record; `sent_ms` is when its request was sent."""

    url: str
    outcome: str
    reason: str
    sent_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A dead letter."""

    body: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """What was put there to become a dead letter: a text in its body, how its reason begins."""

    name: str
    text: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A crawl's books at the end, and the counts of each event that announced it."""

    crawl: str
    state: str
    counts: Mapping[str, int]
    announced: tuple[Mapping[str, int], ...]

    @property
    def outcomes(self) -> int:
        """Sum up what ended."""
        return sum(self.counts.get(outcome, 0) for outcome in OUTCOMES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Storm:
    """What was done to the workers."""

    faults: Mapping[Fault, int]
    calls: int
    kills: int
    lethal_kills: int
    replayed: int
    replayed_late: int
    timeouts: int
    storm_s: float
    total_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a run must at least have suffered, for its verdict to mean anything."""

    kinds: frozenset[Fault]
    kills: int
    replayed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All that is known of a run."""

    seed: int
    expected: Expected
    rows: tuple[Row, ...]
    main: Ended
    others: tuple[Ended, ...]
    counts_before_late: Mapping[str, int]
    queued: int
    requests: Mapping[str, int]  # URL to how often it was asked for
    gaps: Mapping[str, Gaps]  # host to what it saw
    planted: tuple[Planted, ...]
    dead: tuple[Letter, ...]
    dead_left: int
    storm: Storm
    wanted: Wanted
