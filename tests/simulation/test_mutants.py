"""Every guard is broken once, and the simulation notices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.simulation.mutants import MUTANTS
from tests.simulation.run import simulate

if TYPE_CHECKING:
    from tests.simulation.mutant import Mutant

pytestmark = pytest.mark.simulation
SEEDS_MAX = 200


def seeds_needed(mutant: Mutant, limit: int = SEEDS_MAX) -> int | None:
    """How many seeds it takes to see the break; None if `limit` do not show it."""
    with mutant.active():
        for seed in range(limit):
            if simulate(seed).violations:
                return seed + 1
    return None


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_broken_guard_is_caught(mutant: Mutant) -> None:
    """A break that 200 seeds do not show would mean that its guard is not tested."""
    assert seeds_needed(mutant) is not None
