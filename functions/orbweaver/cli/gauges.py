"""Crawls as metrics of Prometheus: what there is to scrape, and nothing of hosts and URLs.

Names follow OpenMetrics: the unit before `_total`, base units, one meaning a name. Labels are ids
of crawls, of which there are `CRAWLS_MAX` at most, and words of enums, so that series have a bound.

Source: the OpenMetrics specification, 1.0 (prometheus.io/docs/specs/om).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    Metric,
    StateSetMetricFamily,
)

from orbweaver.budget.billing_units import units_of
from orbweaver.budget.prices import charged, dollars
from orbweaver.control.crawl_control import Status
from orbweaver.frontier.queues import Depths
from orbweaver.model.crawl import Counts, State
from orbweaver.model.cuts import COUNTER
from orbweaver.model.outcome import Outcome
from orbweaver.model.page_record import NEEDS_RENDERING

Samples: TypeAlias = Iterable[tuple[tuple[str, ...], float]]
Read: TypeAlias = Callable[[Counts], Samples]

CRAWLS_MAX = 50
CUT = "Pages of which a part is cut or withheld"
EMPTY = "Pages that are empty until their scripts have run"


def _one(key: str) -> Read:
    return lambda total: (((), total.get(key, 0)),)


def _within(group: str) -> Read:
    """Read the counts of a group by what follows its name."""
    prefix = f"{group}."
    return lambda total: (
        ((key.removeprefix(prefix),), total[key]) for key in sorted(total) if key.startswith(prefix)
    )


def _ended(total: Counts) -> Samples:
    for outcome in Outcome:
        for labels, number in _within(outcome)(total):
            yield (outcome, *labels), number


def _items(total: Counts) -> Samples:
    found, invalid = total.get("items", 0), total.get("items_invalid", 0)
    return ((("true",), found - invalid), (("false",), invalid)) if found else ()


def _cost(total: Counts) -> Samples:
    return (((), charged(total) or 0.0),)


def _units(total: Counts) -> Samples:
    return (((term,), used) for term, used in units_of(total).by_term.items())


def _metered(total: Counts) -> Samples:
    terms = units_of(total).by_term.items()
    return (((term,), dollars({term: used})) for term, used in terms)


# What is counted of a crawl: name, unit, meaning, labels beside its id; and what reads the values
# of those labels, and a number for each, from all its counters.
_COUNTERS: tuple[tuple[str, str, str, tuple[str, ...], Read], ...] = (
    ("urls_claimed", "", "URLs that belong to the crawl", (), _one("claimed")),
    ("retries", "", "Attempts that are repeated", (), _one("retries")),
    ("deferrals", "", "URLs that came back for a slot", (), _one("deferrals")),
    ("page", "bytes", "Bytes of pages, decoded", (), _one("bytes")),
    ("urls_ended", "", "URLs that have an outcome, and why", ("outcome", "reason"), _ended),
    ("links_refused", "", "Links that never became URLs", ("reason",), _within("refused")),
    ("pages_incomplete", "", CUT, ("part",), _within(COUNTER)),
    ("pages_needing_rendering", "", EMPTY, (), _one(NEEDS_RENDERING)),
    ("items", "", "Items that rules found, and whether they fit", ("valid",), _items),
    ("cost", "dollars", "The estimate that a crawl's budget counts", (), _cost),
    ("units", "", "What AWS bills, as metered", ("term",), _units),
    ("metered", "dollars", "What that costs by list prices", ("term",), _metered),
)


def families(statuses: Sequence[Status], depths: Depths | None) -> Iterator[Metric]:
    """Make all metrics of crawls and of the queue; the queue's only where it may be read."""
    yield from _standing(statuses)
    for name, unit, meaning, labels, samples in _COUNTERS:
        family = CounterMetricFamily(
            f"orbweaver_{name}", meaning, labels=("crawl", *labels), unit=unit
        )
        for status in statuses:
            for values, number in samples(status.counters.total):
                family.add_metric((status.crawl.id, *values), number)
        yield family
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


def _queue(depths: Depths) -> Iterator[Metric]:
    waiting = GaugeMetricFamily(
        "orbweaver_queue_messages", "Messages of all crawls, about", labels=("state",)
    )
    for state in ("waiting", "in_work", "delayed"):
        waiting.add_metric((state,), getattr(depths, state))
    dead = GaugeMetricFamily("orbweaver_dead_letters", "Messages that could not be processed")
    dead.add_metric((), depths.dead)
    yield from (waiting, dead)
