"""The estimated usage of a crawl."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from orbweaver.budget.billing_units import Stage, Term
from orbweaver.budget.estimate import (
    CONTAINER_S,
    INIT_S,
    MEMORY_MB,
    WORKERS,
    Assumptions,
    Estimate,
    Work,
    estimate,
    work_of,
)
from orbweaver.budget.prices import dollars
from orbweaver.model.crawl import Crawl
from orbweaver.model.crawl_settings import Bodies

CRAWL = Crawl(id="a", name="a", started_at_ms=0, delay_ms=0, concurrency=16)
POLITE = replace(CRAWL, delay_ms=1_000, concurrency=1)
PAGES = 10_000
MILLION = 1_000_000


def of(crawl: Crawl = CRAWL, pages: int = PAGES, **assumed: Any) -> Estimate:
    """Estimate a crawl with this number of pages."""
    return estimate(crawl, Assumptions(**{"pages": pages, "batch": 10, **assumed}))


def work(crawl: Crawl = POLITE, pages: int = 60_000, **assumed: Any) -> Work:
    return work_of(crawl, Assumptions(**{"pages": pages, "batch": 10, **assumed}))


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


def test_backlog_writes_count_only_for_crawl_with_delay() -> None:
    visits = work(pages=PAGES).visits
    key = Term.WRITE, Stage.SEND
    assert of().units[key] == 0
    assert 4 * visits <= of(POLITE).units[key] <= 7 * visits
    assert of(POLITE).units[Term.SQS, Stage.SEND] <= visits + 1


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
    # Containers are replaced after two hours.
    late = work(pages=20 * CONTAINER_S)
    starts = ceil(late.seconds / late.containers / CONTAINER_S)
    found = of(POLITE, 20 * CONTAINER_S).units[key] / 1_000 / MEMORY_MB
    assert starts > 1
    assert found - late.seconds == pytest.approx(INIT_S * late.containers * starts)


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
    assert least <= work(crawl, **{"pages": PAGES, **assumed}).containers <= most


def test_more_workers_look_up_more_links() -> None:
    key = Term.READ_HALVES, Stage.LOOKUP
    few, many = of(workers=1), of(workers=50)
    assert many.units[key] > 5 * few.units[key]


@given(
    pages=some.integers(1, 10**8),
    hosts=some.integers(1, 10**5),
    delay_ms=some.sampled_from([0, 10, 250, 1_000, 4_000, 60_000]),
    concurrency=some.integers(1, 64),
    links=some.integers(0, 5_000),
    answer_ms=some.integers(0, 20_000),
    workers=some.integers(1, 1_000),
    batch=some.integers(1, 100),
    memory_mb=some.integers(128, 10_240),
)
def test_work_of_any_crawl_is_within_limits(  # noqa: PLR0913 - all that an estimate goes by
    *,
    pages: int,
    hosts: int,
    delay_ms: int,
    concurrency: int,
    links: int,
    answer_ms: int,
    workers: int,
    batch: int,
    memory_mb: int,
) -> None:
    crawl = replace(CRAWL, delay_ms=delay_ms, concurrency=concurrency)
    found = work(
        crawl,
        pages,
        hosts=hosts,
        links=links,
        answer_s=answer_ms / 1000,
        workers=workers,
        batch=batch,
        memory_mb=memory_mb,
    )
    assert found.seconds > 0
    assert 1 <= found.invocations <= found.visits * 1.0001
    assert found.invocations <= found.files <= found.visits * 1.0001
    assert found.visits <= found.invocations * batch * 1.0001
    assert found.packs <= found.visits <= pages * 1.0001
    assert 1 <= found.hosts <= min(batch, hosts) * 1.0001
    assert 1 <= found.containers <= workers


@pytest.mark.parametrize("hosts", [1, 100])
@pytest.mark.parametrize("delay_ms", [250, 1_000, 4_000])
def test_cost_per_page_is_constant_for_long_crawl(delay_ms: int, hosts: int) -> None:
    polite = replace(POLITE, delay_ms=delay_ms)
    few, many = (work(polite, hosts * pages, hosts=hosts) for pages in (1_500, 60_000))
    for name in ("visits", "seconds"):
        assert getattr(many, name) == pytest.approx(40 * getattr(few, name), rel=0.05), name


def test_distant_slot_returns_pack() -> None:
    slow = replace(POLITE, delay_ms=4_000)
    one, many = (work(slow, hosts * 1_500, hosts=hosts) for hosts in (1, 100))
    assert one.visits == pytest.approx(1_500)
    assert many.visits < 100 * 1_500 / 4
    small = work(slow, 1_500, memory_mb=256)
    assert small.visits < one.visits / 4
    assert small.seconds > 2 * one.seconds


@pytest.mark.parametrize(
    ("less", "more"),
    [
        ({"hosts": 100}, {"hosts": 10}),
        ({"hosts": 10}, {"hosts": 1}),
        ({"hosts": 10, "delay_ms": 250}, {"hosts": 10, "delay_ms": 1_000}),
        ({"hosts": 10, "delay_ms": 1_000}, {"hosts": 10, "delay_ms": 4_000}),
        ({"hosts": 100, "workers": 5, "batch": 40}, {"hosts": 100, "workers": 5, "batch": 10}),
        ({"hosts": 10, "answer_s": 0.2}, {"hosts": 10, "answer_s": 2.0}),
        (
            {"hosts": 100, "batch": 40, "memory_mb": 512},
            {"hosts": 100, "batch": 40, "memory_mb": 128},
        ),
        # With this much memory, a function waits for a host only together with other hosts.
        ({"hosts": 10, "memory_mb": 512}, {"hosts": 10, "memory_mb": 2_048}),
    ],
)
def test_each_slower_condition_costs_more(less: dict[str, Any], more: dict[str, Any]) -> None:
    costs = []
    for assumed in (less, more):
        known = dict(assumed)
        crawl = replace(POLITE, delay_ms=known.pop("delay_ms", 1_000))
        costs.append(work(crawl, **known).seconds)
    assert costs[0] < costs[1]


def test_few_workers_take_longer_and_cost_the_same() -> None:
    few, many = (work(pages=6_000_000, hosts=1_000, workers=workers) for workers in (5, 1_000))
    assert few.visits == pytest.approx(many.visits)
    assert few.seconds == pytest.approx(many.seconds, rel=0.1)
    assert few.containers <= 5 < many.containers / 4
