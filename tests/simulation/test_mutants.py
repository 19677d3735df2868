"""The simulation detects every mutant."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.simulation.hunt import hunt, notes
from tests.simulation.mutants import MUTANTS

if TYPE_CHECKING:
    from tests.simulation.mutant import Mutant

pytestmark = [pytest.mark.simulation, pytest.mark.thorough]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant_is_detected(mutant: Mutant) -> None:
    """A mutant undetected by 400 seeds means an untested guard."""
    assert hunt(mutant, notes().get(mutant.name)) is not None
