"""The state that AWS would hold, and the gate that every effect on it passes."""

from __future__ import annotations

import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias, TypeVar

from orbweaver.budget.budget_rules import BudgetState
from orbweaver.control.schedule import Scheduled
from orbweaver.exporting.manifest import Manifest
from orbweaver.frontier.backlog import Beginning, Line, WaitingPack
from orbweaver.frontier.claims import Unreadable
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
    """Which side of an effect the gate stands on."""

    BEFORE = "before"
    AFTER = "after"


Gate: TypeAlias = Callable[[str, Moment], Awaitable[None]]


async def open_gate(_effect: str, _moment: Moment) -> None:
    """Let everything pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """An item of the `urls` table."""

    url: str
    pack: str
    at_ms: int
    expires_s: int
    crawl: str = ""
    depth: int = 0
    # The one that had lapsed, in whose place it stands.
    was: Claim | None = None
    # Nobody has asked for it, and nobody will: it holds within its run alone.
    unasked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """A message as sent: `reason` and `at_ms` only on the dead-letter queue.

    One of the source `SEEDS` lies on the seed queue, or came from there.
    """

    body: str
    delay_s: int = 0
    group: str = ""
    express: bool = False
    reason: str | None = None
    at_ms: int = 0
    # Since when it waits for a newer version.
    since_ms: int | None = None
    source: MessageSource = MessageSource.PACKS
    id: str = field(default_factory=lambda: f"mail-{next(_NUMBERS)}", compare=False, repr=False)


@dataclass(slots=True)
class ShardItem:
    """A counter shard as stored."""

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
    # Every commit that took effect, in order: the crawl, its ledger, what it counted.
    commits: list[tuple[str, Ledger, Counts]] = field(default_factory=list)
    strikes: dict[str, int] = field(default_factory=dict)
    # By crawl and part; what was counted of hosts by crawl and host, and which URLs by pack too.
    budgets: dict[tuple[str, str], BudgetState] = field(default_factory=dict)
    # What deliveries have spent of them whose journals do not stand: no counter says so.
    spent_in_vain: Counter[tuple[str, str]] = field(default_factory=Counter)
    host_pages: dict[tuple[str, str], int] = field(default_factory=dict)
    counted: dict[tuple[str, str, str], frozenset[str]] = field(default_factory=dict)
    parked: dict[tuple[str, str], str] = field(default_factory=dict)
    # By crawl and host: what waits, by place; what is out.
    backlog: dict[tuple[str, str], dict[str, WaitingPack]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    # What waited when that was first read at so many edits; what was taken then.
    looked: dict[tuple[str, str, int], tuple[WaitingPack, ...]] = field(default_factory=dict)
    taken: list[tuple[WaitingPack, tuple[WaitingPack, ...]]] = field(default_factory=list)
    out: dict[tuple[str, str], Line] = field(
        default_factory=lambda: defaultdict(lambda: Line(edits=0))
    )
    sent: list[Mail] = field(default_factory=list)
    buried: list[Mail] = field(default_factory=list)
    # Receipt handles of failed messages, and in how many seconds they are visible again.
    retried: list[tuple[str, int]] = field(default_factory=list)
    # What exporters are to do.
    ordered: list[Mail] = field(default_factory=list)
    # Of letters that somebody looked at: how often, and until when nobody else sees them.
    looks: dict[str, tuple[int, int]] = field(default_factory=dict)
    # What newer versions have stored, by pack or by crawl: what is said of it.
    newer: dict[str, str] = field(default_factory=dict)
    # Examples of refused references, by crawl and reason.
    samples: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict)
    # Counts of kinds, by crawl.
    kinds: dict[str, dict[str, int]] = field(default_factory=dict)
    # Crawls of which only their end is left.
    forgotten: set[str] = field(default_factory=set)
    announced: list[tuple[Crawl, Counts]] = field(default_factory=list)
    # Exports that were announced, with the keys of their manifests.
    exported: list[tuple[Manifest, str]] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    schedules: dict[str, Scheduled] = field(default_factory=dict)
    catalogue: dict[str, Table] = field(default_factory=dict)

    def check(self, key: str) -> None:
        """Raise StoredNewer for what a newer version has stored."""
        if key in self.newer:
            raise StoredNewer(self.newer[key])

    def listed(self) -> list[Crawl]:
        """Pick the crawls that are neither forgotten nor of a newer version."""
        hidden = self.forgotten | self.newer.keys()
        return [crawl for crawl in self.crawls.values() if crawl.id not in hidden]

    def unreadable(self) -> tuple[Unreadable, ...]:
        """Name the crawls that newer versions have stored, newest first."""
        found = [crawl for crawl in self.crawls.values() if crawl.id in self.newer]
        return tuple(
            Unreadable(
                id=crawl.id,
                name=crawl.name,
                started_at_ms=crawl.started_at_ms,
                said=self.newer[crawl.id],
            )
            for crawl in sorted(found, key=lambda crawl: -crawl.started_at_ms)
        )

    def reap(self, before_s: int) -> None:
        """Delete claims that expired before a moment, as TTL does, sooner or later."""
        for key in [key for key, claim in self.claims.items() if claim.expires_s < before_s]:
            del self.claims[key]


def write_line(world: World, beginning: Beginning) -> None:
    """Write what is out, and note what was chosen of what."""
    key = (beginning.crawl, beginning.host)
    standing = world.backlog[key]
    looked = world.looked.get((*key, beginning.edits), ())
    # What is committed is about to leave.
    waited = [
        one
        for one in looked
        if one.place in standing and json.loads(one.body).get("pack") not in world.ledgers
    ]
    world.taken += [(one, tuple(waited)) for one in looked if one.place == beginning.place]
    world.out[key] = Line(edits=beginning.edits + 1, out=beginning.place, by=beginning.by)


class Gated:
    """An adapter over a world."""

    def __init__(self, world: World, gate: Gate = open_gate) -> None:
        """See `world` through `gate`."""
        self._world = world
        self._gate = gate

    async def _do(self, effect: str, act: Callable[[], T]) -> T:
        """Perform one atomic effect between its two moments."""
        await self._gate(effect, Moment.BEFORE)
        result = act()
        await self._gate(effect, Moment.AFTER)
        return result
