"""The experiments of docs/evidence/scale.md: one function per question, with its scenarios."""

from __future__ import annotations

import gc
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bench.scale.books import TABLES
from bench.scale.model import Model
from bench.scale.scenario import Fleet, Scenario, Web
from orbweaver.budget.billing_units import Term

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

DELAYS_MS = (250, 1_000, 4_000, 15_000)
HOSTS = (30, 300, 3_000)
# The fleet of a thousand workers is divided by this, because a run of all would take minutes.
PART = 5
# All workers run from the first second, because their start is not measured. The first minute (a
# worker's round) does not count.
SPRINT_MIN, FROM_MIN = 3.0, 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Figures of a run."""

    pages_a_minute: float
    ended: int
    end_min: float | None
    pages_a_delivery: float
    deferrals_a_page: float
    taken_on_a_page: float
    transactions_a_page: float
    in_flight_most: int
    host_writes_most: int
    too_soon: int
    ended_twice: int
    wait_share: float
    dollars: Mapping[str, float]
    units: Mapping[str, float]
    writes: Mapping[str, float]
    reads: Mapping[str, float]


def figures(scenario: Scenario, from_min: float = 0.0) -> Figures:
    """Run a scenario. `pages_a_minute` covers only the time from `from_min` on."""
    gc.collect()
    gc.disable()
    try:
        result = Model(scenario).run()
    finally:
        gc.enable()
    counts, books = result.books.counts, result.books
    ended = max(1, counts["ended"])
    dollars = {str(term): value for term, value in books.dollars_a_million.items()}
    waits = books.waits_ms
    return Figures(
        pages_a_minute=result.pages_a_minute(from_min, scenario.minutes),
        ended=ended,
        end_min=None if result.finished_ms is None else result.finished_ms / 60_000,
        pages_a_delivery=ended / max(1, counts["deliveries"]),
        deferrals_a_page=counts["deferrals"] / ended,
        taken_on_a_page=counts["taken on"] / ended,
        transactions_a_page=counts["transactions"] / ended,
        in_flight_most=result.in_flight_most,
        host_writes_most=result.host_writes_most,
        too_soon=result.too_soon,
        ended_twice=result.ended_twice,
        # Share of the visits' time in which packs (batches of URLs) waited for slots of hosts.
        wait_share=waits["for slots"] / max(1, waits["visits"]),
        dollars={**dollars, "all": sum(dollars.values())},
        units={str(term): books.a_page(term) for term in Term},
        writes={table: books.writes[table] / ended for table in TABLES},
        reads={table: books.reads[table] / 2 / ended for table in TABLES},
    )


def sprint(workers: int, batch_size: int) -> Scenario:
    """Return a scenario in which all workers start at once, with a hundred hosts each."""
    return Scenario(
        web=Web(hosts=100 * workers, pages=6_000 * workers),
        fleet=Fleet(workers_max=workers, workers_first=workers, batch_size=batch_size),
        shards=max(1, min(64, 64 * workers // 1_000)),
        minutes=SPRINT_MIN,
    )


def growth(workers: tuple[int, ...] = (5, 20, 80)) -> dict[str, Figures]:
    """Measure whether twice as many workers fetch twice as many pages, for several batch sizes."""
    found = {}
    for batch_size in (10, 40):
        for number in workers:
            key = f"{number} workers, batches of {batch_size}"
            found[key] = figures(sprint(number, batch_size), FROM_MIN)
    return found


def whole() -> dict[str, Figures]:
    """Run a fifth of the whole fleet over a fifth of its hosts, 20,000."""
    plan = replace(sprint(1_000 // PART, 40), known=0.2)
    return {"whole": figures(plan, FROM_MIN)}


def grid(workers: int = 30) -> dict[str, Figures]:
    """Measure pages per minute for several numbers of hosts and delays, with few workers."""
    found = {}
    fleet = Fleet(workers_max=workers, workers_first=workers)
    for hosts in HOSTS:
        for delay_ms in DELAYS_MS:
            # Enough known pages for all minutes, so that only hosts limit the speed.
            pages = min(90_000, max(3 * hosts, hosts * 4 * 60_000 // delay_ms))
            plan = Scenario(
                web=Web(hosts=hosts, pages=pages, zipf=0.0),
                fleet=fleet,
                delay_ms=delay_ms,
                known=1.0,
                minutes=4.0,
            )
            found[f"{hosts}/{delay_ms}"] = figures(plan, 1.0)
    return found


def costs(sizes: tuple[int, ...] = (10_000, 30_000, 100_000)) -> dict[str, Figures]:
    """Measure the cost of a million pages by size of the crawl, with a hundred pages per host."""
    found = {}
    for pages in sizes:
        for batch_size in (10, 40):
            plan = Scenario(
                web=Web(hosts=pages // 100, pages=pages),
                fleet=Fleet(workers_max=max(2, pages // 2_000), batch_size=batch_size),
                shards=16,
                minutes=60 * 24,
            )
            found[f"{pages}/{batch_size}"] = figures(plan)
    return found


def skew() -> dict[str, Figures]:
    """Measure crawls of few hosts, and of one giant host."""
    shapes = {
        "one host": Web(hosts=1, pages=1_500),
        "ten hosts alike": Web(hosts=10, pages=6_000, zipf=0.0),
        "one host with half": Web(hosts=200, pages=8_000, giant=0.5, slow_share=0.0),
    }
    found = {}
    for name, web in shapes.items():
        plan = Scenario(
            web=replace(web, dead_share=0.0, strict_share=0.0),
            fleet=Fleet(workers_max=20),
            minutes=60 * 24,
        )
        found[name] = figures(plan)
    return found


QUESTIONS: Mapping[str, Callable[[], dict[str, Figures]]] = {
    "growth": growth,
    "grid": grid,
    "skew": skew,
    "costs": costs,
    "whole": whole,
}
