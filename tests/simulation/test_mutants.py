"""The simulation detects every mutant."""

from __future__ import annotations

import inspect

import pytest

from tests.simulation.hunt import hunt, notes
from tests.simulation.mutant import Mutant
from tests.simulation.mutants import MUTANTS

pytestmark = [pytest.mark.simulation]


@pytest.mark.thorough
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant_is_detected(mutant: Mutant) -> None:
    """A mutant undetected by 400 seeds means an untested guard."""
    assert hunt(mutant, notes().get(mutant.name)) is not None


def test_mutants_accept_arguments_of_replaced_functions() -> None:
    """A mutant that refuses the call would be detected by its TypeError, not by its fault."""
    for mutant in MUTANTS:
        whole = mutant.owner.__dict__[mutant.attribute]
        if not (inspect.isfunction(whole) and inspect.isfunction(mutant.broken)):
            continue
        parameters = inspect.signature(whole).parameters.values()
        by_name = {one.name: one for one in parameters if one.kind is one.KEYWORD_ONLY}
        by_place = [one for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD]
        inspect.signature(mutant.broken).bind(*by_place, **by_name)
