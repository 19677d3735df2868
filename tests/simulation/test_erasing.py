"""Erasure while crawls run, under all faults except frozen workers.

Odd seeds erase a page of a journal whose worker died before it stored the records.
"""

from __future__ import annotations

import pytest

from tests.simulation.erasing import erasing
from tests.simulation.run import play

pytestmark = [pytest.mark.simulation]
SEEDS, STEP, FIRST = 240, 20, 40


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(first, marks=() if first < FIRST else pytest.mark.long)
        for first in range(0, SEEDS, STEP)
    ],
)
def test_erased_page_does_not_return(first: int) -> None:
    skipped = 0
    for seed in range(first, first + STEP):
        result = play(erasing(seed))
        assert not result.violations, f"seed {seed}: {result.violations[:3]}"
        skipped += any(kind.startswith("erased.") for kind in result.counts)
    assert skipped, "in no seed the erased page was queued or linked afterwards"
