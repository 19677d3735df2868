"""Inputs that fuzzers found worth keeping, and repeated fragments: promises kept, cost linear."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from tests.fuzz.slopes import RATIO_MAX, growth
from tests.fuzz.targets import KB, TARGETS

CORPUS = Path(__file__).parents[2] / "fuzz" / "corpus"
INPUTS = sorted(CORPUS.glob("*/*"))
CORPUS_BYTES_MAX = 64 * KB
SIZE = 256 * KB
# Pages above 64 KB pass the parse guard as well: a step in the cost, with both sizes behind it.
SIZES = {("main-text", b"&amp;"): 512 * KB}
# What an input may take of the memory of Python, beside so much for each of its bytes.
MEMORY_BYTES_MAX, MEMORY_PER_BYTE = 16 * 1024 * KB, 400


@pytest.mark.parametrize("file", INPUTS, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_what_was_worth_keeping_keeps_the_promises(file: Path) -> None:
    """Nothing is raised but what is declared, in bounded time and memory."""
    data = file.read_bytes()
    tracemalloc.start()
    try:
        TARGETS[file.parent.name].play(data)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < MEMORY_BYTES_MAX + MEMORY_PER_BYTE * len(data)


def test_each_target_has_a_small_corpus() -> None:
    """There is something to begin with for each target, and not much in all of them."""
    assert {file.parent.name for file in INPUTS} == set(TARGETS)
    assert sum(file.stat().st_size for file in INPUTS) < CORPUS_BYTES_MAX


CASES = [(name, fragment) for name, target in TARGETS.items() for fragment in target.fragments]


@pytest.mark.parametrize(("name", "fragment"), CASES, ids=lambda one: repr(one)[:24])
def test_cost_grows_no_faster_than_the_input(name: str, fragment: bytes) -> None:
    """Four times as many fragments take at most some seven times as long: no square of them."""
    target = TARGETS[name]
    assert (
        growth(target, fragment, min(SIZES.get((name, fragment), SIZE), target.bytes_max))
        <= RATIO_MAX**2
    )
