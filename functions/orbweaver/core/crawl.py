"""A crawl: what was asked for, where it stands, and whether its books balance.

A crawl has an id (one run) and a name. The name is the dedup domain: runs of one name share
their claims, so starting the same crawl again fetches nothing within its window.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

from orbweaver.core.message import DEFAULT_CRAWL
from orbweaver.core.outcome import Outcome, Refusal
from orbweaver.core.url import TRACKING_PARAMETERS

if TYPE_CHECKING:
    from orbweaver.core.identity import Headers

Tally = Mapping[str, int]

WEEK_S = 7 * 86_400
DAY_S = 86_400


class State(StrEnum):
    """Where a crawl stands; `STOPPING` drains what is queued without asking for it."""

    RUNNING = "running"
    PAUSED = "paused"
    STOPPING = "stopping"
    FINISHED = "finished"


class Scope(StrEnum):
    """Which links belong: on their page's host or domain, below a seed's path, or any."""

    HOST = "host"
    DOMAIN = "domain"
    PREFIX = "prefix"
    ANY = "any"


class Stop(StrEnum):
    """Why a crawl ended."""

    FINISHED = "finished"
    MAX_PAGES = "max_pages"
    DURATION = "duration"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Crawl:
    """The definition and state of one run.

    `window_s` is the dedup window; 0 asks for every URL again, once. A run's own claims hold as
    long as the run may last (`duration_max_s`), so a finite site always drains. A `continuous`
    crawl (the one bare URLs belong to) has no end, and its claims lapse by the window alone.
    """

    id: str
    name: str
    started_at_ms: int
    seeds: tuple[str, ...] = ()
    seeds_planned: int = 0
    scope: Scope = Scope.HOST
    depth_max: int = 20
    pages_max: int = 1_000_000
    delay_ms: int = 1_000
    concurrency: int = 1
    window_s: int = WEEK_S
    duration_max_s: int = WEEK_S
    # Regular expressions: what links must match one of, and what none may match.
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    obey_robots: bool = True
    # Whether sitemaps are read that the robots.txt of a seed's host names.
    sitemaps: bool = True
    sitemap_urls: tuple[str, ...] = ()
    user_agent: str | None = None
    # Each host sees one of them (core/identity.py); they come before `user_agent`.
    user_agents: tuple[str, ...] = ()
    # May hold secrets, so they are not shown.
    headers: Headers = field(default=(), repr=False)
    # Through the proxies, where the stack has any.
    proxied: bool = True
    # Names of the parameters that are taken out of URLs, all of them; None: the usual ones.
    tracking: tuple[str, ...] | None = None
    # Pages that name another one as canonical are left for that one.
    canonical_only: bool = False
    # Pages that ask not to be indexed are left out instead of being marked.
    noindex_skipped: bool = False
    express: bool = False
    continuous: bool = False
    shards: int = 1
    state: State = State.RUNNING
    stop: Stop | None = None
    finished_at_ms: int | None = None
    announced: bool = False

    @property
    def live(self) -> bool:
        """Whether its URLs may still be asked for."""
        return self.state in (State.RUNNING, State.PAUSED)

    @property
    def references(self) -> tuple[str, ...]:
        """What it begins with: seeds, and sitemaps that a person named; each once."""
        return tuple(dict.fromkeys(self.seeds + self.sitemap_urls))

    @property
    def stripped(self) -> frozenset[str]:
        """The parameters that its URLs do without."""
        return TRACKING_PARAMETERS if self.tracking is None else frozenset(self.tracking)

    def stale_before_ms(self, at_ms: int) -> int:
        """Claims made before this moment no longer hold; `at_ms` is the claimer's time."""
        start_ms = at_ms if self.continuous else self.started_at_ms
        return start_ms - self.window_s * 1000

    def claim_expires_s(self, at_ms: int) -> int:
        """When a claim made at `at_ms` may be deleted, in epoch seconds."""
        hold_s = self.window_s if self.continuous else max(self.window_s, self.duration_max_s)
        return at_ms // 1000 + max(hold_s, DAY_S)

    def shard_quota(self, shard: int) -> int:
        """How many claims one counter shard may take, so that all together keep `pages_max`."""
        base, rest = divmod(self.pages_max, self.shards)
        return base + (1 if shard < rest else 0)


def default_crawl(at_ms: int) -> Crawl:
    """The crawl that bare URLs on the queue belong to."""
    return Crawl(
        id=DEFAULT_CRAWL,
        name=DEFAULT_CRAWL,
        started_at_ms=at_ms,
        continuous=True,
        depth_max=5,
        shards=16,
        pages_max=100_000_000,
    )


def run_id(name: str, at_ms: int) -> str:
    """Name one run of a crawl: its name and its start, to the second."""
    moment = datetime.fromtimestamp(at_ms / 1000, tz=UTC)
    return f"{name}-{moment:%Y%m%d-%H%M%S}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """One counter shard as read: `commits` is its version, `closed` forbids further commits."""

    commits: int = 0
    closed: bool = False
    tally: Tally = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    """All counters of a crawl, read together."""

    shards: tuple[Shard, ...]
    total: Tally = field(default_factory=dict)

    @classmethod
    def of(cls, shards: tuple[Shard, ...]) -> Books:
        """Add the shards up."""
        total: Counter[str] = Counter()
        for shard in shards:
            total.update(shard.tally)
        return cls(shards=shards, total=MappingProxyType(dict(total)))

    @property
    def claimed(self) -> int:
        """How many URLs belong to the crawl."""
        return self.total.get("claimed", 0)

    @property
    def done(self) -> int:
        """How many of them have an outcome."""
        return sum(self.total.get(outcome, 0) for outcome in Outcome)

    def balance(self, crawl: Crawl) -> bool:
        """Whether every claimed URL has its outcome and every planned seed was taken in."""
        return self.claimed == self.done and self.total.get("seeds", 0) == crawl.seeds_planned


def stop_reason(crawl: Crawl, books: Books) -> Stop:
    """Say why a crawl whose books balance has ended."""
    if crawl.stop is not None:
        return crawl.stop
    if books.total.get(f"skipped.{Stop.DURATION}", 0):
        return Stop.DURATION
    if books.total.get(f"refused.{Refusal.BUDGET}", 0):
        return Stop.MAX_PAGES
    return Stop.FINISHED


def finished(crawl: Crawl, books: Books, at_ms: int) -> Crawl:
    """The crawl as it stands once its books are sealed."""
    return replace(
        crawl, state=State.FINISHED, stop=stop_reason(crawl, books), finished_at_ms=at_ms
    )
