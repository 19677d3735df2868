"""Crawls as metrics of Prometheus: what there is to scrape, and nothing of hosts and URLs.

Names follow OpenMetrics: the unit before `_total`, base units, one meaning a name. Labels are ids
of crawls, of which there are `CRAWLS_MAX` at most, and words of enums, so that series have a bound.

Source: the OpenMetrics specification, 1.0 (prometheus.io/docs/specs/om).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    StateSetMetricFamily,
)

from orbweaver.budget.billing_units import units_of
from orbweaver.budget.prices import charged, dollars
from orbweaver.cli.stack import Depths
from orbweaver.control.crawl_control import Status
from orbweaver.model.crawl import Counts, State
from orbweaver.model.cuts import COUNTER
from orbweaver.model.outcome import Outcome

if TYPE_CHECKING:
    from prometheus_client.core import Metric

CRAWLS_MAX = 50
# What is counted once a crawl: key of its counters, name, unit, meaning.
_PLAIN = (
    ("claimed", "orbweaver_urls_claimed", "", "URLs that belong to the crawl"),
    ("retries", "orbweaver_retries", "", "Attempts that are repeated"),
    ("deferrals", "orbweaver_deferrals", "", "URLs that came back for a slot"),
    ("bytes", "orbweaver_page", "bytes", "Bytes of pages, decoded"),
)


def families(statuses: Sequence[Status], depths: Depths | None) -> Iterator[Metric]:
    """Make all metrics of crawls and of the queue; the queue's only where it may be read."""
    yield from _standing(statuses)
    for key, name, unit, meaning in _PLAIN:
        plain = CounterMetricFamily(name, meaning, labels=("crawl",), unit=unit)
        for status in statuses:
            plain.add_metric((status.crawl.id,), status.counters.total.get(key, 0))
        yield plain
    yield _ended(statuses)
    yield _refused(statuses)
    yield _incomplete(statuses)
    yield _items(statuses)
    yield from _spent(statuses)
    if depths is not None:
        yield from _queue(depths)


def _standing(statuses: Sequence[Status]) -> Iterator[Metric]:
    states = StateSetMetricFamily(
        "orbweaver_crawl_state", "The state that a crawl is in", labels=("crawl",)
    )
    begun = GaugeMetricFamily(
        "orbweaver_crawl_start_timestamp", "When a crawl began", labels=("crawl",), unit="seconds"
    )
    for status in statuses:
        crawl = status.crawl
        states.add_metric((crawl.id,), {str(state): crawl.state is state for state in State})
        begun.add_metric((crawl.id,), crawl.started_at_ms / 1000)
    yield from (states, begun)


def _ended(statuses: Sequence[Status]) -> Metric:
    labels = ("crawl", "outcome", "reason")
    ended = CounterMetricFamily(
        "orbweaver_urls_ended", "URLs that have an outcome, and why", labels=labels
    )
    for status in statuses:
        for outcome in Outcome:
            for reason, number in _within(status.counters.total, outcome):
                ended.add_metric((status.crawl.id, outcome, reason), number)
    return ended


def _refused(statuses: Sequence[Status]) -> Metric:
    refused = CounterMetricFamily(
        "orbweaver_links_refused", "Links that never became URLs", labels=("crawl", "reason")
    )
    for status in statuses:
        for reason, number in _within(status.counters.total, "refused"):
            refused.add_metric((status.crawl.id, reason), number)
    return refused


def _incomplete(statuses: Sequence[Status]) -> Metric:
    name, help_ = "orbweaver_pages_incomplete", "Pages of which a part is cut or withheld"
    incomplete = CounterMetricFamily(name, help_, labels=("crawl", "part"))
    for status in statuses:
        for part, number in _within(status.counters.total, COUNTER):
            incomplete.add_metric((status.crawl.id, part), number)
    return incomplete


def _items(statuses: Sequence[Status]) -> Metric:
    items = CounterMetricFamily(
        "orbweaver_items", "Items that rules found, and whether they fit", labels=("crawl", "valid")
    )
    for status in statuses:
        total = status.counters.total
        found, invalid = total.get("items", 0), total.get("items_invalid", 0)
        if found:
            items.add_metric((status.crawl.id, "true"), found - invalid)
            items.add_metric((status.crawl.id, "false"), invalid)
    return items


def _spent(statuses: Sequence[Status]) -> Iterator[Metric]:
    estimate = CounterMetricFamily(
        "orbweaver_cost",
        "The estimate that a crawl's budget counts",
        labels=("crawl",),
        unit="dollars",
    )
    labels = ("crawl", "term")
    units = CounterMetricFamily("orbweaver_units", "What AWS bills, as metered", labels=labels)
    metered = CounterMetricFamily(
        "orbweaver_metered", "What that costs by list prices", labels=labels, unit="dollars"
    )
    for status in statuses:
        crawl, total = status.crawl.id, status.counters.total
        estimate.add_metric((crawl,), charged(total) or 0.0)
        for term, number in units_of(total).by_term.items():
            units.add_metric((crawl, term), number)
            metered.add_metric((crawl, term), dollars({term: number}))
    yield from (estimate, units, metered)


def _queue(depths: Depths) -> Iterator[Metric]:
    waiting = GaugeMetricFamily(
        "orbweaver_queue_messages", "Messages of all crawls, about", labels=("state",)
    )
    for state in ("waiting", "in_work", "delayed"):
        waiting.add_metric((state,), getattr(depths, state))
    dead = GaugeMetricFamily("orbweaver_dead_letters", "Messages that could not be processed")
    dead.add_metric((), depths.dead)
    yield from (waiting, dead)


def _within(total: Counts, group: str) -> Iterator[tuple[str, int]]:
    """List the counts of a group by what follows its name."""
    prefix = f"{group}."
    for key in sorted(key for key in total if key.startswith(prefix)):
        yield key.removeprefix(prefix), total[key]
