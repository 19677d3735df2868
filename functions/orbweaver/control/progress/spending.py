"""Describe how much of its limits a crawl has used, and its cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from orbweaver.budget.billing_units import Term, units_of
from orbweaver.budget.budget_rules import COUNTED
from orbweaver.budget.prices import charged, dollars
from orbweaver.control.crawl_control import Status
from orbweaver.control.progress.hosts import HostRow
from orbweaver.control.spec_checks import PAGES_MAX_DEFAULT
from orbweaver.model import amounts
from orbweaver.model.amounts import in_dollars
from orbweaver.model.crawl import LimitPart, spent
from orbweaver.model.crawl_settings import WEEK_S
from orbweaver.model.outcome import Outcome
from orbweaver.model.value import value_class

# A limit with its default value is omitted until this share of it is used.
MENTIONED_FROM = 0.5
CENT = 0.01
MILLION = 1_000_000


@value_class
class Budget:
    """A limit of a crawl and the amount used. `words` describes both.

    A text in `beside` replaces the percentage. A page limit has one, because a page counts as used
    as soon as its URL is claimed.
    """

    name: str
    used: float
    limit: float
    words: str
    beside: str = ""

    @property
    def said(self) -> str:
        return f"{self.name} {self.words} " + (self.beside or f"({int(self.share * 100)} %)")

    @property
    def share(self) -> float:
        return min(1.0, max(0.0, self.used / self.limit)) if self.limit > 0 else 1.0


def budgets_of(status: Status, rows: Sequence[HostRow]) -> tuple[Budget, ...]:
    crawl, total = status.crawl, status.counters.total
    if crawl.continuous:
        return ()
    of_a_host = max((row.claimed or 0 for row in rows), default=0)
    most = crawl.nanodollars_max
    # Dollars are estimated from list prices, even for an emulator, which costs nothing.
    dollars_max = None if most is None else in_dollars(most)
    # All bytes received over the network, not only bytes of pages.
    received = total.get(COUNTED[LimitPart.BYTES], total.get("bytes", 0))
    found = spent(status.counters.total) + crawl.pages_carried
    listed: tuple[tuple[str, float, float | None, Callable[[Any], str]], ...] = (
        ("pages", found, crawl.pages_max, "{:,.0f}".format),
        ("pages of a host", of_a_host, crawl.host_pages_max, "{:,.0f}".format),
        ("bytes", received, crawl.bytes_max, amounts.size),
        ("dollars", charged(total) or 0.0, dollars_max, price),
        ("duration", status.elapsed_ms / 1000, crawl.duration_max_s, amounts.clock),
    )
    beside = {"pages": f"URLs to request, {status.counters.done:,} done"}
    if free := status.counters.claimed - spent(status.counters.total):
        beside["pages"] += f", {free:,} of them refused without a request do not count"
    budgets = (
        Budget(
            name=name,
            used=used,
            limit=limit,
            words=f"{words(used)} of {words(limit)}",
            beside=beside.get(name, ""),
        )
        for name, used, limit, words in listed
        if limit is not None
    )
    usual = {"pages": PAGES_MAX_DEFAULT, "duration": WEEK_S}
    return tuple(
        budget
        for budget in budgets
        if budget.limit != usual.get(budget.name) or budget.share >= MENTIONED_FROM
    )


def price(amount: float) -> str:
    """Format dollars: cents, or two significant digits below ten cents."""
    if amount <= 0:
        return "$0"
    if amount >= 10 * CENT:
        return f"${amount:,.2f}"
    places = 3
    while places < 9 and round(amount, places) < 10 * 10**-places:  # noqa: PLR2004 - nanodollars
        places += 1
    return f"${amount:.{places}f}"


def per_million(total: Mapping[str, int]) -> str:
    """Describe the cost per million pages, and writes and reads per page. Empty if unknown."""
    units, pages = units_of(total), total.get(Outcome.FETCHED, 0)
    if not units or not pages:
        return ""
    terms, used = units.by_term, dollars(units.by_term)
    writes, reads = terms.get(Term.WRITE, 0) / pages, terms.get(Term.READ_HALVES, 0) / 2 / pages
    return (
        f"${used / pages * MILLION:,.2f} per million pages"
        f" · {writes:.2f} writes and {reads:.2f} reads a page"
    )
