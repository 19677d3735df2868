"""Mutants of retries: failures are not requested, or treated as seeds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from orbweaver.frontier.admission import admit_again
from orbweaver.model.target import Target
from orbweaver.worker import seeding
from tests.simulation.mutant import mutants
from tests.simulation.retrying import RETRY
from tests.simulation.scenario import Scenario


def _retried(plan: Scenario) -> bool:
    """Scenarios with a retried crawl."""
    return any(action == RETRY for crawl in plan.crawls for _, action in crawl.actions)


def _as_found(crawl: Any, url: str, depth: int) -> Any:
    """Respect claims of the run before."""
    admitted = admit_again(crawl, url, depth)
    return replace(admitted, modified_at_ms=None) if isinstance(admitted, Target) else admitted


def _at_depth_0(crawl: Any, url: str, _depth: int) -> Any:
    return admit_again(crawl, url, 0)


MUTANTS = mutants(
    ("a retry finds its URLs claimed", seeding, "admit_again", _as_found),
    ("a retry begins at depth 0", seeding, "admit_again", _at_depth_0),
    where=_retried,
)
