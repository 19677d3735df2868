"""Hundreds of seeded scenarios, each with its own faults: the invariants hold in all of them."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

import orbweaver
from tests.simulation.hunt import noted_seeds
from tests.simulation.mutants import MUTANTS
from tests.simulation.run import simulate

pytestmark = pytest.mark.simulation
# The first seeds run in one test, which also checks what occurred in them.
COVERING = 60
# Number of fixed seeds per merge, and in all.
MERGED, FIXED = 85, 510
STEP, FRESH = 25, 20
# Seeds beyond the fixed ones that once revealed a product fault.
BROKE_ONCE = (
    *(586, 3021, 4907, 70458, 104121, 106299, 107844, 112972, 136403, 208084),
    *(9002701, 9003707, 10011776, 20005356, 24103444, 30001132),
)
FAULTS = {
    *("throttle", "transaction conflict", "partial batch", "unknown outcome", "kill", "freeze"),
    *("time-out", "ack lost", "doubled", "early", "late seeds", "kill after the seal", "redriven"),
    *("clock jump", "old message", "poison", "page trouble", "robots.txt trouble", "host down"),
    *("slow answer", "storm of 429", "redirect", "304", "S3 throttle", "S3 unknown outcome"),
    *("export completed", "export continued", "export overlapped", "export repeated"),
    *("event doubled", "told to end", "ended as told", "killed after being told", "gone on"),
    "rendered",
}
KINDS = {
    *("pause", "resume", "cancel", "long pause", "budget", "host shared by crawls", "finished"),
    *("midnight crossed", "window expired", "TTL late by 72 h", "endless site", "malformed"),
    *("robots.txt changed", "robots.txt changed a day ago", "host comes and goes", "storm"),
    *("seeds while running", "dropped by hand", "exported meanwhile", "exported at night"),
    "retried",
    *("rules", "rules edited", "not recorded", "links waited", "links spared"),
}


def _run(seeds: Iterable[int]) -> set[str]:
    """Check the invariants of each seed, and return the faults and situations that occurred."""
    broken: dict[int, list[str]] = {}
    occurred: set[str] = set()
    for seed in seeds:
        result = simulate(seed)
        if result.violations:
            broken[seed] = [f"{found.invariant}: {found.detail}" for found in result.violations]
        occurred |= {*(+Counter(result.counts)), *(+Counter(result.kinds))}
    assert not broken, f"run `make simulate ARGS='--first SEED --seeds 1'`: {broken}"
    return occurred


@pytest.mark.parametrize(
    "first",
    [
        *range(COVERING, MERGED, STEP),
        *(pytest.param(one, marks=pytest.mark.long) for one in range(MERGED, FIXED, STEP)),
    ],
)
def test_fixed_seeds(first: int) -> None:
    _run(range(first, first + STEP))


@pytest.mark.thorough
def test_noted_seeds() -> None:
    """Runs the seeds that last revealed each mutant, also beyond the fixed ones."""
    _run(sorted({*BROKE_ONCE, *(seed for seed in noted_seeds(MUTANTS) if seed >= FIXED)}))


@pytest.mark.thorough
def test_fresh_seeds(capsys: pytest.CaptureFixture[str]) -> None:
    """The seeds derive from the product's sources, so they are new for each change and printed."""
    sources = sorted(Path(orbweaver.__file__).parent.rglob("*.py"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    seeds = random.Random(digest).sample(range(1_000_000, 1_000_000_000), FRESH)
    with capsys.disabled():
        print(f"\nfresh seeds: {' '.join(map(str, seeds))}")
    _run(seeds)


@pytest.mark.thorough
def test_all_faults_and_situations_occur() -> None:
    """Checks that the first seeds hold, and together contain each fault and each situation.

    Throttled transactions and tables (case 16), lost answers (case 17), duplicates (case 1), kills
    (case 3), TTL three days late (case 19), redriven dead letters (case 24), clock jumps (case 25),
    messages of another release (case 26), concurrent exports (case 27).
    """
    assert not (FAULTS | KINDS) - _run(range(COVERING))


@pytest.mark.thorough
def test_one_seed_decides_everything() -> None:
    """Also in a process with another hash seed, after other seeds."""
    seeds = (3, 8, 13, 81)
    here = [simulate(seed).trace_hash for seed in seeds]
    done = subprocess.run(
        [sys.executable, "-m", "tests.simulation", "--hashes", *map(str, reversed(seeds))],
        env={**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": "functions:."},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split()[::-1] == here
