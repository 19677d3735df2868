"""Stored states of packs (messages with up to 25 URLs) and URLs, and results of a commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from orbweaver.model.target import Prior

if TYPE_CHECKING:
    from orbweaver.frontier.journal import Journal, Ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """Stored state of a pack. `newer` describes data that a newer Orbweaver version stored."""

    journal: Journal | None = None
    ledger: Ledger | None = None
    strikes: int = 0
    newer: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableCrawl:
    """A crawl that a newer Orbweaver version stored, reduced to the fields of all versions."""

    id: str
    name: str
    started_at_ms: int
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """The commit was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlreadyCommitted:
    """Another delivery of the pack committed first. Its `ledger` (commit record) is final."""

    ledger: Ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class OverBudget:
    """The commit was refused: the crawl's budget has room for only `left` claims."""

    left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """The commit was refused, because the crawl is finished and its counters are closed."""


CommitResult: TypeAlias = Committed | AlreadyCommitted | OverBudget | Closed


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimer:
    """Owner of claims: a pack of a crawl.

    `name` is the crawl's name, `crawl` its id, `at_ms` the time of the pack's journal. Existing
    claims from before `stale_before_ms` do not count. `expires_s` is when the owner's claims may be
    deleted, in epoch seconds.
    """

    name: str
    crawl: str
    pack: str
    at_ms: int
    stale_before_ms: int
    expires_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredClaim:
    """A URL's last claim as stored, even if it has expired."""

    crawl: str
    pack: str
    at_ms: int
    expires_s: int
    depth: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimStates:
    """Claim states of URLs: `held` are claimed, `lapsed` are free and were claimed before.

    `own` are the `held` URLs that the calling run has claimed.
    """

    held: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()
    lapsed: Mapping[str, Prior] = field(default_factory=dict)
