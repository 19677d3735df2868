"""Define a crawl: its definition, its state, and whether its counters balance.

A crawl has an id (one run) and a name. Runs of one name share their claims, which show the URLs
that they have requested. So a second run requests nothing again within the dedup window.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from datetime import UTC, datetime
from enum import StrEnum
from types import MappingProxyType

from orbweaver.model.crawl_settings import WEEK_S, CrawlSettings
from orbweaver.model.outcome import Outcome, Refusal
from orbweaver.model.url import TRACKING_PARAMETERS, host_of
from orbweaver.model.value import value_class


class LimitPart(StrEnum):
    """Limit of a crawl from which workers reserve amounts before they spend them.

    The page limit of a host has no reservations: its pages are counted one by one.
    """

    BYTES = "bytes"
    NANODOLLARS = "nanodollars"


@value_class
class Settlement:
    """Amounts that a worker reserved and spent. The commit of its batch of URLs settles them."""

    part: LimitPart
    reserved: int
    spent: int


Counts = Mapping[str, int]

HOSTS_COUNTED_MAX = 10
# Prefix of workers' internal counters: the effect of rendering on each group of similar pages.
LEARNED = "render.kind."
# Counts claimed URLs that ended without a request, because a rule or robots.txt forbids them.
UNSPENT = "unspent"
# Fields that pausing, resuming and cancelling change.
MOVED = ("state", "stop", "paused_at_ms", "paused_ms")
DAY_S = 86_400
# Name of crawls that `orbweaver check-links` starts, or beginning of their names.
LINK_CHECK = "check-links"


class State(StrEnum):
    """State of a crawl. In `STOPPING`, queued URLs end without requests."""

    RUNNING = "running"
    PAUSED = "paused"
    STOPPING = "stopping"
    FINISHED = "finished"


class Stop(StrEnum):
    """Reason why a crawl ended."""

    FINISHED = "finished"
    MAX_PAGES = "max_pages"
    DURATION = "duration"
    BYTES = "bytes"
    DOLLARS = "dollars"
    CANCELLED = "cancelled"
    NOTHING_NEW = "nothing_new"


@value_class
class Crawl(CrawlSettings):
    """Definition and state of one run.

    `window_s` is the dedup window. 0 requests every URL again, once. Within a run, its own claims
    count for the longest possible duration of a run. So the crawl of a finite site always ends, and
    the duration can be extended during the run. A `continuous` crawl (the default crawl of bare
    URLs) has no end, and its claims expire by the window alone.
    """

    id: str
    name: str
    started_at_ms: int
    seeds_planned: int = 0
    pages_max: int = 1_000_000
    concurrency: int = 1
    # Used if `user_agents` is empty.
    user_agent: str | None = None
    # All parameters to remove from URLs. None: the default list.
    tracking: tuple[str, ...] | None = None
    continuous: bool = False
    shards: int = 1
    # Claim limit of each counter shard, if an edited page limit is no longer spread evenly.
    quotas: tuple[int, ...] = ()
    # Hosts of the first seeds. Counters refer to them by index.
    hosts_counted: tuple[str, ...] = ()
    # For a retry of failed URLs: the first run's id, depths of the seeds, seeds of the first run,
    # and folders that those seeds redirected to.
    retry_of: str | None = None
    seed_depths: tuple[int, ...] = ()
    anchors: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    # Earlier runs of the same name that this run continues, and the part of its page limit that
    # they used (frontier/resumption.py).
    resumes: tuple[str, ...] = ()
    pages_carried: int = 0
    # Number of readable pages of the previous run, if comparable (frontier/yield_drop.py).
    pages_before: int | None = None
    # Digest of the definition. Edits do not change it.
    work: str | None = None
    edits: int = 0
    # Digests of URLs and hosts that `orbweaver forget` has erased, each with its day
    # (frontier/erase_rule.py).
    erased: tuple[tuple[str, int], ...] = ()
    state: State = State.RUNNING
    stop: Stop | None = None
    finished_at_ms: int | None = None
    # Start of the current pause, and total of earlier pauses.
    paused_at_ms: int | None = None
    paused_ms: int = 0
    announced: bool = False

    @property
    def live(self) -> bool:
        """True if the crawl's URLs may still be requested: it is running or paused."""
        return self.state in (State.RUNNING, State.PAUSED)

    @property
    def pages_own(self) -> int:
        """Number of URLs that this run itself may claim, without the runs that it continues."""
        return max(0, self.pages_max - self.pages_carried)

    @property
    def references(self) -> tuple[str, ...]:
        """The crawl's starting points without duplicates: seeds, and sitemaps that a user gave."""
        return tuple(dict.fromkeys(self.seeds + self.sitemap_urls))

    @property
    def scope_urls(self) -> tuple[str, ...]:
        """URLs that define the crawl's scope: seeds of the first run, or sitemaps without seeds."""
        return self.anchors or self.seeds or self.sitemap_urls

    @property
    def removed_parameters(self) -> frozenset[str]:
        return TRACKING_PARAMETERS if self.tracking is None else frozenset(self.tracking)

    @property
    def is_link_check(self) -> bool:
        """Whether `orbweaver check-links` started the crawl."""
        return self.name == LINK_CHECK or self.name.startswith(f"{LINK_CHECK}-")

    @property
    def deadline_ms(self) -> int:
        """Time after which the crawl requests nothing, unless it is continuous."""
        return self.started_at_ms + self.duration_max_s * 1000

    def returns_at_ms(self, at_ms: int) -> int:
        """Return when a URL with a slot or an attempt at `at_ms` is looked at again.

        After the deadline it ends without a request, so it does not wait for longer.
        """
        return at_ms if self.continuous else min(at_ms, self.deadline_ms)

    def ended_ms(self, at_ms: int) -> int:
        return at_ms if self.finished_at_ms is None else self.finished_at_ms

    def ran_ms(self, at_ms: int) -> int:
        """Return the crawl's duration in ms until `at_ms` or its end, without pauses."""
        end_ms = self.ended_ms(at_ms)
        paused_ms = self.paused_ms
        if self.paused_at_ms is not None:
            paused_ms += max(0, end_ms - self.paused_at_ms)
        return max(0, end_ms - self.started_at_ms - paused_ms)

    def stale_before_ms(self, at_ms: int, window_s: int | None = None) -> int:
        """Return the time before which earlier claims of a URL do not count, in ms.

        `at_ms` is the time of the new claim, `window_s` the dedup window (None: the crawl's).
        """
        start_ms = at_ms if self.continuous else self.started_at_ms
        return start_ms - self._window_s(window_s) * 1000

    def claim_expires_s(self, at_ms: int, window_s: int | None = None) -> int:
        """Return when a claim made at `at_ms` may be deleted, in epoch seconds."""
        window_s = self._window_s(window_s)
        hold_s = window_s if self.continuous else max(window_s, WEEK_S)
        return at_ms // 1000 + max(hold_s, DAY_S)

    def deletable_s(self, kept_s: int) -> int | None:
        """Return the crawl's latest end plus `kept_s`, in epoch seconds. None: it has no end."""
        if self.continuous:
            return None
        return self.started_at_ms // 1000 + self.duration_max_s + kept_s

    def _window_s(self, window_s: int | None) -> int:
        return self.window_s if window_s is None else window_s

    def shard_quota(self, shard: int) -> int:
        """Return the part of the page limit for one counter shard."""
        if self.quotas:
            return self.quotas[shard]
        base, rest = divmod(self.pages_own, self.shards)
        return base + (1 if shard < rest else 0)


def default_crawl(at_ms: int) -> Crawl:
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
    hosts: dict[str, None] = {}
    for url in urls:
        hosts[host_of(url)] = None
        if len(hosts) == HOSTS_COUNTED_MAX:
            break
    return tuple(hosts)


def run_id(name: str, at_ms: int) -> str:
    moment = datetime.fromtimestamp(at_ms / 1000, tz=UTC)
    return f"{name}-{moment:%Y%m%d-%H%M%S}"


@value_class
class CounterShard:
    """A part of a crawl's counters. `commits` is its version, `closed` forbids further commits."""

    commits: int = 0
    closed: bool = False
    counts: Counts = field(default_factory=dict)

    @property
    def spent(self) -> int:
        """Number of claimed URLs, without URLs that needed no request."""
        return spent(self.counts)


def spent(total: Counts) -> int:
    """Return the number of URLs that count towards a page limit."""
    return total.get("claimed", 0) - total.get(UNSPENT, 0)


@value_class
class Counters:
    """Sum of all counter shards of a crawl. `learned` are internal counters of workers."""

    shards: tuple[CounterShard, ...]
    total: Counts = field(default_factory=dict)
    learned: Counts = field(default_factory=dict)

    @classmethod
    def build(cls, shards: tuple[CounterShard, ...]) -> Counters:
        total: Counter[str] = Counter()
        for shard in shards:
            total.update(shard.counts)
        learned = {key: total.pop(key) for key in tuple(total) if key.startswith(LEARNED)}
        return cls(
            shards=shards,
            total=MappingProxyType(dict(total)),
            learned=MappingProxyType(learned),
        )

    def with_uncommitted(self, counts: Counts) -> Counters:
        """Add counts that are not committed yet. Shards stay unchanged."""
        total = Counter(self.total)
        total.update({key: n for key, n in counts.items() if not key.startswith(LEARNED)})
        return replace(self, total=MappingProxyType(dict(total)))

    @property
    def claimed(self) -> int:
        return self.total.get("claimed", 0)

    @property
    def done(self) -> int:
        return sum(self.total.get(outcome, 0) for outcome in Outcome)

    @property
    def late_packs(self) -> int:
        """Number of late packs (messages with links that are requested last) that are not done."""
        return self.total.get("late_packs", 0) - self.total.get("late_packs_taken", 0)

    @property
    def late_promising(self) -> int:
        """Number of late packs with links that may bring something new."""
        barren = self.total.get("late_barren", 0) - self.total.get("late_barren_taken", 0)
        return self.late_packs - barren

    @property
    def late_links(self) -> int:
        return self.total.get("late_links", 0) - self.total.get("late_links_taken", 0)

    @property
    def retrying(self) -> int:
        """Number of failed URLs that wait for another attempt."""
        return self.total.get("retries", 0) - self.total.get("retries_taken", 0)

    def urls_left(self, crawl: Crawl) -> int:
        return max(0, crawl.pages_own - spent(self.total))

    def balance(self, crawl: Crawl) -> bool:
        """Whether every claimed URL has an outcome and every planned seed message was processed."""
        return self.claimed == self.done and self.seeds_missing(crawl) == 0

    def seeds_missing(self, crawl: Crawl) -> int:
        """Return the number of seed messages that were planned and not processed yet."""
        planned = crawl.seeds_planned + self.total.get("seeds_more", 0)
        return planned - self.total.get("seeds", 0)


def stop_reason(crawl: Crawl, counters: Counters) -> Stop:
    if crawl.stop is not None:
        return crawl.stop
    if counters.total.get(f"skipped.{Stop.DURATION}", 0):
        return Stop.DURATION
    for spent in (Stop.BYTES, Stop.DOLLARS):
        if any(counters.total.get(f"{how}.{spent}", 0) for how in ("skipped", "refused", "cut")):
            return spent
    if counters.late_packs and counters.urls_left(crawl):
        return Stop.NOTHING_NEW if ends_with(crawl, counters) else Stop.DURATION
    if counters.late_packs or counters.total.get(f"refused.{Refusal.BUDGET}", 0):
        return Stop.MAX_PAGES
    return Stop.FINISHED


def ends_with(crawl: Crawl, counters: Counters) -> bool:
    """Whether a crawl ends now, because its waiting links will probably bring nothing new."""
    return crawl.stop_when_nothing_new and not counters.late_promising


def with_state(crawl: Crawl, state: State, stop: Stop | None, at_ms: int) -> Crawl:
    """Return the crawl with the state and stop reason that a user has set at `at_ms`."""
    since_ms = crawl.paused_at_ms
    if state is State.PAUSED:
        return replace(crawl, state=state, stop=stop, paused_at_ms=since_ms or at_ms)
    paused_ms = crawl.paused_ms + (0 if since_ms is None else max(0, at_ms - since_ms))
    return replace(crawl, state=state, stop=stop, paused_at_ms=None, paused_ms=paused_ms)


def finished(crawl: Crawl, counters: Counters, at_ms: int) -> Crawl:
    return replace(
        crawl, state=State.FINISHED, stop=stop_reason(crawl, counters), finished_at_ms=at_ms
    )


DEFAULT_CRAWL = "default"
