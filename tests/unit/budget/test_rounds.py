"""How often URLs go round: what it must be more for, and what it must not exceed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from orbweaver.budget.rounds import Assumed, Rounds, pack_urls, rounds_of
from orbweaver.model.crawl import Crawl
from orbweaver.model.target import PACK_TARGETS_MAX

CRAWL = Crawl(id="a", name="a", started_at_ms=0, delay_ms=1_000)
PAGES = 60_000


def of(crawl: Crawl = CRAWL, pages: int = PAGES, **assumed: Any) -> Rounds:
    """Go through a crawl of so many pages."""
    return rounds_of(crawl, Assumed(pages=pages, **assumed))


def seconds_a_page(crawl: Crawl = CRAWL, pages: int = PAGES, **assumed: Any) -> float:
    """What functions are paid for."""
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
def test_any_crawl_goes_round(  # noqa: PLR0913 - all that an estimate goes by
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
    """Nothing is negative, and there are no more of the parts than of the whole."""
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


@pytest.mark.parametrize("delay_ms", [250, 1_000, 4_000])
def test_more_pages_of_one_host_are_never_cheaper(delay_ms: int) -> None:
    """Its line is as long as it is: what does not fit comes back in vain."""
    polite = replace(CRAWL, delay_ms=delay_ms)
    sizes = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
    costs = [seconds_a_page(polite, pages) for pages in sizes]
    assert costs == sorted(costs)
    assert costs[-1] > 1.5 * costs[0]
    deliveries = [of(polite, pages).deliveries / pages for pages in sizes]
    assert deliveries == sorted(deliveries)


@pytest.mark.parametrize(
    ("less", "more"),
    [
        ({"hosts": 100}, {"hosts": 10}),
        ({"hosts": 10}, {"hosts": 1}),
        ({"hosts": 10, "delay_ms": 250}, {"hosts": 10, "delay_ms": 1_000}),
        ({"hosts": 10, "delay_ms": 1_000}, {"hosts": 10, "delay_ms": 4_000}),
        ({"hosts": 100, "workers": 5, "batch": 40}, {"hosts": 100, "workers": 5, "batch": 10}),
        ({"hosts": 100, "workers": 5}, {"hosts": 100, "workers": 50}),
        ({"hosts": 10, "answer_s": 0.2}, {"hosts": 10, "answer_s": 2.0}),
        ({"hosts": 100, "memory_mb": 2_048}, {"hosts": 100, "memory_mb": 512}),
    ],
)
def test_what_is_waited_for(less: dict[str, Any], more: dict[str, Any]) -> None:
    """Fewer hosts, longer delays, smaller batches, more workers than hosts need, slower answers."""
    costs = []
    for assumed in (less, more):
        known = dict(assumed)
        costs.append(seconds_a_page(replace(CRAWL, delay_ms=known.pop("delay_ms", 1_000)), **known))
    assert costs[0] < costs[1]


def test_few_workers_bound_what_is_delivered_in_vain() -> None:
    """With large backlogs, packs wait on the queue instead."""
    few, many = (of(pages=6_000_000, hosts=100, workers=workers) for workers in (5, 1_000))
    assert few.deliveries < many.deliveries / 3


def test_slow_hosts_are_left_at_the_end() -> None:
    """A crawl of hosts of all speeds takes longer than one of its usual host, and costs more."""
    quick = replace(CRAWL, delay_ms=100)
    assert seconds_a_page(quick, hosts=50) > 0
    one, many = of(quick, 1_000), of(quick, 50_000, hosts=50)
    assert many.seconds / many.at_once > 2 * one.seconds / one.at_once


def test_how_full_packs_are() -> None:
    """Fuller the more links a visit finds, never beyond full; full where nothing is linked."""
    sizes = [pack_urls(links) for links in (2, 10, 25, 80, 150, 600, 10_000)]
    assert sizes == sorted(sizes)
    assert 12 < pack_urls(80) < 15
    assert 20 < pack_urls(600) < PACK_TARGETS_MAX
    assert pack_urls(0) == pack_urls(0.5) == PACK_TARGETS_MAX
    assert max(sizes) <= PACK_TARGETS_MAX
