"""What a crawl is estimated to cost."""

from __future__ import annotations

import pytest

from orbweaver.budget import crawl_cost
from orbweaver.budget.prices import NANO


def test_a_million_pages_cost_some_dollars() -> None:
    """A polite crawl of a documentation site costs a few dollars per million pages."""
    # A full pack at a page a second, beside nine others in the same function.
    visit = crawl_cost.visit(urls=25, again=1, files=1, seconds=2.5, memory_mb=1024)
    page = crawl_cost.CLAIM + visit / 25
    assert 2 < page * 1_000_000 / NANO < 8


@pytest.mark.parametrize(
    ("more", "price"),
    [
        ({}, 0),
        ({"urls": 3}, 2 * crawl_cost.ASKED),
        ({"again": 2}, 2 * crawl_cost.AGAIN),
        ({"files": 1}, crawl_cost.FILE),
        ({"seconds": 3.0}, 2 * crawl_cost.GB_SECOND),
        ({"memory_mb": 2_048}, crawl_cost.GB_SECOND),
    ],
)
def test_a_visit_costs_what_it_takes(more: dict[str, int], price: int) -> None:
    """URLs, those that come back, and memory for as long as it lasts."""
    usual = {"urls": 1, "again": 0, "files": 0, "seconds": 1.0, "memory_mb": 1_024}
    assert crawl_cost.visit(**(usual | more)) - crawl_cost.visit(**usual) == price  # type: ignore[arg-type]


def test_no_visit_costs_more_than_its_most() -> None:
    """Whatever comes back of a pack, and however quick it is."""
    most = crawl_cost.visit_most(urls=25, seconds=40, memory_mb=1_024)
    for again in (0, 13, 25):
        for seconds in (0, 39.999, 40):
            it = crawl_cost.visit(urls=25, again=again, files=1, seconds=seconds, memory_mb=1_024)
            assert it <= most


def test_dollars_are_told_by_the_counts() -> None:
    """Books of an older release have none."""
    assert crawl_cost.dollars({}) == 0
    assert crawl_cost.dollars({"nanodollars": 1_250_000_000}) == 1.25
