"""The tables: packs, crawls, claims, hosts and page records."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Protocol

from orbweaver.frontier.claims import (
    Claimer,
    CommitResult,
    Known,
    Recalled,
    StandingClaim,
    Unreadable,
)
from orbweaver.frontier.journal import Journal, Ledger
from orbweaver.model.crawl import Counters, Counts, Crawl, State
from orbweaver.model.errors import NOTHING
from orbweaver.model.limits import Settlement
from orbweaver.model.page_record import PageRecord
from orbweaver.model.target import Prior, Target


class Packs(Protocol):
    """Journals, ledgers, and the counters they are committed with."""

    async def recall(self, pack_ids: Sequence[str]) -> Mapping[str, Recalled]:
        """Read what earlier deliveries of these packs left, in one batched read.

        One that a newer version has left something of says so (`Recalled.newer`); the others are
        read all the same.
        """

    async def write_journal(self, pack_id: str, journal: Journal) -> Journal:
        """Write a journal if absent; the one that stands is returned."""

    async def commit(
        self, crawl: Crawl, ledger: Ledger, counts: Counts, settled: Sequence[Settlement] = ()
    ) -> CommitResult:
        """Put the ledger if absent, add the counts to a shard, settle reservations, in one go.

        The shard of a pack follows from its id. Refused whole when the ledger exists, when the
        shard is closed, or when `counts["claimed"]` would take the shard over its quota
        (`Crawl.shard_quota`).
        """

    async def commit_together(self, crawl: Crawl, commits: Sequence[tuple[Ledger, Counts]]) -> bool:
        """Put several ledgers and add all of their counts to one shard, in one go; or nothing.

        False if a ledger exists, the shard is closed, or its quota does not admit all claims.
        """

    async def strike(self, pack_id: str) -> int:
        """Note that a suspect is about to be processed; how often that was noted by now."""

    async def absolve(self, pack_id: str, strikes: int) -> None:
        """Leave a suspect with this many strikes: its worker survived it this time."""

    async def sent(self, pack_id: str) -> None:
        """Note that a committed pack's outbox is on the queue and its surplus given back."""

    async def park(self, crawl: str, body: str, pack_id: str) -> bool:
        """Set a paused crawl's pack aside; False if the crawl is not paused any more."""

    async def parked(self, crawl: str) -> Mapping[str, str]:
        """List parked packs of a crawl: id to body."""

    async def unpark(self, crawl: str, pack_ids: Sequence[str]) -> None:
        """Forget parked packs, once they are back on the queue."""


class Crawls(Protocol):
    """Definitions, states and counters of crawls."""

    # The size of all seeds and sitemaps that one crawl may have.
    seeds_bytes_max: int

    async def create(self, crawl: Crawl) -> bool:
        """Write a new crawl; False if its id is taken."""

    async def get(self, crawl_id: str) -> Crawl | None:
        """Read a crawl, strongly consistent; StoredNewer for one of a newer version."""

    async def list(self) -> tuple[Crawl, ...]:
        """Read all crawls, newest first, but for those of newer versions (`newer`)."""

    async def newer(self) -> tuple[Unreadable, ...]:
        """Name the crawls that newer versions have stored, newest first."""

    async def counters(self, crawl: Crawl) -> Counters:
        """Read all counter shards of a crawl, each of them strongly consistent."""

    async def seal(
        self, crawl: Crawl, counters: Counters, finished: Crawl, rest: Counts = NOTHING
    ) -> bool:
        """Finish a crawl if its counters still are as read: close every shard, in one transaction.

        `rest` is counted with it: the outcomes of URLs that no worker will bring to one.
        """

    async def move(self, crawl: Crawl, allowed: Iterable[State]) -> bool:
        """Write a crawl's state and stop reason if its state is one of `allowed`."""

    async def edit(self, crawl: Crawl, was: Crawl) -> bool:
        """Write in what a crawl differs from what it was, if it is live and unedited since."""

    async def keep_samples(self, crawl: Crawl, samples: Mapping[str, Sequence[str]]) -> None:
        """Keep examples of what was refused, by reason, of reasons that have none yet."""

    async def samples(self, crawl_id: str) -> Mapping[str, Sequence[str]]:
        """Read the examples that are kept, by reason."""

    async def learn(self, crawl: Crawl, counts: Counts) -> Counts:
        """Add counts of kinds to those of all containers; what all have counted by now.

        Counts may be negative. Keys are of at most 16 ASCII characters. Where an answer was lost,
        they may be added twice.
        """

    async def learned(self, crawl_id: str) -> Counts:
        """Read what all containers have counted of kinds."""

    async def announced(self, crawl_id: str) -> None:
        """Note that the completion event of a crawl was sent."""


class Frontier(Protocol):
    """Claims: which URLs belong to which pack for the dedup window."""

    async def known(
        self, claimer: Claimer, urls: Sequence[str], modified: Mapping[str, int] = NOTHING
    ) -> Known:
        """Say which of these URLs are claimed, or were once; a cheap, possibly stale read.

        `modified` says of some when they were changed: older claims of them do not hold.
        """

    async def claim(self, claimer: Claimer, targets: Sequence[Target]) -> frozenset[str]:
        """Claim URLs; those that now belong to this pack.

        Won when the claim is absent, expired, stale, older than the target's `modified_at_ms`, or
        already this pack's.
        """

    async def release(self, claimer: Claimer, urls: Sequence[str]) -> None:
        """Release those of these claims that are this pack's; what had lapsed stands again."""

    async def abandon(self, crawl: Crawl, urls: Sequence[str]) -> None:
        """Let other runs have those of these claims that are this run's: it will not ask."""

    async def standing(self, name: str, url: str) -> StandingClaim | None:
        """Read the last claim of a URL under a crawl's name, strongly consistent.

        One that has expired is read as long as nothing has deleted it.
        """


class Pages(Protocol):
    """Page records."""

    async def store(self, records: Sequence[PageRecord]) -> None:
        """Write records under keys that follow from them; writing again changes nothing."""

    def read_shard(
        self, day: str, shard: int, *, after: str | None = None, crawl: str | None = None
    ) -> AsyncIterator[tuple[str, PageRecord]]:
        """Read one shard of a day in key order, a page at a time: (sort key, record).

        `after` continues behind a sort key, `crawl` narrows to one crawl's records.
        """

    async def crawls_of(self, day: str) -> tuple[str, ...]:
        """Name the crawls that have records of a day, sorted; a read for each in each shard."""

    async def count(self, day: str, shard: int, crawl: str, rows_max: int) -> int:
        """Count a crawl's records in a shard of a day; beyond `rows_max` it need not be exact."""

    @property
    def shards(self) -> int:
        """How many shards a day has."""


class History(Protocol):
    """Page records of earlier runs."""

    async def before(self, priors: Mapping[str, Prior]) -> Mapping[str, PageRecord]:
        """Find the records of earlier claims, by URL; possibly stale, and some may be gone.

        A record lies in the day of its claim or in the day after.
        """
