"""Mutants of shared host claims: their use, and URLs taken as known."""

from __future__ import annotations

from hashlib import blake2b

from orbweaver.frontier import known_claims
from orbweaver.worker import host_claims
from tests.simulation.mutant import mutants
from tests.simulation.scenario import Scenario


def handing_on(plan: Scenario) -> bool:
    """Scenarios whose workers share their knowledge."""
    return plan.claims_travel and any(crawl.delay_ms for crawl in plan.crawls)


def _of_any_run(_crawl_id: str) -> str:
    return known_claims.PREFIX


def _of_few_bits(url: str) -> int:
    return blake2b(url.encode(), digest_size=1).digest()[0] % 8


MUTANTS = mutants(
    ("a claim known to another run", host_claims, "folder_of", _of_any_run),
    ("digests that deceive", known_claims, "_digest", _of_few_bits),
    where=handing_on,
)
