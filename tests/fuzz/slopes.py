"""Growth of cost with the input: repeated fragments of doubling size."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable
from contextlib import suppress
from itertools import pairwise
from math import inf

from tests.fuzz.targets import KB, TARGETS, Target

# Maximum factor of time for twice the input, and for four times the input.
RATIO_MAX = 2.6
# Shorter times are mostly noise.
FLOOR_S = 0.005
TRIES = 6
SHOWN_BYTES_MAX = 2 * 1024 * KB
ENOUGH_S = 5
QUARTER_S_MAX = 0.6


def cost_s(target: Target, data: bytes) -> float:
    """Return the CPU time of an input, without garbage collection."""
    gc.collect(0)
    gc.disable()
    try:
        before_s = time.process_time()
        with suppress(*target.raises):
            target.run(data)
        return time.process_time() - before_s
    finally:
        gc.enable()


def growth(target: Target, fragment: bytes, size: int) -> float:
    """Return how many times longer the whole takes than a quarter; the least of some tries."""
    quarter, whole = (target.repeated(fragment, part) for part in (size // 4, size))
    quarter_s = cost_s(target, quarter)
    if quarter_s > QUARTER_S_MAX:
        return inf
    took_s = cost_s(target, whole)
    for _ in range(TRIES):
        if took_s / max(quarter_s, FLOOR_S) <= RATIO_MAX**2:
            break
        took_s = min(took_s, cost_s(target, whole))
        quarter_s = min(quarter_s, cost_s(target, quarter))
    return took_s / max(quarter_s, FLOOR_S)


def show(names: Iterable[str]) -> bool:
    fine = True
    for name in names:
        target = TARGETS[name]
        for fragment in target.fragments:
            took: list[float] = []
            size = 16 * KB
            while size <= min(target.bytes_max, SHOWN_BYTES_MAX) and sum(took) < ENOUGH_S:
                took.append(cost_s(target, target.repeated(fragment, size)))
                size *= 2
            steep = any(
                after_s > max(before_s, FLOOR_S) * RATIO_MAX**2
                for before_s, after_s in zip(took, took[2:], strict=False)
            )
            fine = fine and not steep
            ratios = " ".join(f"{b / a:.1f}" for a, b in pairwise(took) if a > FLOOR_S)
            per_mb_s = took[-1] / (size // 2) * 1024 * KB
            mark = "STEEP" if steep else ""
            print(f"{name:16} {fragment!r:.44} {per_mb_s:8.2f} s/MB  {ratios} {mark}", flush=True)
    return fine
