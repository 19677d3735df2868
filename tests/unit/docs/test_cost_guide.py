"""Counted terms and prices of docs/cost.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from orbweaver.budget.billing_units import Stage, Term
from orbweaver.budget.estimate import Assumptions, estimate
from orbweaver.budget.prices import PRICES, dollars
from orbweaver.model.crawl import Crawl

GUIDE = (Path(__file__).parents[3] / "docs/cost.md").read_text()
PAGES = 10_000


def cells(section: str) -> list[list[str]]:
    text = GUIDE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.+) \|$", text, re.MULTILINE)
    return [[cell.strip(" `") for cell in row.split(" | ")] for row in rows][2:]


def test_documented_terms_and_prices_equal_code() -> None:
    told = {name: price for name, _, price in cells("Terms")}
    assert told == {str(term): price.words for term, price in PRICES.items()}
    assert list(told) == list(Term)


def test_documented_stages_equal_code() -> None:
    assert [name for name, _ in cells("Stages")] == list(Stage)


# Requests of an event source in 30 days: five parallel long polls of 20 s.
POLLS = 5 * (60 // 20) * 60 * 24 * 30


def test_idle_costs_are_products_and_add_up() -> None:
    *lines, together = (
        (float(row[2].strip("*")), float(row[3].strip("*")))
        for row in cells("Idle")
        if len(row) == 6 and row[0] != "line"  # the first of two tables
    )
    poll = 0.40 * POLLS / 1_000_000
    metrics = 2 * 30 * 0.30 / (30 * 24)  # two metrics for an hour a day
    expected = [(4 * poll, 3 * poll), (10 * 0.10, 0.10), (3.0, 0.0), (metrics, 0.0)]
    for told, computed in zip(lines, expected, strict=False):
        assert told == pytest.approx(computed, abs=0.006)
    assert together == pytest.approx([sum(column) for column in zip(*lines, strict=True)])
    text = " ".join(GUIDE.split())
    for sources, said in ((4, "default costs $0.64"), (3, "frugal stack $0.38")):
        assert said.endswith(f"${0.40 * (sources * POLLS - 1_000_000) / 1_000_000:.2f}")
        assert said in text


@pytest.mark.parametrize(
    ("place", "delay_ms", "hosts", "workers"),
    [(0, 0, 1, 2), (1, 0, 1, 50), (2, 1_000, 100, 50), (3, 1_000, 1, 50)],
)
def test_documented_waiting_costs_equal_estimate(
    place: int, delay_ms: int, hosts: int, workers: int
) -> None:
    crawl = Crawl(id="a", name="a", started_at_ms=0, delay_ms=delay_ms, concurrency=16)
    if delay_ms:
        crawl = Crawl(id="a", name="a", started_at_ms=0, delay_ms=delay_ms)
    found = estimate(crawl, Assumptions(pages=PAGES, hosts=hosts, workers=workers))
    (_, told) = cells("Before a crawl")[place]
    assert float(told) == round(dollars(found.units.by_term) / PAGES * 1_000_000, 2)
