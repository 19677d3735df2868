"""A host's load, told by its answers: how many requests at once it is asked with.

A crawl without a delay asks a host with so many requests at once as it may, and a small site is
soon asked for more than it can do: answers take longer and longer, until none come. So a container
asks with fewer, by the answers that it gets itself:

- An answer is *slow* that takes twice as long as the first `FIRST` did on average, and at least
  `SLOW_MS`: what is quicker is no sign of trouble.
- Once `HALVED_AFTER` more were slow than not, half as many are made at once; at least one. Answers
  to requests that were on their way by then say nothing new.
- Each `RECOVERED_AFTER` answers in a row that are not slow give back a part of what was taken.
  Errors are quick, and give back nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

FIRST = 4
SLOW_TIMES, SLOW_MS = 2, 1_000
HALVED_AFTER, RECOVERED_AFTER = 4, 32
RECOVERED_SHARE = 1 / 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What is known of a host's answers; `share` of the requests at once may be made.

    `first_ms` is the sum of the first answers' times; `balance` counts slow answers, or, below 0,
    those that were not slow since.
    """

    answers: int = 0
    first_ms: int = 0
    balance: int = 0
    share: float = 1.0
    eased_at_ms: int = 0


def load_after(load: Load, latency_ms: int, now_ms: int, *, well: bool) -> Load:
    """Note an answer, or none, that took so long; `well`: it is no error."""
    if load.answers < FIRST:
        first_ms = load.first_ms + latency_ms
        return replace(load, answers=load.answers + 1, first_ms=first_ms) if well else load
    if now_ms - latency_ms < load.eased_at_ms:
        return load
    slow = latency_ms >= max(SLOW_TIMES * load.first_ms // FIRST, SLOW_MS)
    if not (slow or well):
        return load
    balance = max(0, load.balance) + 1 if slow else load.balance - 1
    if balance == HALVED_AFTER:
        return replace(load, balance=0, share=load.share / 2, eased_at_ms=now_ms)
    if balance == -RECOVERED_AFTER:
        return replace(load, balance=0, share=min(1.0, load.share + RECOVERED_SHARE))
    return replace(load, balance=balance)


def places_of(load: Load, most: int) -> int:
    """How many requests at once a host is asked with, of at most so many."""
    return max(1, ceil(most * load.share))
