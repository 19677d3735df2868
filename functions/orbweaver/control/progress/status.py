"""Compute the status of a crawl, during and after the run, from successive readings.

A view contains all values that are shown: rates, forecast, hosts, limits. This module does no I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orbweaver.budget import prices
from orbweaver.budget.billing_units import units_of
from orbweaver.control.crawl_control import Status
from orbweaver.control.progress import forecast, spending
from orbweaver.control.progress import hosts as hostrows
from orbweaver.control.progress.forecast import Forecast, RateHistory, Rates, hosts_begun_at
from orbweaver.control.progress.hosts import HostRow
from orbweaver.control.progress.spending import Budget
from orbweaver.diagnostics.refusal_report import Spared
from orbweaver.frontier.queues import Depths
from orbweaver.model.crawl import Crawl, State
from orbweaver.model.cuts import COUNTER
from orbweaver.model.outcome import Outcome
from orbweaver.model.page_record import NEEDS_RENDERING, RENDERED
from orbweaver.model.value import value_class
from orbweaver.politeness.host_schedule import Host

WORKING = (State.RUNNING, State.STOPPING)
# Minimum number of pages before a cost per page is shown.
PAGES_TOLD = 100
# A crawl is stalled if its queues are empty for this time. SQS counts messages exactly only after a
# minute.
STALLED_MS = 60_000
# A reading of this age is stale, because a crawl is read every few seconds.
STALE_MS = 8_000


@value_class
class StatusReading:
    """A crawl, its queue and the hosts of its seeds at one moment."""

    status: Status
    depths: Depths | None = None
    hosts: tuple[Host, ...] = ()
    # True if using the stack costs money. A store on one machine costs nothing.
    billed: bool = True
    # Late links (left for the end of the crawl) that wait or were not requested. None: not read.
    # The crawl's counter can be higher, because it counts some links several times.
    spared: Spared | None = None
    # Texts about URLs for which the crawl waits. Empty for a stack.
    waiting: tuple[str, ...] = ()
    # True if no worker can be running.
    idle: bool = False


@value_class
class View:
    """A reading of a crawl, and values computed from this and earlier readings.

    `age_ms` is the age of the reading, and `idle_ms` the time with empty queues. `quiet_ms` is the
    time without a completed URL while the crawl runs.
    """

    reading: StatusReading
    rates: Rates
    forecast: Forecast
    hosts: tuple[HostRow, ...] = ()
    budgets: tuple[Budget, ...] = ()
    idle_ms: int = 0
    quiet_ms: int = 0
    age_ms: int = 0

    @property
    def crawl(self) -> Crawl:
        return self.reading.status.crawl

    @property
    def ended(self) -> bool:
        return self.crawl.state is State.FINISHED

    @property
    def is_stale(self) -> bool:
        return self.age_ms >= STALE_MS

    @property
    def now_ms(self) -> int:
        return self.reading.status.at_ms + self.age_ms

    @property
    def elapsed_s(self) -> float:
        age_ms = self.age_ms if self.crawl.state in WORKING else 0
        return (self.reading.status.elapsed_ms + age_ms) / 1000

    @property
    def total(self) -> Mapping[str, int]:
        return self.reading.status.counters.total

    def count(self, outcome: str) -> int:
        return self.total.get(outcome, 0)

    def reasons(self, group: str) -> dict[str, int]:
        """Return the reasons in `group` (an outcome or `refused`) with counts, highest first."""
        found = {
            key.removeprefix(f"{group}."): number
            for key, number in self.total.items()
            if key.startswith(f"{group}.") and number
        }
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


class ProgressMeter:
    """Makes a view of each reading. Readings must be added in order of time."""

    def __init__(self) -> None:
        self._history = RateHistory()
        # For "idle" (empty queues) and "quiet" (no URL completed): since when, and the number of
        # URLs completed until then.
        self._since: dict[str, tuple[int, int]] = {}

    def add(self, reading: StatusReading) -> View:
        status = reading.status
        rates = self._history.add(
            status.at_ms,
            status.counters.done,
            started_at_ms=status.at_ms - status.elapsed_ms,
            elapsed_ms=status.elapsed_ms,
        )
        hosts = hostrows.rows_of(status, reading.hosts)
        working = status.crawl.state in WORKING
        queued = reading.depths is not None and not reading.depths.idle
        empty = working and reading.depths is not None and not queued
        return View(
            reading=reading,
            rates=rates,
            forecast=forecast.forecast(status, rates.now, hosts, idle=reading.idle, queued=queued),
            hosts=hosts,
            budgets=spending.budgets_of(status, hosts),
            idle_ms=self._still_ms("idle", status, holds=empty),
            quiet_ms=self._still_ms("quiet", status, holds=working),
        )

    def _still_ms(self, what: str, status: Status, *, holds: bool) -> int:
        at_ms, done = status.at_ms, status.counters.done
        if not holds:
            self._since.pop(what, None)
            return 0
        since = self._since.get(what)
        if since is None or since[1] != done:
            since = self._since[what] = (at_ms, done)
        return max(0, at_ms - since[0])


def is_stalled(view: View) -> bool:
    """Whether a crawl has not ended and its queues have been empty for a minute."""
    return view.idle_ms >= STALLED_MS


def found_nothing_new(view: View) -> bool:
    """Whether a crawl ended without a URL, because earlier runs had requested all its URLs."""
    if not view.ended or view.reading.status.counters.claimed:
        return False
    return bool(view.crawl.resumes) or not view.reasons("refused")


def ended_without_pages(view: View) -> bool:
    """Whether a crawl ended without a page, although it had URLs to request."""
    pages = view.count(Outcome.FETCHED) + view.count(Outcome.UNCHANGED)
    return view.ended and not pages and not found_nothing_new(view)


def count_late_links(view: View) -> tuple[int, bool]:
    """Return the number of links left for the end of the crawl, and whether it is exact."""
    spared, places = view.reading.spared, view.reading.status.counters.late_links
    return (places, not places) if spared is None else (spared.links, spared.exact)


def is_too_early(view: View) -> bool:
    """Whether too few pages are fetched for an average. A crawl fetches each robots.txt first."""
    wanted = max(PAGES_TOLD, hosts_begun_at(view.crawl))
    return not view.ended and view.count(Outcome.FETCHED) < wanted


def pages_per_s(view: View) -> float:
    if view.crawl.state in WORKING:
        return 0.0 if view.reading.idle else view.rates.now
    return view.reading.status.pages_per_s


# --- for machines -------------------------------------------------------------------------------


def as_json(view: View) -> dict[str, Any]:
    """Return a view as a JSON object for programs.

    The keys are stable. Releases can add keys.
    """
    status = view.reading.status
    crawl, depths = status.crawl, view.reading.depths
    left_s, total = view.forecast.left_s, view.total
    waiting, exact = count_late_links(view)
    body: dict[str, Any] = {
        "crawl": crawl.id,
        "name": crawl.name,
        "state": str(crawl.state),
        "stop": None if crawl.stop is None else str(crawl.stop),
        "at_ms": status.at_ms,
        "age_s": round(view.age_ms / 1000, 3),
        "claimed": status.counters.claimed,
        "done": status.counters.done,
        "outcomes": {str(outcome): view.count(outcome) for outcome in Outcome},
        "reasons": {str(outcome): view.reasons(outcome) for outcome in Outcome},
        "refused": view.reasons("refused"),
        # Late links that wait or were not requested. The number is an upper bound if not exact.
        "late_links": waiting,
        "late_links_exact": exact,
        "incomplete": view.reasons(COUNTER),
        "needs_rendering": view.count(NEEDS_RENDERING),
        "rendered": view.count(RENDERED),
        "retries": view.count("retries"),
        "deferrals": view.count("deferrals"),
        "logins": view.count("logins"),
        "logins_failed": view.count("logins_failed"),
        "session_lost": view.count("session_lost"),
        "bytes": view.count("bytes"),
        "items": view.count("items"),
        "items_invalid": view.count("items_invalid"),
        "elapsed_s": round(view.elapsed_s, 3),
        "pages_per_s": round(pages_per_s(view), 2),
        "rate": {name: round(getattr(view.rates, name), 2) for name in ("now", "mean", "peak")},
        "left_s": None if left_s is None else round(left_s, 1),
        "left_basis": str(view.forecast.basis),
        "left_text": view.forecast.words,
        "cost_dollars": prices.charged(total),
        # Metered AWS usage by term, and its cost.
        "units": units_of(total).by_term,
        "units_dollars": prices.metered(total),
        # The dollars that people see: the metered cost, or else the amount charged to the budget.
        "spent_dollars": prices.spent(total),
        "budgets": [
            {"name": budget.name, "used": budget.used, "limit": budget.limit}
            for budget in view.budgets
        ],
        "hosts": [_host(row) for row in view.hosts],
        # Hosts that delay the crawl, with the time of the next request and the reason.
        "waiting": {row.name: row.words for row in view.hosts if row.waits},
    }
    if depths is not None:
        numbers = ("waiting", "in_work", "delayed", "dead")
        body["queue"] = {name: getattr(depths, name) for name in numbers}
    return body


def _host(row: HostRow) -> dict[str, Any]:
    numbers = ("claimed", "done", "queued", "failed", "delay_ms")
    return {
        "host": row.name,
        **{name: getattr(row, name) for name in numbers},
        "standing": str(row.standing),
        "wait_ms": row.wait_ms,
        "why": row.why or None,
        "no_robots": row.no_robots or None,
    }
