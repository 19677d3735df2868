"""Rules for reserving parts of a crawl's limits of bytes and dollars.

A budget counts `used`: the spent and the reserved amounts. A worker reserves before it sends a
request. So the limit holds even if workers die or messages are delivered twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from orbweaver.model.crawl import Counts, Crawl
from orbweaver.model.limits import LimitPart, Settlement
from orbweaver.model.outcome import Reason

# A function runs for at most 15 minutes. Older reservations are of killed workers.
DEAD_MS = 900_000
# Shortest wait of URLs for amounts that others may return.
WAIT_S = 5


# Key of a pack's spent amount in its counts, by limit.
COUNTED: Mapping[LimitPart, str] = MappingProxyType(
    {LimitPart.BYTES: "received_bytes", LimitPart.NANODOLLARS: "nanodollars"}
)
# Reason of URLs that end because a limit is used up.
REASONS: Mapping[LimitPart, Reason] = MappingProxyType(
    {LimitPart.BYTES: Reason.BYTES, LimitPart.NANODOLLARS: Reason.DOLLARS}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetState:
    """State of a budget: used amount, reserved part of it, and time of the last reservation.

    If it has not `is_started`, it must be created from the crawl's counters, because the limit may
    be younger than the crawl.
    """

    is_started: bool = True
    used: int = 0
    reserved: int = 0
    taken_at_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationRequest:
    """Request to reserve `amount`, if `limit` is not exceeded.

    If `instead` is given, all reservations in that state except `mine` count as spent. The request
    then fails if a worker has reserved since.
    """

    crawl: Crawl
    part: LimitPart
    amount: int
    limit: int
    at_ms: int
    mine: int = 0
    instead: BudgetState | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetWanted:
    """Wanted amounts: for several requests, for one request, and for one with a cut body."""

    plenty: int
    whole: int
    least: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReserveAmount:
    """Reserve `amount`. `dead`: other reservations are of killed workers and count as spent."""

    amount: int
    dead: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TryLater:
    """Too little is left now. Others may return enough later."""

    wait_s: int = WAIT_S


@dataclass(frozen=True, slots=True, kw_only=True)
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
    # If all others have settled, the last requests get the rest, but no less than `least`, which
    # would fetch only a scrap of a page.
    others = standing.reserved > mine
    # A slow clock sees reservations in the future, which are not of killed workers.
    age_ms = now_ms - standing.taken_at_ms
    if others and age_ms < DEAD_MS:
        # The wait doubles each time, because waiting costs messages.
        wait_ms = min(max(age_ms, WAIT_S * 1000), DEAD_MS - age_ms, DEAD_MS // 4)
        return TryLater(wait_s=max(WAIT_S, wait_ms // 1000))
    return ReserveAmount(amount=left, dead=others) if left >= wanted.least else BudgetSpent()


def limit_of(crawl: Crawl, part: LimitPart) -> int | None:
    return crawl.bytes_max if part is LimitPart.BYTES else crawl.nanodollars_max


def reasons_of(crawl: Crawl) -> tuple[Reason, ...]:
    """List the reasons with which URLs of a crawl may end because of its limits."""
    limits = (
        (Reason.HOST_PAGES, crawl.host_pages_max),
        (Reason.BYTES, crawl.bytes_max),
        (Reason.DOLLARS, crawl.nanodollars_max),
    )
    return tuple(reason for reason, limit in limits if limit is not None)


def settlements(reserved: Mapping[str, int], counts: Counts) -> tuple[Settlement, ...]:
    """List the settlements of a commit: the amounts that the journal's writer reserved."""
    # A reservation without a stored journal stays used, because the bytes may have been received.
    return tuple(
        Settlement(part=part, reserved=reserved[part], spent=counts.get(COUNTED[part], 0))
        for part in LimitPart
        if part in reserved
    )
