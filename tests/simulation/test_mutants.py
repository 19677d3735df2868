"""Every guard is broken once, and the simulation notices."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from tests.simulation.mutants import MUTANTS
from tests.simulation.run import play
from tests.simulation.scenario import scenario

if TYPE_CHECKING:
    from tests.simulation.mutant import Mutant

pytestmark = pytest.mark.simulation
SEEDS_MAX = 200


def seeds_needed(mutant: Mutant, limit: int = SEEDS_MAX) -> int | None:
    """How many seeds it takes to see the break; None if `limit` do not show it."""
    plans = filter(mutant.where, map(scenario, itertools.count()))
    with mutant.active():
        for needed, plan in enumerate(itertools.islice(plans, limit), 1):
            if play(plan).violations:
                return needed
    return None


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_broken_guard_is_caught(mutant: Mutant) -> None:
    """A break that 200 seeds do not show would mean that its guard is not tested."""
    assert seeds_needed(mutant) is not None
