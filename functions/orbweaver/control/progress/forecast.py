"""Forecast a crawl's remaining time, and describe how it was estimated.

One estimate is the number of known URLs divided by the recent rate. A lower bound is the time that
the slowest host needs for its queued URLs because of its delay. If the bound is nearly as long as
the estimate, the bound is the forecast. Only known URLs count, although pages can lead to more
until the page limit is used up. There is no forecast for a paused or cancelled crawl, or if no
worker runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from orbweaver.control.crawl_control import Status
from orbweaver.control.progress.hosts import HostRow
from orbweaver.model import amounts
from orbweaver.model.crawl import Crawl, State
from orbweaver.model.url import host_of

# Minimum number of completed URLs for a forecast from the rate.
DONE_MIN = 10
# The forecast is the lower bound if the bound is at least this share of the rate's estimate.
BOUND_SHARE = 0.8
# With fewer completed URLs per host there is no forecast. Most requests are then for robots.txt,
# and do not complete a URL.
HOSTS_SHARE = 0.25


class Basis(StrEnum):
    """How a forecast was made: from the rate, the slowest host, or the time limit."""

    RATE = "rate"
    HOST = "host"
    DURATION = "duration"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Remaining time (None if unknown), how it was estimated, and both as text."""

    left_s: float | None = None
    basis: Basis = Basis.NONE
    words: str = ""


def forecast(
    status: Status, per_s: float, hosts: Sequence[HostRow], *, idle: bool = False
) -> Forecast:
    """Forecast a crawl's remaining time. `per_s` is the recent rate, `idle`: no worker runs."""
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
