"""Rules for reserving parts of a crawl's limits of bytes and dollars.

A budget counts `used`: the sum of the spent and the reserved amounts. A worker reserves before it
sends a request. So the limit holds even if workers die or messages are delivered twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeAlias

from orbweaver.model.crawl import Counts, Crawl, LimitPart, Settlement
from orbweaver.model.outcome import Reason
from orbweaver.model.value import value_class

# A function runs for at most 15 minutes. Older reservations belong to killed workers.
DEAD_MS = 900_000
# Shortest time that URLs wait for amounts that other workers might return.
WAIT_S = 5


# By limit: the key in a pack's counts with the amount that the pack has spent.
COUNTED: Mapping[LimitPart, str] = MappingProxyType(
    {LimitPart.BYTES: "received_bytes", LimitPart.NANODOLLARS: "nanodollars"}
)
# By limit: the reason of URLs that end because the limit is used up.
REASONS: Mapping[LimitPart, Reason] = MappingProxyType(
    {LimitPart.BYTES: Reason.BYTES, LimitPart.NANODOLLARS: Reason.DOLLARS}
)


@value_class
class BudgetState:
    """State of a budget: used amount, its reserved part, and time of the last reservation.

    If `is_started` is false, the caller must create the budget from the crawl's counters. An edit
    can set a limit after the crawl has started.
    """

    is_started: bool = True
    used: int = 0
    reserved: int = 0
    taken_at_ms: int = 0


@value_class
class ReservationRequest:
    """Request to reserve `amount`, if `limit` is not exceeded.

    `mine` is the amount that the caller has already reserved. If `instead` is given, all other
    reservations in that state count as spent. The request then fails if any worker has reserved
    after that state was read.
    """

    crawl: Crawl
    part: LimitPart
    amount: int
    limit: int
    at_ms: int
    mine: int = 0
    instead: BudgetState | None = None


@value_class
class BudgetWanted:
    """Wanted amounts: `plenty` for several requests, `whole` for one, `least` for a cut body."""

    plenty: int
    whole: int
    least: int


@value_class
class ReserveAmount:
    """Reserve `amount`. `dead`: other reservations belong to killed workers and count as spent."""

    amount: int
    dead: bool = False


@value_class
class TryLater:
    """Too little is left now, but other workers might return enough later."""

    wait_s: int = WAIT_S


@value_class
class BudgetSpent:
    """The limit is used up and will not be renewed."""


Refused: TypeAlias = TryLater | BudgetSpent
Step: TypeAlias = ReserveAmount | Refused


def next_step(
    standing: BudgetState, wanted: BudgetWanted, *, limit: int, mine: int, now_ms: int
) -> Step:
    """Decide what to do after a reservation was refused. `mine` is the caller's reserved amount."""
    left = limit - standing.used
    if left >= wanted.whole:
        return ReserveAmount(amount=wanted.plenty if left >= wanted.plenty else wanted.whole)
    # If all other workers have settled, the last requests get the remaining amount. Less than
    # `least` is refused, because it would fetch too little of a page.
    others = standing.reserved > mine
    # If this clock is slow, other reservations have future times. Their workers are alive.
    age_ms = now_ms - standing.taken_at_ms
    if others and age_ms < DEAD_MS:
        # The wait doubles each time, because waiting costs messages.
        wait_ms = min(max(age_ms, WAIT_S * 1000), DEAD_MS - age_ms, DEAD_MS // 4)
        return TryLater(wait_s=max(WAIT_S, wait_ms // 1000))
    return ReserveAmount(amount=left, dead=others) if left >= wanted.least else BudgetSpent()


def limit_of(crawl: Crawl, part: LimitPart) -> int | None:
    return crawl.bytes_max if part is LimitPart.BYTES else crawl.nanodollars_max


def reasons_of(crawl: Crawl) -> tuple[Reason, ...]:
    """List the reasons with which a crawl's limits can end its URLs."""
    limits = (
        (Reason.HOST_PAGES, crawl.host_pages_max),
        (Reason.BYTES, crawl.bytes_max),
        (Reason.DOLLARS, crawl.nanodollars_max),
    )
    return tuple(reason for reason, limit in limits if limit is not None)


def settlements(reserved: Mapping[str, int], counts: Counts) -> tuple[Settlement, ...]:
    """List the settlements of a journal: its `reserved` amounts, and the spent ones in `counts`."""
    # A reservation whose journal was not stored counts as used: its bytes might have arrived.
    return tuple(
        Settlement(part=part, reserved=reserved[part], spent=counts.get(COUNTED[part], 0))
        for part in LimitPart
        if part in reserved
    )
