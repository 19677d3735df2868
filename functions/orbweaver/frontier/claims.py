"""Stored states of packs (messages with up to 25 URLs) and URLs, and results of a commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from orbweaver.model.crawl import State
from orbweaver.model.target import Prior
from orbweaver.model.value import value_class

if TYPE_CHECKING:
    from orbweaver.frontier.journal import Journal, Ledger
    from orbweaver.model.crawl import Crawl
    from orbweaver.model.target import Target


@value_class
class Recalled:
    """Stored state of a pack. `newer` describes data that a newer Orbweaver version stored."""

    journal: Journal | None = None
    ledger: Ledger | None = None
    strikes: int = 0
    newer: str | None = None


@value_class
class FinishedPack:
    """A pack whose ledger is stored, or whose crawl has ended. Its messages may be unsent."""


@value_class
class JournaledPack:
    """A pack whose journal is stored, so that no URL of it is requested again."""

    journal: Journal


@value_class
class NewPack:
    """A pack without a stored result. `strikes` counts the workers that may have died of it."""

    strikes: int


def stage_of(crawl: Crawl, known: Recalled) -> FinishedPack | JournaledPack | NewPack:
    """Return the stage that earlier deliveries of a pack reached."""
    if known.ledger is not None or crawl.state is State.FINISHED:
        return FinishedPack()
    if known.journal is not None:
        return JournaledPack(journal=known.journal)
    return NewPack(strikes=known.strikes)


@value_class
class UnreadableCrawl:
    """A crawl that a newer Orbweaver version stored, reduced to the fields of all versions."""

    id: str
    name: str
    started_at_ms: int
    said: str

    @classmethod
    def from_fields(cls, crawl_id: str, fields: Mapping[str, Any], said: str) -> Self:
        """Read the fields that every version has."""
        name, started_at_ms = fields.get("name", crawl_id), fields.get("started_at_ms", 0)
        return cls(id=crawl_id, name=name, started_at_ms=started_at_ms, said=said)


@value_class
class Committed:
    """The commit was written."""


@value_class
class AlreadyCommitted:
    """Another delivery of the pack committed first. Its `ledger` (commit record) is final."""

    ledger: Ledger


@value_class
class OverBudget:
    """The commit was refused: the crawl's budget has room for only `left` claims."""

    left: int


@value_class
class Closed:
    """The commit was refused, because the crawl is finished and its counters are closed."""


CommitResult: TypeAlias = Committed | AlreadyCommitted | OverBudget | Closed


@value_class
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


@value_class
class StoredClaim:
    """A URL's last claim as stored, even if it has expired.

    `unasked` is set if the run will never request the URL, or failed to fetch it: the claim then
    counts within its run only. `was` is the lapsed claim that this claim replaced.
    """

    crawl: str
    pack: str
    at_ms: int
    expires_s: int
    depth: int = 0
    unasked: bool = False
    was: StoredClaim | None = None

    @classmethod
    def create(cls, claimer: Claimer, target: Target, former: StoredClaim | None = None) -> Self:
        # Keep the claim that is valid for all runs, or else an abandoned one.
        was = former and replace(former.seen_by(claimer) or former, was=None)
        return cls(
            crawl=claimer.crawl,
            pack=claimer.pack,
            at_ms=claimer.at_ms,
            expires_s=claimer.expires_s,
            depth=target.depth,
            was=was,
        )

    def seen_by(self, claimer: Claimer) -> StoredClaim | None:
        """Return the claim that counts for a claimer. Ignores claims that other runs abandoned."""
        seen: StoredClaim | None = self
        while seen is not None and seen.unasked and seen.crawl != claimer.crawl:
            seen = seen.was
        return seen

    def holds(self, claimer: Claimer, modified_at_ms: int | None) -> bool:
        """Whether another pack's claim is valid for `claimer`: not expired and not stale.

        It is stale if it is older than `modified_at_ms`, the page's last modification.
        """
        if (seen := self.seen_by(claimer)) is None:
            return False
        stale_before_ms = max(claimer.stale_before_ms, modified_at_ms or 0)
        return seen.expires_s > claimer.at_ms // 1000 and seen.at_ms >= stale_before_ms


@value_class
class ClaimStates:
    """Claim states of URLs: `held` are claimed, `lapsed` are free and were claimed before.

    `own` are the `held` URLs that the calling run has claimed.
    """

    held: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()
    lapsed: Mapping[str, Prior] = field(default_factory=dict)

    @classmethod
    def build(
        cls, claimer: Claimer, claims: Mapping[str, StoredClaim], modified: Mapping[str, int]
    ) -> Self:
        """Judge stored claims by URL, with the URLs' last modifications."""
        others = {url: claim for url, claim in claims.items() if claim.pack != claimer.pack}
        held = {url for url, claim in others.items() if claim.holds(claimer, modified.get(url))}
        seen = {url: claim.seen_by(claimer) for url, claim in others.items() if url not in held}
        return cls(
            held=frozenset(held),
            own=frozenset(url for url in held if others[url].crawl == claimer.crawl),
            lapsed={
                url: Prior(crawl=claim.crawl, at_ms=claim.at_ms)
                for url, claim in seen.items()
                if claim is not None
            },
        )
