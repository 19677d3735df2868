"""Every guard is broken once, and the simulation notices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.simulation.hunt import hunt, notes
from tests.simulation.mutants import MUTANTS

if TYPE_CHECKING:
    from tests.simulation.mutant import Mutant

pytestmark = [pytest.mark.simulation, pytest.mark.thorough]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_broken_guard_is_caught(mutant: Mutant) -> None:
    """A break that 400 seeds do not show would mean that its guard is not tested."""
    assert hunt(mutant, notes().get(mutant.name)) is not None
