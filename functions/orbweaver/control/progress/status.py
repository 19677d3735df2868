"""The status of a crawl, while it runs and once it has ended.

A meter sees one reading after another; each becomes a view, in which everything is computed that
is shown: rates, what is left and why one thinks so, hosts, budgets. Nothing here does I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orbweaver.budget import prices
from orbweaver.budget.billing_units import units_of
from orbweaver.control.crawl_control import Status
from orbweaver.control.progress import forecast, spending
from orbweaver.control.progress import hosts as hostrows
from orbweaver.control.progress.forecast import Forecast, hosts_begun_at
from orbweaver.control.progress.hosts import HostRow
from orbweaver.control.progress.rates import RateHistory, Rates
from orbweaver.control.progress.spending import Budget
from orbweaver.diagnostics.refusal_report import Spared
from orbweaver.frontier.queues import Depths
from orbweaver.model.crawl import Crawl, State
from orbweaver.model.cuts import COUNTER
from orbweaver.model.outcome import Outcome
from orbweaver.model.page_record import NEEDS_RENDERING, RENDERED
from orbweaver.politeness.host_schedule import Host

WORKING = (State.RUNNING, State.STOPPING)
# From how many pages on it is told what a page costs.
PAGES_TOLD = 100
# SQS says that its counts are right within a minute.
STALLED_MS = 60_000
# Readings come every few seconds; older ones are said to be old.
STALE_MS = 8_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusReading:
    """A crawl, its queue and the hosts of its references as read at one moment."""

    status: Status
    depths: Depths | None = None
    hosts: tuple[Host, ...] = ()
    # Whether what it uses is paid for; a store's is not.
    billed: bool = True
    # Which links wait or were spared, where that was read: what is counted may be more.
    spared: Spared | None = None
    # The reasons why single URLs wait, in words; empty for a stack.
    waiting: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A reading, and what follows from it and from those before.

    `age_ms` is how long ago it was read, `idle_ms` how long the queues had been empty by then, and
    `quiet_ms` how long no URL had ended, although the crawl runs.
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
        """The crawl as read."""
        return self.reading.status.crawl

    @property
    def ended(self) -> bool:
        """Whether the crawl is over."""
        return self.crawl.state is State.FINISHED

    @property
    def stale(self) -> bool:
        """Whether the reading is older than it should be."""
        return self.age_ms >= STALE_MS

    @property
    def now_ms(self) -> int:
        """When this is looked at."""
        return self.reading.status.at_ms + self.age_ms

    @property
    def elapsed_s(self) -> float:
        """How long the crawl has been running, or ran, without its pauses."""
        age_ms = self.age_ms if self.crawl.state in WORKING else 0
        return (self.reading.status.elapsed_ms + age_ms) / 1000

    @property
    def total(self) -> Mapping[str, int]:
        """All counters."""
        return self.reading.status.counters.total

    def of(self, outcome: str) -> int:
        """How many URLs ended so."""
        return self.total.get(outcome, 0)

    def reasons(self, group: str) -> dict[str, int]:
        """Count the reasons of an outcome (or `refused`), most frequent first."""
        found = {
            key.removeprefix(f"{group}."): number
            for key, number in self.total.items()
            if key.startswith(f"{group}.") and number
        }
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


class ProgressMeter:
    """Sees readings in the order of time."""

    def __init__(self) -> None:
        self._history = RateHistory()
        # Since when the queues are empty, or no URL has ended; and how many had ended then.
        self._since: dict[str, tuple[int, int]] = {}

    def see(self, reading: StatusReading) -> View:
        """Take one more reading in."""
        status = reading.status
        rates = self._history.see(
            status.at_ms,
            status.counters.done,
            started_at_ms=status.at_ms - status.elapsed_ms,
            elapsed_ms=status.elapsed_ms,
        )
        hosts = hostrows.rows_of(status, reading.hosts)
        working = status.crawl.state in WORKING
        empty = working and reading.depths is not None and reading.depths.idle
        return View(
            reading=reading,
            rates=rates,
            forecast=forecast.forecast(status, rates.now, hosts),
            hosts=hosts,
            budgets=spending.budgets_of(status, hosts),
            idle_ms=self._still_ms("idle", status, holds=empty),
            quiet_ms=self._still_ms("quiet", status, holds=working),
        )

    def _still_ms(self, what: str, status: Status, *, holds: bool) -> int:
        """How long something has held while no URL has ended."""
        at_ms, done = status.at_ms, status.counters.done
        if not holds:
            self._since.pop(what, None)
            return 0
        since = self._since.get(what)
        if since is None or since[1] != done:
            since = self._since[what] = (at_ms, done)
        return max(0, at_ms - since[0])


def stalled(view: View) -> bool:
    """Whether a crawl has not ended, and nothing is left that could end it."""
    return view.idle_ms >= STALLED_MS


def nothing_new(view: View) -> bool:
    """Whether a crawl ended without one URL, because all of them were seen before."""
    if not view.ended or view.reading.status.counters.claimed:
        return False
    return bool(view.crawl.resumes) or not view.reasons("refused")


def empty(view: View) -> bool:
    """Whether a crawl ended without one page, though there was something to be asked for."""
    pages = view.of(Outcome.FETCHED) + view.of(Outcome.UNCHANGED)
    return view.ended and not pages and not nothing_new(view)


def late_links(view: View) -> tuple[int, bool]:
    """How many links wait or were spared, and whether exactly so many; else it is the most."""
    spared, places = view.reading.spared, view.reading.status.counters.late_links
    return (places, not places) if spared is None else (spared.links, spared.exact)


def early(view: View) -> bool:
    """Whether too few pages are there to say what one takes: each host's robots.txt comes first."""
    wanted = max(PAGES_TOLD, hosts_begun_at(view.crawl))
    return not view.ended and view.of(Outcome.FETCHED) < wanted


def pages_per_s(view: View) -> float:
    """URLs a second as of late, of what works; of all else the pages of the whole run."""
    return view.rates.now if view.crawl.state in WORKING else view.reading.status.pages_per_s


# --- for machines -------------------------------------------------------------------------------


def as_json(view: View) -> dict[str, Any]:
    """Write a view for machines: names stay, and new ones may be added."""
    status = view.reading.status
    crawl, depths = status.crawl, view.reading.depths
    left_s, total = view.forecast.left_s, view.total
    waiting, exact = late_links(view)
    body: dict[str, Any] = {
        "crawl": crawl.id,
        "name": crawl.name,
        "state": str(crawl.state),
        "stop": None if crawl.stop is None else str(crawl.stop),
        "at_ms": status.at_ms,
        "age_s": round(view.age_ms / 1000, 3),
        "claimed": status.counters.claimed,
        "done": status.counters.done,
        "outcomes": {str(outcome): view.of(outcome) for outcome in Outcome},
        "reasons": {str(outcome): view.reasons(outcome) for outcome in Outcome},
        "refused": view.reasons("refused"),
        # Links that wait until little else is left, or were spared; else these are the most.
        "late_links": waiting,
        "late_links_exact": exact,
        "incomplete": view.reasons(COUNTER),
        "needs_rendering": view.of(NEEDS_RENDERING),
        "rendered": view.of(RENDERED),
        "retries": view.of("retries"),
        "deferrals": view.of("deferrals"),
        "bytes": view.of("bytes"),
        "items": view.of("items"),
        "items_invalid": view.of("items_invalid"),
        "elapsed_s": round(view.elapsed_s, 3),
        "pages_per_s": round(pages_per_s(view), 2),
        "rate": {name: round(getattr(view.rates, name), 2) for name in ("now", "mean", "peak")},
        "left_s": None if left_s is None else round(left_s, 1),
        "left_basis": str(view.forecast.basis),
        "left_text": view.forecast.words,
        "cost_dollars": prices.charged(total),
        # What AWS bills, by term, as far as it was counted; and what that costs.
        "units": units_of(total).by_term,
        "units_dollars": prices.metered(total),
        # The one of the two that is shown to persons.
        "spent_dollars": prices.spent(total),
        "budgets": [
            {"name": budget.name, "used": budget.used, "limit": budget.limit}
            for budget in view.budgets
        ],
        "hosts": [_host(row) for row in view.hosts],
        # Which hosts let us wait, and for how long.
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
