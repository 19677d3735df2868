"""Cost of a call: CPU time and memory, and their growth with the input.

The wall clock is not used. CPU time on a shared machine varies by several times, so it is scaled to
seconds of a free core: a loop before and after the call measures how slow the machine is. A bound
still needs an ample margin. A slope is the power of the size by which CPU time grows: 1 is linear,
2 quadratic. It uses the fastest of several calls.
"""

from __future__ import annotations

import math
import time
import tracemalloc
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, TypeVar

Size = TypeVar("Size")

# Time of the loop in `_loop_s` on a free core.
LOOP_S = 0.007
# Between linear (1) and quadratic (2), with room for cache misses and constant costs.
LINEAR = 1.5
GOES = 4


def cpu_s(call: Callable[[], Any], *, turns: int = 1) -> float:
    """Return the CPU seconds of a call on a free core, the fastest of some turns."""
    return min(_cpu_s(call) for _ in range(turns))


def within(bound_s: float, call: Callable[[], Any], *, turns: int = 5) -> bool:
    """True if a call takes less CPU than a bound in one of some turns: noise only adds."""
    return any(_cpu_s(call) < bound_s for _ in range(turns))


def slope(
    made: Callable[[int], Callable[[], Any]], sizes: Sequence[int], *, turns: int = 3
) -> float:
    """Return the power of the size by which CPU time grows, at the steepest doubling.

    `made` prepares the call of a size, which does not count. Times below 5 ms are not measurable
    and count as 5 ms. The smallest of several results counts: noise bends a curve either way, and a
    quadratic cost shows in each of them.
    """
    found = math.inf
    for _ in range(GOES):
        found = min(found, _slope(made, sizes, turns))
        if found < LINEAR:
            break
    return found


def _slope(made: Callable[[int], Callable[[], Any]], sizes: Sequence[int], turns: int) -> float:
    floor_s = 0.005
    costs = [(size, max(floor_s, cpu_s(made(size), turns=turns))) for size in sizes]
    return max(
        math.log(more_s / less_s) / math.log(large / small)
        for (small, less_s), (large, more_s) in pairwise(costs)
    )


def peak_bytes(call: Callable[[], Any]) -> int:
    """Return the maximum of bytes that Python allocates during a call, above the state before."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        call()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return peak - before


def slowness() -> float:
    """Return how many times slower than a free core this one is now; at least 1."""
    return max(1.0, _loop_s() / LOOP_S)


def _cpu_s(call: Callable[[], Any]) -> float:
    before_s = _loop_s()
    start_s = time.process_time()
    call()
    spent_s = time.process_time() - start_s
    return spent_s * min(1, 2 * LOOP_S / (before_s + _loop_s()))


def _loop_s() -> float:
    start_s = time.process_time()
    number = 0
    for place in range(200_000):
        number = (number * 31 + place) & 0xFFFF
    return time.process_time() - start_s
