"""Inputs found by fuzzers, and repeated fragments with linear cost."""

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
# A larger page is converted in part; both sizes must be above this step.
SIZES = {("main-text", b"&amp;"): 512 * KB}
# Python memory that an input may take, plus a multiple of its bytes.
MEMORY_BYTES_MAX, MEMORY_PER_BYTE = 16 * 1024 * KB, 400


@pytest.mark.parametrize("file", INPUTS, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_corpus_input_is_handled_in_bounded_memory(file: Path) -> None:
    data = file.read_bytes()
    tracemalloc.start()
    try:
        TARGETS[file.parent.name].play(data, timed=False)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < MEMORY_BYTES_MAX + MEMORY_PER_BYTE * len(data)


def test_each_target_has_a_small_corpus() -> None:
    assert {file.parent.name for file in INPUTS} == set(TARGETS)
    assert sum(file.stat().st_size for file in INPUTS) < CORPUS_BYTES_MAX


CASES = [(name, fragment) for name, target in TARGETS.items() for fragment in target.fragments]


@pytest.mark.parametrize(("name", "fragment"), CASES, ids=lambda one: repr(one)[:24])
def test_cost_is_nearly_linear_in_input(name: str, fragment: bytes) -> None:
    """Four times as many fragments take at most about seven times as long."""
    target = TARGETS[name]
    assert (
        growth(target, fragment, min(SIZES.get((name, fragment), SIZE), target.bytes_max))
        <= RATIO_MAX**2
    )
