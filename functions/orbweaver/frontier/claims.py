"""States of packs and URLs, as tables hold them, and results of a commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from orbweaver.model.target import Prior

if TYPE_CHECKING:
    from orbweaver.frontier.journal import Journal, Ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """What is known of a pack from earlier deliveries; what cannot be read, `newer` says."""

    journal: Journal | None = None
    ledger: Ledger | None = None
    strikes: int = 0
    newer: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A crawl that was stored by a newer version: its names, which every version has."""

    id: str
    name: str
    started_at_ms: int
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """This commit took effect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlreadyCommitted:
    """Another delivery was first; its ledger stands."""

    ledger: Ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class OverBudget:
    """Nothing was written: the budget admits no more than `left` claims."""

    left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """Nothing was written: the crawl is finished, its counters are sealed."""


CommitResult: TypeAlias = Committed | AlreadyCommitted | OverBudget | Closed


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimer:
    """The claimer: the pack, for a crawl of this name, as of its journal's moment."""

    name: str
    crawl: str
    pack: str
    at_ms: int
    stale_before_ms: int
    expires_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingClaim:
    """A URL's last claim as stored, whether or not it still holds."""

    crawl: str
    pack: str
    at_ms: int
    expires_s: int
    depth: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known of URLs: held ones, and former holders of those that are free.

    Of those that are held, `own` are so by the run that asks.
    """

    held: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()
    lapsed: Mapping[str, Prior] = field(default_factory=dict)
