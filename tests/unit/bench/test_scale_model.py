"""Invariants of the scale model, on small runs; docs/evidence/scale.md has large ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.scale.experiments import sprint
from bench.scale.model import Model, Result
from bench.scale.scenario import Fleet, Scenario, Web
from bench.scale.services import IN_FLIGHT_MAX
from orbweaver.budget.billing_units import Term

SMALL = Scenario(
    web=Web(
        hosts=40, pages=1_000, slow_share=0.05, dead_share=0.05, strict_share=0.1, error_share=0.03
    ),
    fleet=Fleet(workers_max=8, workers_first=5),
    minutes=60 * 24,
)


@pytest.fixture(scope="module")
def small() -> Result:
    return Model(SMALL).run()


def test_every_claimed_url_ends_once(small: Result) -> None:
    assert small.finished_ms is not None
    assert small.claimed == small.books.counts["ended"] == sum(small.reasons.values())
    assert small.ended_twice == 0
    assert {"ok", "http_client_error"} <= small.reasons.keys()
    assert small.books.counts["retries"] > 0


def test_host_is_never_requested_before_its_delay() -> None:
    result = Model(replace(SMALL, seed=7)).run()
    assert result.too_soon == 0
    assert result.ended_twice == 0
    assert result.claimed == result.books.counts["ended"]


def test_same_seed_gives_same_counts() -> None:
    plan = replace(SMALL, web=replace(SMALL.web, pages=300))
    first, second, other = (Model(replace(plan, seed=seed)).run() for seed in (3, 3, 4))
    assert first.books.units == second.books.units
    assert first.books.counts == second.books.counts
    assert first.samples == second.samples
    assert first.books.counts != other.books.counts


def test_page_rate_grows_with_workers() -> None:
    rates = [
        Model(replace(sprint(workers, 10), known=0.4, minutes=1.0)).run().pages_a_minute(0.3, 1.0)
        for workers in (2, 8)
    ]
    assert rates[0] > 0
    assert rates[1] == pytest.approx(4 * rates[0], rel=0.2)


@pytest.mark.parametrize("pages", [300, 1_200])
def test_crawl_of_one_host_takes_sum_of_its_delays(pages: int) -> None:
    web = Web(hosts=1, pages=pages, dead_share=0.0, strict_share=0.0, slow_share=0.0)
    result = Model(Scenario(web=web, fleet=Fleet(workers_max=5), minutes=60 * 24)).run()
    assert result.finished_ms is not None
    assert result.finished_ms <= 1.1 * pages * 1_000
    assert result.books.counts["deferrals"] <= 0.5 * pages


def test_cost_per_page_does_not_grow_with_crawl() -> None:
    costs = []
    for factor in (1, 4):
        web = Web(hosts=10 * factor, pages=500 * factor, zipf=0.0, slow_share=0.0, dead_share=0.0)
        fleet = Fleet(workers_max=2 * factor, workers_first=2 * factor)
        result = Model(Scenario(web=web, fleet=fleet, minutes=600)).run()
        assert result.finished_ms is not None
        costs.append(result.books.dollars_a_million)
    for term in (Term.WRITE, Term.SQS, Term.MB_MS):
        assert costs[1][term] <= 1.1 * costs[0][term], term
    assert costs[1][Term.WRITE] == pytest.approx(costs[0][Term.WRITE], rel=0.1)


def test_messages_in_flight_stay_below_sqs_limit(small: Result) -> None:
    assert 0 < small.in_flight_most <= SMALL.fleet.workers_max * SMALL.fleet.batch_size
    assert small.in_flight_most < IN_FLIGHT_MAX
