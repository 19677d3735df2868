"""The state that AWS would have, and the gate before and after every effect.

A pack is a batch of URLs, a ledger its commit. A gate is a callback that tests may replace.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias, TypeVar

from orbweaver.budget.budget_rules import BudgetState
from orbweaver.control.schedule import Scheduled
from orbweaver.exporting.manifest import Manifest
from orbweaver.frontier.backlog import Lease, LeaseRequest, WaitingPack
from orbweaver.frontier.claims import UnreadableCrawl
from orbweaver.frontier.journal import Journal, Ledger
from orbweaver.frontier.messages import MessageSource
from orbweaver.model.columns import Table
from orbweaver.model.crawl import Counts, Crawl
from orbweaver.model.errors import StoredNewer
from orbweaver.model.page_record import PageRecord
from orbweaver.politeness.host_schedule import Host

T = TypeVar("T")

_NUMBERS = itertools.count(1)


class Moment(StrEnum):
    """Side of an effect at which the gate is called."""

    BEFORE = "before"
    AFTER = "after"


Gate: TypeAlias = Callable[[str, Moment], Awaitable[None]]


async def open_gate(_effect: str, _moment: Moment) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """An item of the `urls` table."""

    url: str
    pack: str
    at_ms: int
    expires_s: int
    crawl: str = ""
    depth: int = 0
    # The lapsed claim that this one replaced.
    was: Claim | None = None
    # The URL was never requested and never will be: the claim holds within its run only.
    unasked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """A sent message.

    Only dead letters have `reason` and `at_ms`. `SEEDS` as the source means that it is on the seed
    queue, or came from there.
    """

    body: str
    delay_s: int = 0
    group: str = ""
    express: bool = False
    reason: str | None = None
    at_ms: int = 0
    # Start of the wait for a newer release.
    since_ms: int | None = None
    source: MessageSource = MessageSource.PACKS
    id: str = field(default_factory=lambda: f"mail-{next(_NUMBERS)}", compare=False, repr=False)


@dataclass(slots=True)
class ShardItem:
    """A stored counter shard."""

    commits: int = 0
    closed: bool = False
    counts: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class World:
    """All tables, queues and files, shared by the adapters of every container."""

    claims: dict[tuple[str, str], Claim] = field(default_factory=dict)
    pages: dict[tuple[str, str], PageRecord] = field(default_factory=dict)
    hosts: dict[str, Host] = field(default_factory=dict)
    # By crawl and site.
    cookies: dict[tuple[str, str], str] = field(default_factory=dict)
    crawls: dict[str, Crawl] = field(default_factory=dict)
    shards: dict[tuple[str, int], ShardItem] = field(default_factory=dict)
    journals: dict[str, Journal] = field(default_factory=dict)
    ledgers: dict[str, Ledger] = field(default_factory=dict)
    # Every effective commit in order: the crawl, its ledger, its counts.
    commits: list[tuple[str, Ledger, Counts]] = field(default_factory=list)
    strikes: dict[str, int] = field(default_factory=dict)
    # By crawl and part. Counted host pages by crawl and host, and their URLs also by pack.
    budgets: dict[tuple[str, str], BudgetState] = field(default_factory=dict)
    # Spent by deliveries whose journals did not win. No counter has it.
    spent_in_vain: Counter[tuple[str, str]] = field(default_factory=Counter)
    host_pages: dict[tuple[str, str], int] = field(default_factory=dict)
    counted: dict[tuple[str, str, str], frozenset[str]] = field(default_factory=dict)
    parked: dict[tuple[str, str], str] = field(default_factory=dict)
    # By crawl and host: waiting packs by place, and the leased pack.
    backlog: dict[tuple[str, str], dict[str, WaitingPack]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    # Waiting packs at the first read of an edit number, and the pack chosen then.
    looked: dict[tuple[str, str, int], tuple[WaitingPack, ...]] = field(default_factory=dict)
    taken: list[tuple[WaitingPack, tuple[WaitingPack, ...]]] = field(default_factory=list)
    out: dict[tuple[str, str], Lease] = field(
        default_factory=lambda: defaultdict(lambda: Lease(epoch=0))
    )
    sent: list[Mail] = field(default_factory=list)
    buried: list[Mail] = field(default_factory=list)
    # Receipt handles of failed messages, and their visibility timeouts in seconds.
    retried: list[tuple[str, int]] = field(default_factory=list)
    released: list[str] = field(default_factory=list)
    # Queued orders of exporters.
    ordered: list[Mail] = field(default_factory=list)
    # Received letters: receive count, and end of the visibility timeout.
    looks: dict[str, tuple[int, int]] = field(default_factory=dict)
    # Items stored by newer versions, by pack or crawl, with the message of the error.
    newer: dict[str, str] = field(default_factory=dict)
    # Examples of refused references, by crawl and reason.
    samples: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict)
    # Counts of URLs per group of similar URLs (kind), by crawl.
    kinds: dict[str, dict[str, int]] = field(default_factory=dict)
    # Crawls of which only the end is stored.
    forgotten: set[str] = field(default_factory=set)
    announced: list[tuple[Crawl, Counts]] = field(default_factory=list)
    # Announced exports, with the keys of their manifests.
    exported: list[tuple[Manifest, str]] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    schedules: dict[str, Scheduled] = field(default_factory=dict)
    catalogue: dict[str, Table] = field(default_factory=dict)

    def check(self, key: str) -> None:
        """Raise StoredNewer for an item of a newer version."""
        if key in self.newer:
            raise StoredNewer(self.newer[key])

    def total(self, crawl_id: str) -> Counter[str]:
        """Return the sums of a crawl's counters."""
        total: Counter[str] = Counter()
        for (owner, _), shard in self.shards.items():
            if owner == crawl_id:
                total.update(shard.counts)
        return total

    def claimed(self, crawl_id: str) -> Iterator[tuple[str, str]]:
        """Return the URLs that a crawl's commits claimed, with their packs."""
        for owner, ledger, _ in self.commits:
            if owner == crawl_id:
                candidates = [target.url for target in self.journals[ledger.pack].candidates]
                for place in ledger.children:
                    # A journal that replaced another can be shorter and lack this URL.
                    yield (candidates[place] if place < len(candidates) else "?"), ledger.pack

    def listed(self) -> list[Crawl]:
        """List crawls that are not erased and not of a newer version."""
        hidden = self.forgotten | self.newer.keys()
        return [crawl for crawl in self.crawls.values() if crawl.id not in hidden]

    def unreadable(self) -> tuple[UnreadableCrawl, ...]:
        """List crawls of newer versions, newest first."""
        found = [crawl for crawl in self.crawls.values() if crawl.id in self.newer]
        return tuple(
            UnreadableCrawl(
                id=crawl.id,
                name=crawl.name,
                started_at_ms=crawl.started_at_ms,
                said=self.newer[crawl.id],
            )
            for crawl in sorted(found, key=lambda crawl: -crawl.started_at_ms)
        )

    def reap(self, before_s: int) -> None:
        """Delete claims that expired before a time, like TTL."""
        for key in [key for key, claim in self.claims.items() if claim.expires_s < before_s]:
            del self.claims[key]


def write_line(world: World, request: LeaseRequest) -> None:
    """Store the pack (batch of URLs) that is leased, and record the choice."""
    key = (request.crawl, request.host)
    standing = world.backlog[key]
    looked = world.looked.get((*key, request.epoch), ())
    # A committed pack is about to leave.
    waited = [
        one
        for one in looked
        if one.place in standing and json.loads(one.body).get("pack") not in world.ledgers
    ]
    world.taken += [(one, tuple(waited)) for one in looked if one.place == request.place]
    world.out[key] = Lease(epoch=request.epoch + 1, place=request.place, holder=request.holder)


class Gated:
    """An adapter over a world."""

    def __init__(self, world: World, gate: Gate = open_gate) -> None:
        self._world = world
        self._gate = gate

    async def _do(self, effect: str, act: Callable[[], T]) -> T:
        """Perform an atomic effect between its two moments."""
        await self._gate(effect, Moment.BEFORE)
        result = act()
        await self._gate(effect, Moment.AFTER)
        return result
