"""Prometheus metrics of crawls, without hosts and URLs.

Names follow OpenMetrics: unit before `_total`, base units, one meaning per name. Labels are at most
`CRAWLS_MAX` crawl ids, and members of enums. So the number of series is bounded.

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
CUT = "Pages with truncated or omitted parts"
LOST = "Responses that asked for another login"
EMPTY = "Pages that are empty until their scripts run"


def _one(key: str) -> Read:
    return lambda total: (((), total.get(key, 0)),)


def _within(group: str) -> Read:
    """Return a reader of the counters `<group>.<label>`, which yields label and number."""
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


def _logins(total: Counts) -> Samples:
    pairs = (("true", "logins"), ("false", "logins_failed"))
    return (((label,), total[key]) for label, key in pairs if key in total)


def _cost(total: Counts) -> Samples:
    return (((), charged(total) or 0.0),)


def _units(total: Counts) -> Samples:
    return (((term,), used) for term, used in units_of(total).by_term.items())


def _metered(total: Counts) -> Samples:
    terms = units_of(total).by_term.items()
    return (((term,), dollars({term: used})) for term, used in terms)


# Metrics of a crawl: name, unit, meaning, labels in addition to the crawl's id, and a reader. The
# reader yields label values and numbers from the crawl's counters.
_COUNTERS: tuple[tuple[str, str, str, tuple[str, ...], Read], ...] = (
    ("urls_claimed", "", "URLs that belong to the crawl", (), _one("claimed")),
    ("retries", "", "Repeated attempts", (), _one("retries")),
    ("deferrals", "", "URLs deferred to a later slot", (), _one("deferrals")),
    ("page", "bytes", "Bytes of pages, decoded", (), _one("bytes")),
    ("urls_ended", "", "URLs with an outcome, by reason", ("outcome", "reason"), _ended),
    ("links_refused", "", "Refused links", ("reason",), _within("refused")),
    ("pages_incomplete", "", CUT, ("part",), _within(COUNTER)),
    ("pages_needing_rendering", "", EMPTY, (), _one(NEEDS_RENDERING)),
    ("logins", "", "Logins at sites, by success", ("successful",), _logins),
    ("sessions_lost", "", LOST, (), _one("session_lost")),
    ("items", "", "Extracted items, by validity", ("valid",), _items),
    ("cost", "dollars", "Estimated cost that counts towards the budget", (), _cost),
    ("units", "", "Metered AWS usage in billing units", ("term",), _units),
    ("metered", "dollars", "Cost of the metered usage at list prices", ("term",), _metered),
)


def families(statuses: Sequence[Status], depths: Depths | None) -> Iterator[Metric]:
    """Yield all metrics of crawls, and of the queues if `depths` is given."""
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
    states = StateSetMetricFamily("orbweaver_crawl_state", "State of a crawl", labels=("crawl",))
    begun = GaugeMetricFamily(
        "orbweaver_crawl_start_timestamp",
        "Start time of a crawl",
        labels=("crawl",),
        unit="seconds",
    )
    for status in statuses:
        crawl = status.crawl
        states.add_metric((crawl.id,), {str(state): crawl.state is state for state in State})
        begun.add_metric((crawl.id,), crawl.started_at_ms / 1000)
    yield from (states, begun)


def _queue(depths: Depths) -> Iterator[Metric]:
    waiting = GaugeMetricFamily(
        "orbweaver_queue_messages",
        "Approximate number of messages of all crawls",
        labels=("state",),
    )
    for state in ("waiting", "in_work", "delayed"):
        waiting.add_metric((state,), getattr(depths, state))
    dead = GaugeMetricFamily("orbweaver_dead_letters", "Messages that could not be processed")
    dead.add_metric((), depths.dead)
    yield from (waiting, dead)
