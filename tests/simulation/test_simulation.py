"""Hundreds of seeded scenarios, each with its own faults: the invariants hold in all of them."""

from __future__ import annotations

import functools
import hashlib
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import orbweaver
from tests.simulation.hunt import noted_seeds
from tests.simulation.mutants import MUTANTS
from tests.simulation.run import simulate

pytestmark = pytest.mark.simulation
FIXED, STEP, FRESH = 500, 25, 20
# Number of seeds per commit, and per merge.
FIRST, MERGED = 75, 200
COVERING = 60
# Seeds beyond the fixed ones that once revealed a product fault.
BROKE_ONCE = (586, 3021, 4907, 70458, 104121, 106299, 107844, 112972, 136403, 208084, 24103444)
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


@functools.cache
def _result(seed: int) -> tuple[list[str], set[str]]:
    """Return what violates the invariants, and the names of what occurred.

    Two tests of one seed take the same steps (`test_one_seed_decides_everything`). A whole result
    has several megabytes.
    """
    result = simulate(seed)
    broken = [f"{found.invariant}: {found.detail}" for found in result.violations]
    return broken, {*(+Counter(result.counts)), *(+Counter(result.kinds))}


def _run(seeds: list[int]) -> None:
    broken = {seed: found for seed in seeds if (found := _result(seed)[0])}
    assert not broken, f"run `make simulate ARGS='--first SEED --seeds 1'`: {broken}"


@pytest.mark.parametrize(
    "first",
    [
        *range(0, FIRST, STEP),
        *(pytest.param(one, marks=pytest.mark.thorough) for one in range(FIRST, MERGED, STEP)),
        *(pytest.param(one, marks=pytest.mark.long) for one in range(MERGED, FIXED, STEP)),
    ],
)
def test_fixed_seeds(first: int) -> None:
    _run(list(range(first, first + STEP)))


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
    """Checks that the fixed seeds together contain each fault and each situation.

    Throttled transactions and tables (case 16), lost answers (case 17), duplicates (case 1), kills
    (case 3), TTL three days late (case 19), redriven dead letters (case 24), clock jumps (case 25),
    messages of another release (case 26), concurrent exports (case 27).
    """
    assert not (FAULTS | KINDS).difference(*(_result(seed)[1] for seed in range(COVERING)))


@pytest.mark.thorough
def test_one_seed_decides_everything() -> None:
    """Also in a process with another hash seed."""
    seeds = (3, 8, 13, 81)
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
