"""Limit concurrent requests to a host by its response times.

A crawl without a delay could overload a small site: responses take longer and longer until none
arrive.
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

FIRST = 4
# A response is slow if it takes SLOW_TIMES the average of the first ones, and at least SLOW_MS.
SLOW_TIMES, SLOW_MS = 2, 1_000
# Once slow responses exceed the others by HALVED_AFTER, the number of concurrent requests is
# halved. Each RECOVERED_AFTER responses in a row that are not slow restore RECOVERED_SHARE.
HALVED_AFTER, RECOVERED_AFTER = 4, 32
RECOVERED_SHARE = 1 / 8


class Load(NamedTuple):
    """Response times of a host. `share` is the part of its concurrency that is used now.

    `first_ms` is the total time of the first responses. A positive `balance` is the excess of slow
    responses over others. A negative `balance` counts responses in a row that were not slow.
    """

    answers: int = 0
    first_ms: int = 0
    balance: int = 0
    share: float = 1.0
    eased_at_ms: int = 0


def load_after(load: Load, latency_ms: int, now_ms: int, *, well: bool) -> Load:
    """Record a response, or its absence after `latency_ms`. `well` means that it is no error."""
    if load.answers < FIRST:
        first_ms = load.first_ms + latency_ms
        return load._replace(answers=load.answers + 1, first_ms=first_ms) if well else load
    if now_ms - latency_ms < load.eased_at_ms:
        return load  # requested before the last reduction
    slow = latency_ms >= max(SLOW_TIMES * load.first_ms // FIRST, SLOW_MS)
    if not (slow or well):
        return load  # errors are fast, so they restore nothing
    balance = max(0, load.balance) + 1 if slow else load.balance - 1
    if balance == HALVED_AFTER:
        return load._replace(balance=0, share=load.share / 2, eased_at_ms=now_ms)
    if balance == -RECOVERED_AFTER:
        return load._replace(balance=0, share=min(1.0, load.share + RECOVERED_SHARE))
    return load._replace(balance=balance)


def concurrency_of(load: Load, most: int) -> int:
    return max(1, ceil(most * load.share))
