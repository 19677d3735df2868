"""Long chains: each message leads to the next, and the last one is still processed."""

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
    return Scenario(
        seed=1,
        sites=[site],
        crawls=(CrawlPlan(name="crawl", at_s=0.0, seeds=(f"{ORIGIN}/",)),),
        faults=Faults(),
        faults_until_s=60.0,
    )


def _chain(length: int) -> Site:
    """Build a site where each page links only to the next one."""
    paths = ["/", *(f"/{depth}" for depth in range(1, length + 1))]
    links = [(path,) for path in paths[1:]] + [()]
    pages = {path: SimPage(links=to) for path, to in zip(paths, links, strict=True)}
    return Site(origin=ORIGIN, pages=pages)


def _blocked(deferrals: int) -> Site:
    """Build a site that first defers requests this many times by a queue's maximum delay."""
    return Site(
        origin=ORIGIN,
        pages={"/": SimPage()},
        storm_s=(0.0, 1.0),
        storm_retry_after_s=deferrals * 900,
    )


def _found(result: Result) -> list[str]:
    return [violation.invariant for violation in result.violations]


def test_chain_of_40_pages_is_fetched_to_end() -> None:
    """Lambda allows the loop, and depth is the crawl's own limit (case 22)."""
    result = play(_scenario(_chain(DEPTH)))
    assert not result.violations
    assert result.asks == 1 + 1 + DEPTH  # robots.txt, the seed, and the chain


def test_url_deferred_30_times_is_fetched() -> None:
    """A host can be blocked for longer than a queue can delay a message (case 22)."""
    lines: list[str] = []
    result = play(_scenario(_blocked(DEFERRALS)), lines=lines)
    assert not result.violations
    assert sum(" in 900: " in line for line in lines) >= DEFERRALS
    assert sum(f" ask {ORIGIN}/" in line for line in lines) == 3  # robots.txt, 429, and 200


@pytest.mark.parametrize("site", [_chain(DEPTH), _blocked(DEFERRALS)], ids=["chain", "deferrals"])
def test_terminated_loop_loss_is_detected(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lambda drops messages after 16 invocations, so no crawl completes (case 22)."""
    monkeypatch.setattr(cloud, "HOPS_MAX", LAMBDA_HOPS_MAX)
    assert "I1 loop ended" in _found(play(_scenario(site)))


def test_seal_is_announced_though_its_worker_dies() -> None:
    """Every message arrives twice, and the worker that ends the crawl dies: one end, one event."""
    plan = _scenario(_chain(3))
    plan = replace(plan, faults=Faults(doubled=1.0, killed_sealing=1.0))
    result = play(plan)
    assert not result.violations
    assert result.counts["kill after the seal"] >= 1
