"""A crawl: what was asked for, its state, and whether its counters balance.

A crawl has an id (one run) and a name. The name is the dedup domain: runs of one name share
their claims, so starting the same crawl again fetches nothing within its window.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from types import MappingProxyType

from orbweaver.model.crawl_settings import WEEK_S, CrawlSettings
from orbweaver.model.outcome import Outcome, Refusal
from orbweaver.model.url import TRACKING_PARAMETERS, host_of

Counts = Mapping[str, int]

HOSTS_COUNTED_MAX = 10
# Counters that workers keep for themselves: what rendering pages of a kind has shown.
LEARNED = "render.kind."
# Counts URLs that were claimed, and ended without a request by what forbids them.
UNSPENT = "unspent"
# What a person's pausing, resuming or cancelling changes of a crawl.
MOVED = ("state", "stop", "paused_at_ms", "paused_ms")
DAY_S = 86_400


class State(StrEnum):
    """Where a crawl stands; `STOPPING` drains what is queued without asking for it."""

    RUNNING = "running"
    PAUSED = "paused"
    STOPPING = "stopping"
    FINISHED = "finished"


class Stop(StrEnum):
    """Why a crawl ended."""

    FINISHED = "finished"
    MAX_PAGES = "max_pages"
    DURATION = "duration"
    BYTES = "bytes"
    DOLLARS = "dollars"
    CANCELLED = "cancelled"
    NOTHING_NEW = "nothing_new"


@dataclass(frozen=True, slots=True, kw_only=True)
class Crawl(CrawlSettings):
    """The definition and state of one run.

    `window_s` is the dedup window; 0 asks for every URL again, once. A run's own claims hold as
    long as any run may last, so a finite site always drains, and it may be given more time while
    it runs. A `continuous` crawl (the one bare URLs belong to) has no end, and its claims lapse by
    the window alone.
    """

    id: str
    name: str
    started_at_ms: int
    seeds_planned: int = 0
    pages_max: int = 1_000_000
    concurrency: int = 1
    # `user_agents` come before it.
    user_agent: str | None = None
    # Names of the parameters that are taken out of URLs, all of them; None: the usual ones.
    tracking: tuple[str, ...] | None = None
    continuous: bool = False
    shards: int = 1
    # What each shard may claim, where the budget was edited and is not spread evenly any more.
    quotas: tuple[int, ...] = ()
    # The first hosts it begins at; the counters count their URLs by their places here.
    hosts_counted: tuple[str, ...] = ()
    # Of a run that asks again for what failed in another one: which, how deep its seeds lie, where
    # that one began, and the folders that its seeds led to.
    retry_of: str | None = None
    seed_depths: tuple[int, ...] = ()
    anchors: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    # The earlier runs of its name that it goes on from, and how much of its limit these have used
    # (frontier/resumption.py).
    resumes: tuple[str, ...] = ()
    pages_carried: int = 0
    # How many pages the run before it could read, where it may be compared
    # (frontier/yield_drop.py).
    pages_before: int | None = None
    # What was asked for, as a digest: an edit does not change that.
    work: str | None = None
    edits: int = 0
    state: State = State.RUNNING
    stop: Stop | None = None
    finished_at_ms: int | None = None
    # Since when it is paused, and for how long it was before.
    paused_at_ms: int | None = None
    paused_ms: int = 0
    announced: bool = False

    @property
    def live(self) -> bool:
        """Whether its URLs may still be asked for."""
        return self.state in (State.RUNNING, State.PAUSED)

    @property
    def pages_own(self) -> int:
        """How many URLs it may claim itself, beside those of the runs that it goes on from."""
        return max(0, self.pages_max - self.pages_carried)

    @property
    def references(self) -> tuple[str, ...]:
        """What it begins with: seeds, and sitemaps that a person named; each once."""
        return tuple(dict.fromkeys(self.seeds + self.sitemap_urls))

    @property
    def anchored(self) -> tuple[str, ...]:
        """What its scope is measured by: the seeds of the first run, or sitemaps alone."""
        return self.anchors or self.seeds or self.sitemap_urls

    @property
    def stripped(self) -> frozenset[str]:
        """The parameters that its URLs do without."""
        return TRACKING_PARAMETERS if self.tracking is None else frozenset(self.tracking)

    def ended_ms(self, at_ms: int) -> int:
        """When it ended, or the moment by which it has not."""
        return at_ms if self.finished_at_ms is None else self.finished_at_ms

    def ran_ms(self, at_ms: int) -> int:
        """How long it ran, or has been running by a moment, without its pauses."""
        end_ms = self.ended_ms(at_ms)
        paused_ms = self.paused_ms
        if self.paused_at_ms is not None:
            paused_ms += max(0, end_ms - self.paused_at_ms)
        return max(0, end_ms - self.started_at_ms - paused_ms)

    def stale_before_ms(self, at_ms: int, window_s: int | None = None) -> int:
        """Claims made before this moment no longer hold; `at_ms` is the claimer's time.

        `window_s` is the window of URLs that have one of their own, by a rule.
        """
        start_ms = at_ms if self.continuous else self.started_at_ms
        return start_ms - self._window_s(window_s) * 1000

    def claim_expires_s(self, at_ms: int, window_s: int | None = None) -> int:
        """When a claim made at `at_ms` may be deleted, in epoch seconds; `window_s` as above."""
        window_s = self._window_s(window_s)
        hold_s = window_s if self.continuous else max(window_s, WEEK_S)
        return at_ms // 1000 + max(hold_s, DAY_S)

    def deletable_s(self, kept_s: int) -> int | None:
        """When it may be deleted: so long after its last possible moment; None: it has none."""
        if self.continuous:
            return None
        return self.started_at_ms // 1000 + self.duration_max_s + kept_s

    def _window_s(self, window_s: int | None) -> int:
        return self.window_s if window_s is None else window_s

    def shard_quota(self, shard: int) -> int:
        """How many claims one counter shard may take, so that all together keep `pages_max`."""
        if self.quotas:
            return self.quotas[shard]
        base, rest = divmod(self.pages_own, self.shards)
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


def first_hosts(urls: Iterable[str]) -> tuple[str, ...]:
    """List the hosts that have counters of their own."""
    hosts: dict[str, None] = {}
    for url in urls:
        hosts[host_of(url)] = None
        if len(hosts) == HOSTS_COUNTED_MAX:
            break
    return tuple(hosts)


def run_id(name: str, at_ms: int) -> str:
    """Name one run of a crawl: its name and its start, to the second."""
    moment = datetime.fromtimestamp(at_ms / 1000, tz=UTC)
    return f"{name}-{moment:%Y%m%d-%H%M%S}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterShard:
    """One counter shard as read: `commits` is its version, `closed` forbids further commits."""

    commits: int = 0
    closed: bool = False
    counts: Counts = field(default_factory=dict)

    @property
    def spent(self) -> int:
        """How much of its quota is used: what was claimed and not given back unasked."""
        return spent(self.counts)


def spent(total: Counts) -> int:
    """Count the URLs that a page limit is used up by: those claimed, and asked for or still out."""
    return total.get("claimed", 0) - total.get(UNSPENT, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """All counters of a crawl, read together; `learned` are those that say nothing to people."""

    shards: tuple[CounterShard, ...]
    total: Counts = field(default_factory=dict)
    learned: Counts = field(default_factory=dict)

    @classmethod
    def of(cls, shards: tuple[CounterShard, ...]) -> Counters:
        """Add the shards up."""
        total: Counter[str] = Counter()
        for shard in shards:
            total.update(shard.counts)
        learned = {key: total.pop(key) for key in tuple(total) if key.startswith(LEARNED)}
        return cls(
            shards=shards,
            total=MappingProxyType(dict(total)),
            learned=MappingProxyType(learned),
        )

    def plus(self, counts: Counts) -> Counters:
        """Add what is yet to be counted; shards stay as they were read."""
        total = Counter(self.total)
        total.update({key: n for key, n in counts.items() if not key.startswith(LEARNED)})
        return replace(self, total=MappingProxyType(dict(total)))

    @property
    def claimed(self) -> int:
        """How many URLs belong to the crawl."""
        return self.total.get("claimed", 0)

    @property
    def done(self) -> int:
        """How many of them have an outcome."""
        return sum(self.total.get(outcome, 0) for outcome in Outcome)

    @property
    def late(self) -> int:
        """How many late packs wait, or are in work (frontier/late.py)."""
        return self.total.get("late_packs", 0) - self.total.get("late_packs_taken", 0)

    @property
    def late_promising(self) -> int:
        """How many of them hold links of kinds that are not known to bring next to nothing."""
        barren = self.total.get("late_barren", 0) - self.total.get("late_barren_taken", 0)
        return self.late - barren

    @property
    def late_links(self) -> int:
        """How many links wait in them."""
        return self.total.get("late_links", 0) - self.total.get("late_links_taken", 0)

    @property
    def retrying(self) -> int:
        """How many URLs have failed and wait for another attempt."""
        return self.total.get("retries", 0) - self.total.get("retries_taken", 0)

    def left(self, crawl: Crawl) -> int:
        """How many more URLs a crawl may claim."""
        return max(0, crawl.pages_own - spent(self.total))

    def balance(self, crawl: Crawl) -> bool:
        """Whether every claimed URL has its outcome and every planned seed was taken in."""
        return self.claimed == self.done and self.seeds_missing(crawl) == 0

    def seeds_missing(self, crawl: Crawl) -> int:
        """How many messages of seeds were not taken in, of those planned at first and since."""
        planned = crawl.seeds_planned + self.total.get("seeds_more", 0)
        return planned - self.total.get("seeds", 0)


def stop_reason(crawl: Crawl, counters: Counters) -> Stop:
    """Say why a crawl whose counters balance has ended."""
    if crawl.stop is not None:
        return crawl.stop
    if counters.total.get(f"skipped.{Stop.DURATION}", 0):
        return Stop.DURATION
    for spent in (Stop.BYTES, Stop.DOLLARS):
        if any(counters.total.get(f"{how}.{spent}", 0) for how in ("skipped", "refused", "cut")):
            return spent
    if counters.late and counters.left(crawl):
        return Stop.NOTHING_NEW if ends_with(crawl, counters) else Stop.DURATION
    if counters.late or counters.total.get(f"refused.{Refusal.BUDGET}", 0):
        return Stop.MAX_PAGES
    return Stop.FINISHED


def ends_with(crawl: Crawl, counters: Counters) -> bool:
    """Whether a crawl is to end with the links that wait: they bring next to nothing new."""
    return crawl.stop_when_nothing_new and not counters.late_promising


def moved(crawl: Crawl, state: State, stop: Stop | None, at_ms: int) -> Crawl:
    """A crawl as it stands once a person has paused, resumed or cancelled it."""
    since_ms = crawl.paused_at_ms
    if state is State.PAUSED:
        return replace(crawl, state=state, stop=stop, paused_at_ms=since_ms or at_ms)
    paused_ms = crawl.paused_ms + (0 if since_ms is None else max(0, at_ms - since_ms))
    return replace(crawl, state=state, stop=stop, paused_at_ms=None, paused_ms=paused_ms)


def finished(crawl: Crawl, counters: Counters, at_ms: int) -> Crawl:
    """The crawl as it stands once its counters are sealed."""
    return replace(
        crawl, state=State.FINISHED, stop=stop_reason(crawl, counters), finished_at_ms=at_ms
    )


DEFAULT_CRAWL = "default"
