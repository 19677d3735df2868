"""The estimated usage of a crawl."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from orbweaver.budget.billing_units import Stage, Term
from orbweaver.budget.estimate import CONTAINER_S, INIT_S, Estimate, _at_once, _containers, estimate
from orbweaver.budget.prices import dollars
from orbweaver.budget.rounds import MEMORY_MB, WORKERS, Assumptions, rounds_of
from orbweaver.model.crawl import Crawl
from orbweaver.model.crawl_settings import Bodies

CRAWL = Crawl(id="a", name="a", started_at_ms=0, delay_ms=0, concurrency=16)
PAGES = 10_000
MILLION = 1_000_000


def of(crawl: Crawl = CRAWL, pages: int = PAGES, **assumed: Any) -> Estimate:
    """Estimate a crawl with this number of pages."""
    return estimate(crawl, Assumptions(**{"pages": pages, "batch": 10, **assumed}))


def per_million(found: Estimate, pages: int = PAGES) -> float:
    return dollars(found.units.by_term) / pages * MILLION


def test_estimate_is_near_measured_usage() -> None:
    """Measured with pages of 30 KB, 50 links each, and two workers."""
    found = of(workers=2)
    terms = found.units.by_term
    # From docs/benchmarks.md: generated pages of 30 KB.
    measured = {
        Term.WRITE: 2.41,
        Term.READ_HALVES: 2.47,
        Term.SQS: 0.02,
        Term.S3_PUT: 0.006,
        Term.LOG_BYTES: 5.7,
        Term.SENT_BYTES: 820,
        Term.INVOCATIONS: 0.005,
    }
    for term, number in measured.items():
        assert terms[term] / PAGES == pytest.approx(number, rel=0.35), term
    assert 1.5 < per_million(found) < 2.2


def test_politeness_delay_raises_cost_of_single_host() -> None:
    polite = replace(CRAWL, delay_ms=1_000)
    one, many = per_million(of(polite)), per_million(of(polite, hosts=100))
    assert one > 3 * per_million(of())
    assert many < one / 2


@pytest.mark.parametrize(
    ("more", "term", "stage"),
    [
        (lambda: of(links=500), Term.WRITE, Stage.CLAIM),
        (lambda: of(links=500), Term.READ_HALVES, Stage.LOOKUP),
        (lambda: of(body_bytes=300_000), Term.SENT_BYTES, Stage.WEB),
        (lambda: of(body_bytes=300_000), Term.MB_MS, Stage.RUN),
        (lambda: of(replace(CRAWL, texts=True)), Term.MB_MS, Stage.RUN),
        (lambda: of(answer_s=10), Term.MB_MS, Stage.RUN),
        (lambda: of(memory_mb=4_096), Term.MB_MS, Stage.RUN),
        (lambda: of(pages=2 * PAGES), Term.WRITE, Stage.STORE),
        (lambda: of(replace(CRAWL, delay_ms=1_000)), Term.WRITE, Stage.HOST),
    ],
)
def test_each_assumption_raises_its_term(
    more: Callable[[], Estimate], term: Term, stage: Stage
) -> None:
    assert more().units[term, stage] > of().units[term, stage]


def test_commit_needs_two_writes_per_visit() -> None:
    visits = rounds_of(CRAWL, Assumptions(pages=PAGES, batch=10)).visits
    assert of().units[Term.WRITE, Stage.COMMIT] >= 2 * visits


def test_backlog_writes_count_only_for_crawl_with_delay() -> None:
    slow = replace(CRAWL, delay_ms=1_000)
    rounds = rounds_of(slow, Assumptions(pages=PAGES, batch=10))
    key = Term.WRITE, Stage.SEND
    assert of().units[key] == 0
    assert 4 * rounds.visits <= of(slow).units[key] <= 7 * rounds.visits
    assert of(slow).units[Term.SQS, Stage.SEND] <= rounds.visits + 1


def test_estimate_counts_writes_only_for_bodies_or_texts() -> None:
    key = Term.S3_PUT, Stage.BODIES
    nothing = replace(CRAWL, bodies=Bodies.OFF)
    assert of(nothing).units[key] == 0
    assert of(replace(nothing, texts=True)).units[key] == of().units[key] > 0


@pytest.mark.parametrize(
    ("delay_ms", "hosts", "least_s"), [(1_000, 1, 10_500), (1_000, 10, 1_050), (0, 1, 125)]
)
def test_duration_follows_pace_of_hosts(delay_ms: int, hosts: int, least_s: float) -> None:
    found = of(replace(CRAWL, delay_ms=delay_ms), hosts=hosts)
    assert found.least_s == pytest.approx(least_s)


@pytest.mark.parametrize("delay_ms", [0, 50, 60_000])
@pytest.mark.parametrize("pages", [1, 7, 10**8])
def test_any_crawl_has_an_estimate(pages: int, delay_ms: int) -> None:
    found = of(replace(CRAWL, delay_ms=delay_ms), pages=pages, links=0, body_bytes=0)
    assert found.units.by_term[Term.WRITE] >= 2 * pages


def test_estimate_counts_container_starts() -> None:
    key = Term.MB_MS, Stage.RUN
    begins = 1_000 * MEMORY_MB * INIT_S
    assert of(pages=1).units[key] > begins
    assert of(pages=1, memory_mb=2 * MEMORY_MB).units[key] > 2 * begins
    assert _containers(3, 100.0) == 3
    assert _containers(2, 10 * CONTAINER_S) == 10


@pytest.mark.parametrize(
    ("delay_ms", "assumed", "least", "most"),
    [
        (1_000, {"hosts": 1}, 2, 8),
        (1_000, {"hosts": 1_000, "pages": 1_000_000}, WORKERS, WORKERS),
        (1_000, {"hosts": 1_000, "workers": 3}, 3, 3),
        (0, {"pages": 1}, 1, 1),
        (0, {"hosts": 1_000, "pages": 1_000_000, "workers": 1_000}, 100, 1_000),
    ],
)
def test_number_of_containers_is_within_limits(
    delay_ms: int, assumed: dict[str, int], least: int, most: int
) -> None:
    crawl = replace(CRAWL, delay_ms=delay_ms)
    known = Assumptions(**{"pages": PAGES, "batch": 10, **assumed})
    assert least <= _at_once(crawl, known, rounds_of(crawl, known)) <= most


def test_more_workers_look_up_more_links() -> None:
    key = Term.READ_HALVES, Stage.LOOKUP
    few, many = of(workers=1), of(workers=50)
    assert many.units[key] > 5 * few.units[key]
