"""Hundreds of seeded worlds, each with its own faults: the invariants hold in all of them."""

from __future__ import annotations

import os
import random
import subprocess
import sys

import pytest

from tests.simulation.run import simulate

pytestmark = pytest.mark.simulation
FIXED, STEP, FRESH = 500, 25, 20


def _run(seeds: list[int]) -> None:
    broken = {
        seed: [f"{found.invariant}: {found.detail}" for found in result.violations]
        for seed in seeds
        if (result := simulate(seed)).violations
    }
    assert not broken, f"run `make simulate ARGS='--first SEED --seeds 1'`: {broken}"


@pytest.mark.parametrize("first", range(0, FIXED, STEP))
def test_fixed_seeds(first: int) -> None:
    """The invariants hold for seeds that are the same in every run."""
    _run(list(range(first, first + STEP)))


def test_fresh_seeds(capsys: pytest.CaptureFixture[str]) -> None:
    """The invariants hold for seeds that nobody has seen before; they are printed first."""
    seeds = random.SystemRandom().sample(range(1_000_000, 1_000_000_000), FRESH)
    with capsys.disabled():
        print(f"\nfresh seeds: {' '.join(map(str, seeds))}")
    _run(seeds)


def test_one_seed_decides_everything() -> None:
    """The same seed takes the same steps, here and in a process with another hash seed."""
    seeds = (3, 8, 13)
    here = [simulate(seed).trace_hash for seed in seeds]
    assert here == [simulate(seed).trace_hash for seed in seeds]
    command = [sys.executable, "-m", "tests.simulation", "--hashes", *map(str, seeds)]
    for hash_seed in ("1", "2"):
        done = subprocess.run(
            command,
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": "functions:."},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.split() == here
