"""Ports of the tables: packs (messages with up to 25 URLs), crawls, claims and page records."""

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
from orbweaver.model.crawl import Counters, Counts, Crawl, State
from orbweaver.model.errors import NOTHING
from orbweaver.model.limits import Settlement
from orbweaver.model.page_record import PageRecord
from orbweaver.model.target import Prior, Target


class Packs(Protocol):
    """Journals (redo logs) and ledgers (commit records) of packs, and the counters of crawls."""

    async def recall(self, pack_ids: Sequence[str]) -> Mapping[str, Recalled]:
        """Read the stored state of packs in one batched read.

        `Recalled.newer` describes a part that a newer version has stored. Other packs are not
        affected.
        """

    async def write_journal(self, pack_id: str, journal: Journal) -> Journal:
        """Write a journal if the pack has none. Return the stored one."""

    async def commit(
        self, crawl: Crawl, ledger: Ledger, counts: Counts, settled: Sequence[Settlement] = ()
    ) -> CommitResult:
        """Put the ledger if absent, add counts to a shard, settle reservations: in one transaction.

        The shard follows from the pack's id. Does not write if the ledger exists, the shard is
        closed, or `counts["claimed"]` would exceed the shard's quota (`Crawl.shard_quota`).
        """

    async def commit_together(self, crawl: Crawl, commits: Sequence[tuple[Ledger, Counts]]) -> bool:
        """Put several ledgers and add all their counts to one shard, in one transaction.

        Returns False, without a write, if a ledger exists, the shard is closed, or its quota does
        not admit all claims.
        """

    async def add_strike(self, pack_id: str) -> int:
        """Add a strike to a pack that may have killed a worker. Return its strikes."""

    async def set_strikes(self, pack_id: str, strikes: int) -> None:
        """Set the strikes of a pack whose worker survived."""

    async def sent(self, pack_id: str) -> None:
        """Record that a committed pack's next packs are queued and its surplus claims released."""

    async def park(self, crawl: str, body: str, pack_id: str) -> bool:
        """Store a pack of a paused crawl. Return False if the crawl is no longer paused."""

    async def parked(self, crawl: str) -> Mapping[str, str]:
        """Return the stored packs of a paused crawl: id to message body."""

    async def unpark(self, crawl: str, pack_ids: Sequence[str]) -> None: ...


class Crawls(Protocol):
    """Definitions, states and counters of crawls."""

    async def create(self, crawl: Crawl) -> bool:
        """Write a new crawl. Return False if its id exists."""

    async def get(self, crawl_id: str) -> Crawl | None:
        """Read a crawl, strongly consistent. Raises StoredNewer for a newer version."""

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

        Returns False, without a write, if a counter has changed. `rest` is added to the counts:
        outcomes of URLs that no worker will request.
        """

    async def move(self, crawl: Crawl, allowed: Iterable[State]) -> bool:
        """Write a crawl's state and stop reason if its state is one of `allowed`."""

    async def edit(self, crawl: Crawl, was: Crawl) -> bool:
        """Write the differences between a crawl and `was`, if it is live and unedited since."""

    async def keep_samples(self, crawl: Crawl, samples: Mapping[str, Sequence[str]]) -> None:
        """Store samples of refused URLs, by reason, for reasons that have none yet."""

    async def samples(self, crawl_id: str) -> Mapping[str, Sequence[str]]: ...

    async def learn(self, crawl: Crawl, counts: Counts) -> Counts:
        """Add counts of kinds (groups of similar URLs) to the shared ones, and return their sums.

        Counts may be negative. Keys have at most 16 ASCII characters. If a response is lost, counts
        may be added twice.
        """

    async def learned(self, crawl_id: str) -> Counts:
        """Return the shared counts of kinds."""

    async def announced(self, crawl_id: str) -> None:
        """Record that the completion event of a crawl was sent."""


class Frontier(Protocol):
    """Claims: which URLs belong to which pack for the dedup window."""

    async def known(
        self, claimer: Claimer, urls: Sequence[str], modified: Mapping[str, int] = NOTHING
    ) -> ClaimStates:
        """Return which of these URLs are or were claimed. The read is cheap and may be stale.

        `modified` has the modification times of some URLs. Earlier claims of these do not hold.
        """

    async def claim(self, claimer: Claimer, targets: Sequence[Target]) -> frozenset[str]:
        """Claim URLs for a pack. Return the URLs that now belong to it.

        A claim succeeds if the URL's claim is absent, expired, stale, older than the target's
        `modified_at_ms`, or already this pack's.
        """

    async def release(self, claimer: Claimer, urls: Sequence[str]) -> None:
        """Release this pack's claims of these URLs, and restore the claims that they replaced."""

    async def abandon(self, crawl: Crawl, urls: Sequence[str]) -> None:
        """Mark this run's claims of URLs as never requested, so that other runs can take them."""

    async def last_claim(self, name: str, url: str) -> StoredClaim | None:
        """Read the last claim of a URL, strongly consistent, even if it has expired."""


class Pages(Protocol):
    """Page records."""

    async def store(self, records: Sequence[PageRecord]) -> None:
        """Write records. A repetition changes nothing."""

    def read_shard(
        self, day: str, shard: int, *, after: str | None = None, crawl: str | None = None
    ) -> AsyncIterator[tuple[str, PageRecord]]:
        """Read one shard of a day in key order, page by page: (sort key, record).

        `after` continues after a sort key. `crawl` selects one crawl's records.
        """

    async def crawls_of(self, day: str) -> tuple[str, ...]:
        """List the crawls that have records of a day, sorted.

        Costs one read per crawl and shard.
        """

    async def count(self, day: str, shard: int, crawl: str, rows_max: int) -> int:
        """Count a crawl's records in a shard of a day.

        Beyond `rows_max` the count may be inexact.
        """

    @property
    def shards(self) -> int:
        """Number of shards of a day."""


class History(Protocol):
    """Page records of earlier runs."""

    async def earlier_records(self, priors: Mapping[str, Prior]) -> Mapping[str, PageRecord]:
        """Find the records of earlier claims, by URL. The result may be stale and incomplete.

        A record is searched in the day of its claim and in the next day.
        """
