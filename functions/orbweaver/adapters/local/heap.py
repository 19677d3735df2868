"""Limit the memory that glibc keeps for itself.

glibc gives each thread a heap of its own, and no other thread uses the free memory of that heap.
After 12,000 pages with two processes, 18 % of their memory was free memory in such heaps.
"""

from __future__ import annotations

import contextlib
import ctypes

# Parameters of mallopt(3). Free memory at the end of the heap is returned above the threshold.
_M_TRIM_THRESHOLD, _M_ARENA_MAX = -1, -8
TRIM_BYTES = 2 * 1024 * 1024


def use_one_heap() -> None:
    """Let all threads share one heap. Has no effect with other C libraries."""
    with contextlib.suppress(AttributeError, OSError):
        set_option = ctypes.CDLL(None).mallopt
        set_option(_M_ARENA_MAX, 1)
        set_option(_M_TRIM_THRESHOLD, TRIM_BYTES)
