"""Long chains: one message leads to the next, over and over, and the last one is still taken in."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.simulation import cloud
from tests.simulation.faults import Faults
from tests.simulation.run import Result, play
from tests.simulation.scenario import CrawlPlan, Scenario
from tests.simulation.sites import SimPage, Site

pytestmark = [pytest.mark.simulation, pytest.mark.thorough]
LAMBDA_HOPS_MAX = 16
DEPTH, DEFERRALS = 40, 30
ORIGIN = "http://h0.test"


def _scenario(site: Site) -> Scenario:
    """One crawl of one site, and nothing that goes wrong."""
    return Scenario(
        seed=1,
        sites=[site],
        crawls=(CrawlPlan(name="crawl", at_s=0.0, seeds=(f"{ORIGIN}/",)),),
        faults=Faults(),
        faults_until_s=60.0,
    )


def _chain(length: int) -> Site:
    """A site where each page links to the next one only."""
    paths = ["/", *(f"/{depth}" for depth in range(1, length + 1))]
    links = [(path,) for path in paths[1:]] + [()]
    pages = {path: SimPage(links=to) for path, to in zip(paths, links, strict=True)}
    return Site(origin=ORIGIN, pages=pages)


def _blocked(deferrals: int) -> Site:
    """A site that says at first to come back after so many of the longest delays of a queue."""
    return Site(
        origin=ORIGIN,
        pages={"/": SimPage()},
        storm_s=(0.0, 1.0),
        storm_retry_after_s=deferrals * 900,
    )


def _found(result: Result) -> list[str]:
    return [violation.invariant for violation in result.violations]


def test_a_chain_of_40_pages_is_fetched_to_its_end() -> None:
    """Lambda allows the loop, and depth is the crawl's own limit (case 22)."""
    result = play(_scenario(_chain(DEPTH)))
    assert not result.violations
    assert result.asks == 1 + 1 + DEPTH  # robots.txt, the seed, and the chain


def test_a_url_is_put_off_30_times_and_fetched() -> None:
    """A host may be closed for longer than a queue can hold a message (case 22)."""
    lines: list[str] = []
    result = play(_scenario(_blocked(DEFERRALS)), lines=lines)
    assert not result.violations
    assert sum(" in 900: " in line for line in lines) >= DEFERRALS
    assert sum(f" ask {ORIGIN}/" in line for line in lines) == 3  # robots.txt, 429, and 200


@pytest.mark.parametrize("site", [_chain(DEPTH), _blocked(DEFERRALS)], ids=["chain", "deferrals"])
def test_where_lambda_ends_loops_the_loss_is_noticed(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RecursiveLoop=Terminate drops what 16 invocations led to: no crawl survives it (case 22)."""
    monkeypatch.setattr(cloud, "HOPS_MAX", LAMBDA_HOPS_MAX)
    assert "I1 loop ended" in _found(play(_scenario(site)))


def test_the_seal_is_told_though_its_worker_dies() -> None:
    """Every message comes twice, and whoever seals dies: still there is one end, and its event."""
    plan = _scenario(_chain(3))
    plan = replace(plan, faults=Faults(doubled=1.0, killed_sealing=1.0))
    result = play(plan)
    assert not result.violations
    assert result.counts["kill after the seal"] >= 1
