"""Facts of a finished run: plain values for the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tests.chaos.faults import Fault
from tests.chaos.gaps import Gaps

OUTCOMES = ("fetched", "unchanged", "redirected", "skipped", "failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """URLs that a crawl must record, by outcome."""

    pages: frozenset[str]
    redirects: frozenset[str]
    forbidden: frozenset[str]
    requests_in_vain: int

    @property
    def outcomes(self) -> dict[str, frozenset[str]]:
        return {
            "fetched.ok": self.pages,
            "redirected.redirect": self.redirects,
            "skipped.robots": self.forbidden,
        }

    @property
    def total(self) -> int:
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
    """Dead letter that the run causes on purpose: a text in its body, and its reason's start."""

    name: str
    text: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """Final counters of a crawl, and the counters in each event that announced its end."""

    crawl: str
    state: str
    counts: Mapping[str, int]
    announced: tuple[Mapping[str, int], ...]

    @property
    def outcomes(self) -> int:
        return sum(self.counts.get(outcome, 0) for outcome in OUTCOMES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Storm:
    """Injected faults."""

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
    """Faults that a run must at least have had for a meaningful verdict."""

    kinds: frozenset[Fault]
    kills: int
    replayed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All facts of a run."""

    seed: int
    expected: Expected
    rows: tuple[Row, ...]
    main: Ended
    others: tuple[Ended, ...]
    counts_before_late: Mapping[str, int]
    queued: int
    requests: Mapping[str, int]  # URL to number of requests.
    gaps: Mapping[str, Gaps]  # Host to its gaps.
    planted: tuple[Planted, ...]
    dead: tuple[Letter, ...]
    dead_left: int
    storm: Storm
    wanted: Wanted
