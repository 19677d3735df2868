"""Polite crawls in virtual time: slots are used while URLs are due; retries delay no other page."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.simulation.slots import Played, PoliteCrawl, check_slots, play_polite

pytestmark = pytest.mark.simulation

MANY = PoliteCrawl(hosts=20, pages=60, delay_ms=200)
SHOP = PoliteCrawl(hosts=1, pages=225, delay_ms=100, failing=(50, 100, 150, 200))
# The last retry of a failing page is due after 4 s at most.
RETRY_S_MAX = 4


@pytest.mark.parametrize(
    ("crawl", "least"),
    [
        pytest.param(replace(MANY, pages_max=1_000), 0.6, id="limit cuts"),
        pytest.param(replace(MANY, pages_max=2_000), 0.55, id="limit beyond the site"),
        pytest.param(replace(MANY, hosts=5, pages_max=280), 0.6, id="five hosts"),
        pytest.param(replace(MANY, pages=20, delay_ms=1_000, pages_max=400), 0.8, id="a second"),
    ],
)
def test_polite_crawl_with_page_limit_uses_slots_of_all_hosts(
    crawl: PoliteCrawl, least: float
) -> None:
    played = play_polite(crawl)
    assert list(check_slots(played)) == []
    assert len(played.asks) == min(crawl.pages_max, crawl.hosts * crawl.pages)
    assert played.used >= least


@pytest.mark.parametrize("pages_max", [400, 200_000], ids=["ordered", "not ordered"])
def test_failing_pages_delay_no_other_page(pages_max: int) -> None:
    """A crawl takes as long as with 404 instead of 500, plus its last failure's retries."""
    crawl = replace(SHOP, pages_max=pages_max)
    failing = play_polite(crawl)
    missing = play_polite(replace(crawl, status=404))
    assert list(check_slots(failing)) == []
    assert failing.took_s <= 1.2 * missing.took_s + RETRY_S_MAX
    assert _others_s(failing) <= 1.2 * _others_s(missing)


def _others_s(played: Played) -> float:
    """Return the time of the last request for a page that does not fail."""
    failing = {f"/{number}" for number in played.crawl.failing}
    return max(ask.at_s for ask in played.asks if ask.path not in failing)
