"""Interfaces to tables: packs (messages with up to 25 URLs), crawls, claims and page records."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Protocol

from orbweaver.frontier.claims import (
    Claimer,
    ClaimStates,
    CommitResult,
    Recalled,
    StoredClaim,
    UnreadableCrawl,
)
from orbweaver.frontier.journal import Journal, Ledger
from orbweaver.model.crawl import Counters, Counts, Crawl, Settlement, State
from orbweaver.model.errors import NOTHING
from orbweaver.model.page_record import PageRecord
from orbweaver.model.target import Prior, Target


class Packs(Protocol):
    """Stores journals (redo logs) and ledgers (commit records) of packs, and crawls' counters."""

    async def recall(self, pack_ids: Sequence[str]) -> Mapping[str, Recalled]:
        """Read the stored state of packs in one batched read.

        If a newer version stored a part of a pack's state, `Recalled.newer` describes it. Other
        packs are not affected.
        """

    async def write_journal(self, pack_id: str, journal: Journal) -> Journal:
        """Write a journal if the pack has none. Return the stored journal."""

    async def commit(
        self, crawl: Crawl, ledger: Ledger, counts: Counts, settled: Sequence[Settlement] = ()
    ) -> CommitResult:
        """Write a ledger, add counts to a shard, settle reservations: in one transaction.

        The pack's id determines the counter shard. Writes nothing if the ledger exists, the shard
        is closed, or `counts["claimed"]` would exceed the shard's quota (`Crawl.shard_quota`).
        """

    async def commit_together(self, crawl: Crawl, commits: Sequence[tuple[Ledger, Counts]]) -> bool:
        """Write several ledgers and add all their counts to one counter shard, in one transaction.

        Returns False, without a write, if a ledger exists, the shard is closed, or its quota is too
        small.
        """

    async def add_strike(self, pack_id: str) -> int:
        """Add a strike to a pack that may have killed a worker. Return the pack's strikes."""

    async def set_strikes(self, pack_id: str, strikes: int) -> None:
        """Set the strikes of a pack whose worker survived."""

    async def note_sent(self, pack_id: str, leases: int) -> bool:
        """Record that the packs of a commit are queued, and its surplus claims released.

        Returns False, without a write, if the ledger has another number of leases, unless this is
        recorded already. A ledger that has expired is not created again.
        """

    async def park(self, crawl: str, body: str, pack_id: str) -> bool:
        """Store a pack of a paused crawl. Return False if the crawl is no longer paused."""

    async def parked(self, crawl: str) -> Mapping[str, str]:
        """Return the stored packs of a paused crawl: id to message body."""

    async def unpark(self, crawl: str, pack_ids: Sequence[str]) -> None: ...


class Crawls(Protocol):
    """Stores definitions, states and counters of crawls."""

    async def create(self, crawl: Crawl) -> bool:
        """Write a new crawl. Return False if its id exists."""

    async def get(self, crawl_id: str) -> Crawl | None:
        """Read a crawl, strongly consistent. Raises StoredNewer if a newer version stored it."""

    async def list(self) -> tuple[Crawl, ...]:
        """Read all crawls, newest first, except crawls that newer versions have stored."""

    async def newer(self) -> tuple[UnreadableCrawl, ...]:
        """List the crawls that newer versions have stored, newest first."""

    async def counters(self, crawl: Crawl) -> Counters:
        """Read all counter shards of a crawl, each strongly consistent."""

    async def seal(
        self, crawl: Crawl, counters: Counters, finished: Crawl, rest: Counts = NOTHING
    ) -> bool:
        """Finish a crawl and close all its counter shards, in one transaction.

        Returns False, without a write, if a counter differs from `counters`. `finished` is the
        crawl to write. `rest` is added to the counts: outcomes of URLs that no worker will request.
        """

    async def move(self, crawl: Crawl, allowed: Iterable[State]) -> bool:
        """Write a crawl's state and stop reason if its stored state is one of `allowed`."""

    async def edit(self, crawl: Crawl, was: Crawl) -> bool:
        """Write the fields of `crawl` that differ from `was`. Return True if they were written.

        The stored crawl must be live and must not have been edited since `was` was read.
        """

    async def keep_samples(self, crawl: Crawl, samples: Mapping[str, Sequence[str]]) -> None:
        """Store samples of refused URLs, by reason, for reasons that have none yet."""

    async def samples(self, crawl_id: str) -> Mapping[str, Sequence[str]]: ...

    async def learn(self, crawl: Crawl, counts: Counts) -> Counts:
        """Add counts of kinds (groups of similar URLs) to the shared ones, and return their sums.

        Counts may be negative. Keys have at most 16 ASCII characters. If a response is lost, counts
        may be added twice.
        """

    async def learned(self, crawl_id: str) -> Counts:
        """Return the shared counts of a crawl's kinds (groups of similar URLs)."""

    async def announced(self, crawl_id: str) -> None:
        """Record that the completion event of a crawl was sent."""


class Frontier(Protocol):
    """Stores claims, which state to which pack a URL belongs during the dedup window."""

    async def known(
        self, claimer: Claimer, urls: Sequence[str], modified: Mapping[str, int] = NOTHING
    ) -> ClaimStates:
        """Return which of `urls` are claimed now or were claimed before. The result can be stale.

        `modified` has the modification times of some URLs. A claim from before this time does not
        count.
        """

    async def claim(self, claimer: Claimer, targets: Sequence[Target]) -> frozenset[str]:
        """Claim URLs for a pack. Return the URLs that now belong to it.

        A URL without a claim is claimed. A stored claim is replaced if it is expired, stale, or
        older than the target's `modified_at_ms`. A claim of this pack also counts as success.
        """

    async def release(self, claimer: Claimer, urls: Sequence[str]) -> None:
        """Release the claimer's claims of URLs, and restore the claims that they replaced."""

    async def abandon(self, crawl: Crawl, urls: Sequence[str], *, failed: bool = False) -> None:
        """Mark a run's claims of URLs as abandoned, so that other runs can claim them.

        The run never requested these URLs, so earlier claims count again. With `failed`, it
        requested them without success, so earlier claims do not count either.
        """

    async def last_claim(self, name: str, url: str) -> StoredClaim | None:
        """Read the last claim of a URL, strongly consistent, even if it has expired."""


class Pages(Protocol):
    """Stores page records."""

    async def store(self, records: Sequence[PageRecord]) -> None:
        """Write records. Writing the same records again has no effect."""

    def read_shard(
        self, day: str, shard: int, *, after: str | None = None, crawl: str | None = None
    ) -> AsyncIterator[tuple[str, PageRecord]]:
        """Read one shard of a day in key order, as pairs of sort key and record.

        `after` is the sort key after which the result starts. `crawl` selects one crawl's records.
        """

    async def crawls_of(self, day: str) -> tuple[str, ...]:
        """List the crawls that have records of a day, sorted.

        Costs one read per crawl and shard.
        """

    async def count(self, day: str, shard: int, crawl: str, rows_max: int) -> int:
        """Count a crawl's records in a shard of a day.

        A count above `rows_max` can be inexact.
        """

    @property
    def shards(self) -> int:
        """Number of shards into which the records of a day are divided."""


class History(Protocol):
    """Reads page records of earlier runs."""

    async def earlier_records(self, priors: Mapping[str, Prior]) -> Mapping[str, PageRecord]:
        """Return records of URLs that earlier runs claimed, if found. They can be stale.

        `priors` are the earlier claims by URL. A record is searched on the day of its claim and on
        the next day.
        """
