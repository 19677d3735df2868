"""Forecast a crawl's remaining time from its rate, and describe how it was estimated.

One estimate is the number of known URLs divided by the recent rate. A lower bound is the time that
the slowest host needs for its queued URLs because of its delay. If the bound is nearly as long as
the estimate, the bound is the forecast. Only known URLs count, although pages can lead to more
until the page limit is used up. There is no forecast for a paused or cancelled crawl, or if no
worker runs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache

from orbweaver.control.crawl_control import Status
from orbweaver.control.progress.hosts import HostRow
from orbweaver.model import amounts
from orbweaver.model.crawl import Crawl, State
from orbweaver.model.url import host_of
from orbweaver.model.value import value_class

# Minimum number of completed URLs for a forecast from the rate.
DONE_MIN = 10
# The forecast is the lower bound if the bound is at least this share of the rate's estimate.
BOUND_SHARE = 0.8
# With fewer completed URLs per host there is no forecast. Most requests are then for robots.txt,
# and do not complete a URL.
HOSTS_SHARE = 0.25
# The current rate is the mean over this time. A shorter time would fluctuate, because the URLs of a
# message are counted together.
WINDOW_MS = 10_000
# A bar covers this much time. URLs completed between two close readings are spread evenly over the
# time between them. A bar for a time without readings is None, not zero.
BAR_MS = 5_000
# If two readings are further apart than this, the chart has a gap. Causes are an unreachable stack,
# and a machine that was asleep.
GAP_MS = 12_000
BARS_MAX = 240


class Basis(StrEnum):
    """How a forecast was made: from the rate, the slowest host, or the time limit."""

    RATE = "rate"
    HOST = "host"
    DURATION = "duration"
    NONE = "none"


@value_class
class Forecast:
    """Remaining time (None if unknown), how it was estimated, and both as text."""

    left_s: float | None = None
    basis: Basis = Basis.NONE
    words: str = ""


def forecast(
    status: Status,
    per_s: float,
    hosts: Sequence[HostRow],
    *,
    idle: bool = False,
    queued: bool = False,
) -> Forecast:
    """Forecast a crawl's remaining time.

    `per_s` is the recent rate. `idle`: no worker runs. `queued`: messages are queued or in flight.
    """
    crawl, counters = status.crawl, status.counters
    left = max(0, counters.claimed - counters.done)
    if crawl.state is State.FINISHED:
        return Forecast()
    if crawl.state is not State.RUNNING or idle:
        why = "no worker runs" if idle and crawl.state is not State.PAUSED else crawl.state
        seeds = count_unread_seeds(status)
        known = f"{amounts.plural(seeds, 'seed')} queued" if seeds else f"{_known(left)} left"
        return Forecast(words=f"{why}: {known}")
    if not left:
        taken = counters.claimed or counters.total.get("seeds", 0)
        words = "all known URLs are done; the run ends unless it finds new links"
        if queued:  # the links of a pack become known URLs when it is committed
            words = f"{_known(left)} left{_more(status)}"
        return Forecast(words=words if taken else "starting…")
    rate_s = left / per_s if per_s > 0 and counters.done >= DONE_MIN else None
    slowest = max(hosts, key=lambda row: row.bound_ms, default=None)
    hosts_all = hosts_begun_at(crawl)
    if DONE_MIN < counters.done < hosts_all * HOSTS_SHARE:
        words = f"not known yet: {hosts_all:,} hosts need their robots.txt first"
        return Forecast(words=f"{words}; {_known(left)} left")
    found = _guess(status, left, per_s, rate_s, slowest)
    deadline_s = crawl.duration_max_s - status.elapsed_ms / 1000
    if crawl.continuous or found.left_s is None or found.left_s <= deadline_s:
        return found
    words = f"at most {amounts.roughly(deadline_s)}: its time limit ends then, and {_known(left)}"
    words += f" would take {amounts.roughly(found.left_s)}"
    return Forecast(left_s=max(0.0, deadline_s), basis=Basis.DURATION, words=words)


def count_unread_seeds(status: Status) -> int:
    """Return the number of seeds if no worker has processed a seed yet, otherwise 0."""
    begun = status.counters.claimed or status.counters.total.get("seeds", 0)
    return 0 if begun else len(status.crawl.references)


def hosts_begun_at(crawl: Crawl) -> int:
    """Return the number of hosts of a crawl's seeds, or 0 if it ignores robots.txt."""
    return _distinct(crawl.seeds, crawl.sitemap_urls) if crawl.obey_robots else 0


@lru_cache(maxsize=8)
def _distinct(*lists: tuple[str, ...]) -> int:
    return len({host_of(url) for urls in lists for url in urls})


def _guess(
    status: Status, left: int, per_s: float, rate_s: float | None, slowest: HostRow | None
) -> Forecast:
    bound_s = slowest.bound_ms / 1000 if slowest is not None else 0.0
    more = _more(status)
    if slowest is not None and bound_s > 0 and (rate_s is None or bound_s >= BOUND_SHARE * rate_s):
        site = slowest.name.partition("://")[2] or slowest.name
        queued = amounts.plural(slowest.queued or 0, "URL")
        words = f"at least {amounts.roughly(bound_s)}: {queued} left on {site}"
        words += f", one every {amounts.pace(slowest.delay_ms)}" if slowest.delay_ms else ""
        return Forecast(left_s=bound_s, basis=Basis.HOST, words=words + more)
    if rate_s is not None:
        words = f"about {amounts.roughly(rate_s)}: {_known(left)} left"
        words += f" at {amounts.rate(per_s)} a second"
        return Forecast(left_s=rate_s, basis=Basis.RATE, words=words + more)
    few = status.counters.done < DONE_MIN
    why = "too early to tell" if few else "not known: no URL has ended lately"
    return Forecast(words=f"{why}; {_known(left)} left")


def _more(status: Status) -> str:
    crawl, counters = status.crawl, status.counters
    if crawl.retry_of is not None:
        return ""
    if not counters.urls_left(crawl):
        return "; the page limit is reached"
    return "; new links make it longer"


def _known(left: int) -> str:
    return amounts.plural(left, "known URL")


@value_class
class Rates:
    """Rates in completed URLs per second. `bars` are the last bars of the chart, oldest first."""

    now: float
    mean: float
    peak: float
    bars: tuple[float | None, ...] = ()


class RateHistory:
    """Computes rates from successive readings of the number of completed URLs."""

    def __init__(self) -> None:
        self._seen: deque[tuple[int, int]] = deque()
        self._last: tuple[int, int] | None = None
        # Number of completed URLs at the end of the last bar, if known.
        self._edge: float | None = None
        self._bars: deque[float | None] = deque(maxlen=BARS_MAX)
        self._peak = 0.0

    def add(self, at_ms: int, done: int, *, started_at_ms: int, elapsed_ms: int) -> Rates:
        """Add a reading of `done` at `at_ms`, and return the rates.

        The peak is the highest whole bar, or the current or mean rate if that is higher.
        """
        now = self._now(at_ms, done, started_at_ms)
        mean = done * 1000 / elapsed_ms if elapsed_ms > 0 else 0.0
        self._fill(at_ms, done)
        # The mean of the first seconds is not stored as peak, because one committed message makes
        # it high.
        peak = max(self._peak, now, mean)
        if elapsed_ms >= BAR_MS:
            self._peak = max(self._peak, mean)
        return Rates(now=now, mean=mean, peak=peak, bars=tuple(self._bars))

    def _now(self, at_ms: int, done: int, started_at_ms: int) -> float:
        seen = self._seen
        if not done or (seen and at_ms < seen[-1][0]):
            seen.clear()  # No worker has started yet, so this time does not count.
        seen.append((at_ms, done))
        while len(seen) > 2 and seen[1][0] <= at_ms - WINDOW_MS:  # noqa: PLR2004 - two make a rate
            seen.popleft()
        # With a single reading, the current rate is the mean since the start.
        first_ms, first_done = seen[0] if len(seen) > 1 else (started_at_ms, 0)
        if at_ms <= first_ms:
            return 0.0
        return max(0.0, (done - first_done) * 1000 / (at_ms - first_ms))

    def _fill(self, at_ms: int, done: int) -> None:
        last, self._last = self._last, (at_ms, done)
        if last is None or at_ms < last[0]:  # or the clock was set back
            self._edge = None
            return
        last_ms, last_done = last
        apart_ms, end = at_ms - last_ms, at_ms // BAR_MS
        for edge in range(max(last_ms // BAR_MS + 1, end - BARS_MAX), end + 1):
            at_edge = None
            if apart_ms <= GAP_MS:
                passed = (edge * BAR_MS - last_ms) / apart_ms
                at_edge = last_done + (done - last_done) * passed
            if at_edge is not None and self._edge is not None:
                bar = max(0.0, (at_edge - self._edge) * 1000 / BAR_MS)
                self._bars.append(bar)
                self._peak = max(self._peak, bar)
            elif self._bars:
                self._bars.append(None)
            self._edge = at_edge
