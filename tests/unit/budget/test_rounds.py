"""Estimate of rounds (about a minute in which a worker keeps a host): causes and limits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from orbweaver.budget.rounds import Assumptions, Rounds, pack_urls, rounds_of
from orbweaver.model.crawl import Crawl
from orbweaver.model.target import PACK_TARGETS_MAX

CRAWL = Crawl(id="a", name="a", started_at_ms=0, delay_ms=1_000)
PAGES = 60_000


def of(crawl: Crawl = CRAWL, pages: int = PAGES, **assumed: Any) -> Rounds:
    """Estimate a crawl with this number of pages."""
    return rounds_of(crawl, Assumptions(**{"pages": pages, "batch": 10, **assumed}))


def seconds_a_page(crawl: Crawl = CRAWL, pages: int = PAGES, **assumed: Any) -> float:
    return of(crawl, pages, **assumed).seconds / pages


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
def test_rounds_of_any_crawl_are_within_limits(  # noqa: PLR0913 - all that an estimate goes by
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
    found = of(
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
    assert 1 <= found.invocations <= found.deliveries * 1.0001
    assert found.deliveries <= found.invocations * batch * 1.0001
    assert 1 <= found.visits <= found.deliveries * 1.0001
    assert found.visits <= max(1, pages * 1.0001)
    assert found.packs <= max(1, pages * 1.0001)
    assert 0 < found.hosts <= batch * 1.0001
    assert 0 < found.at_once <= workers * 1.0001


@pytest.mark.parametrize("hosts", [1, 100])
@pytest.mark.parametrize("delay_ms", [250, 1_000, 4_000])
def test_cost_per_page_is_constant_for_long_crawl(delay_ms: int, hosts: int) -> None:
    polite = replace(CRAWL, delay_ms=delay_ms)
    few, many = (of(polite, hosts * pages, hosts=hosts) for pages in (1_500, 60_000))
    for name in ("deliveries", "visits", "seconds"):
        assert getattr(many, name) == pytest.approx(40 * getattr(few, name), rel=0.05), name


def test_distant_slot_returns_pack() -> None:
    slow = replace(CRAWL, delay_ms=4_000)
    one, many = (of(slow, hosts * 1_500, hosts=hosts) for hosts in (1, 100))
    assert one.visits == pytest.approx(1_500)
    assert many.visits < 100 * 1_500 / 4
    small = of(slow, 1_500, memory_mb=256)
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
        ({"hosts": 100, "memory_mb": 1_024}, {"hosts": 100, "memory_mb": 512}),
        # With this much memory, a function waits for a host only together with other hosts.
        ({"hosts": 10, "memory_mb": 512}, {"hosts": 10, "memory_mb": 2_048}),
    ],
)
def test_each_slower_condition_costs_more(less: dict[str, Any], more: dict[str, Any]) -> None:
    costs = []
    for assumed in (less, more):
        known = dict(assumed)
        costs.append(seconds_a_page(replace(CRAWL, delay_ms=known.pop("delay_ms", 1_000)), **known))
    assert costs[0] < costs[1]


def test_few_workers_take_longer_and_cost_the_same() -> None:
    few, many = (of(pages=6_000_000, hosts=1_000, workers=workers) for workers in (5, 1_000))
    assert few.deliveries == pytest.approx(many.deliveries)
    assert few.seconds == pytest.approx(many.seconds, rel=0.1)
    assert few.at_once <= 5 < many.at_once / 4


def test_slow_hosts_prolong_end_of_crawl() -> None:
    quick = replace(CRAWL, delay_ms=100)
    assert seconds_a_page(quick, hosts=50) > 0
    one, many = of(quick, 1_000), of(quick, 50_000, hosts=50)
    assert many.seconds / many.at_once > 2 * one.seconds / one.at_once


def test_pack_urls_grows_with_links_up_to_limit() -> None:
    sizes = [pack_urls(links) for links in (2, 10, 25, 80, 150, 600, 10_000)]
    assert sizes == sorted(sizes)
    assert 12 < pack_urls(80) < 15
    assert 20 < pack_urls(600) < PACK_TARGETS_MAX
    assert pack_urls(0) == pack_urls(0.5) == PACK_TARGETS_MAX
    assert max(sizes) <= PACK_TARGETS_MAX
