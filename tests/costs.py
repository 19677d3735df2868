"""What a call costs: CPU time and memory, and how both grow with its input. No wall clock.

CPU time on a shared machine varies by about two, so a bound has an ample margin, and a slope is
that of the quickest of several calls. It is the exponent of the growth: 1 is linear, 2 quadratic.
"""

from __future__ import annotations

import math
import time
import tracemalloc
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Size = TypeVar("Size")

# Between linear (1) and quadratic (2), with room for caches that overflow and what is constant.
LINEAR = 1.5


def cpu_s(call: Callable[[], Any], *, turns: int = 1) -> float:
    """Return the CPU seconds of a call, of the quickest of some turns."""
    return min(_cpu_s(call) for _ in range(turns))


def slope(
    made: Callable[[int], Callable[[], Any]], sizes: Sequence[int], *, turns: int = 3
) -> float:
    """Return by which power of the size a call's CPU time grows, over the steepest doubling.

    `made` makes the call of a size beforehand, which does not count. What takes less than 5 ms is
    below what can be told, and counts as 5 ms.
    """
    floor_s = 0.005
    costs = [(size, max(floor_s, cpu_s(made(size), turns=turns))) for size in sizes]
    return max(
        math.log(more_s / less_s) / math.log(large / small)
        for (small, less_s), (large, more_s) in pairwise(costs)
    )


def peak_bytes(call: Callable[[], Any]) -> int:
    """Return how many bytes Python has allocated at most during a call, on top of before it."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        call()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return peak - before


def _cpu_s(call: Callable[[], Any]) -> float:
    start_s = time.process_time()
    call()
    return time.process_time() - start_s
