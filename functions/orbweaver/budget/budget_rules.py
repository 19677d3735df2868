"""Limits of a crawl beside its pages: bytes, dollars, and pages of each host.

A budget counts what is `used`: what is spent, and what is reserved and may be spent yet. It is
reserved before anything is asked for, from one counter that never passes the limit; so whatever
dies, comes twice or wakes up late, no more is spent than the limit. The commit of a pack gives
back what its journal did not spend, once, for there is one ledger. What was reserved by a delivery
that left no journal stays used: it may have been received.

- As long as there is plenty, reservations are made for several requests at once.
- Where less is left than a request may take, and others have reservations, their rest may still
  come back: wait. Where no other has one, the last requests get what is left.
- Reservations of killed workers are never settled. No worker has a pack for longer than `DEAD_MS`:
  once there was no reservation for so long, what is still reserved is theirs. It counts as spent.
- Less than `least` is nothing: it would be a request for a scrap of a page.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from orbweaver.model.crawl import Counts, Crawl
from orbweaver.model.limits import LimitPart, Settlement
from orbweaver.model.outcome import Reason

# A function runs for at most 15 minutes.
DEAD_MS = 900_000
# How long URLs wait at least for others to give back what they did not spend.
WAIT_S = 5


# What a pack has spent of each, in its counts.
COUNTED: Mapping[LimitPart, str] = MappingProxyType(
    {LimitPart.BYTES: "received_bytes", LimitPart.NANODOLLARS: "nanodollars"}
)
# How URLs end that nothing is left for.
REASONS: Mapping[LimitPart, Reason] = MappingProxyType(
    {LimitPart.BYTES: Reason.BYTES, LimitPart.NANODOLLARS: Reason.DOLLARS}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetState:
    """What a crawl has used of something, how much of that is only reserved, and since when.

    One that has not begun takes over what the counters say: the limit may be younger than the
    crawl.
    """

    begun: bool = True
    used: int = 0
    reserved: int = 0
    taken_at_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Taking:
    """A reservation to be made: `amount`, if `limit` is not passed by that.

    With `instead`, it takes the place of all that was reserved then by others than `mine`, if
    no worker has reserved anything since.
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
    """How much is wanted: for several requests, for one, and for one that may be cut short."""

    plenty: int
    whole: int
    least: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetTake:
    """Reserve so much; `dead`, in the place of reservations that no worker will settle."""

    amount: int
    dead: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Later:
    """Nothing can be reserved now; after a while others may have given back enough."""

    wait_s: int = WAIT_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Nothing is left, for good."""


Refused: TypeAlias = Later | Spent
Step: TypeAlias = BudgetTake | Refused


def next_step(
    standing: BudgetState, wanted: BudgetWanted, *, limit: int, mine: int, now_ms: int
) -> Step:
    """Say what to do about a budget that was in the way; `mine` of it is reserved for us."""
    left = limit - standing.used
    if left >= wanted.whole:
        return BudgetTake(amount=wanted.plenty if left >= wanted.plenty else wanted.whole)
    others = standing.reserved > mine
    # A clock that is behind sees reservations from the future: not those of killed workers.
    age_ms = now_ms - standing.taken_at_ms
    if others and age_ms < DEAD_MS:
        # Twice as long every time: waiting costs messages.
        wait_ms = min(max(age_ms, WAIT_S * 1000), DEAD_MS - age_ms, DEAD_MS // 4)
        return Later(wait_s=max(WAIT_S, wait_ms // 1000))
    return BudgetTake(amount=left, dead=others) if left >= wanted.least else Spent()


def limit_of(crawl: Crawl, part: LimitPart) -> int | None:
    """How much of something a crawl may use; None: no limit."""
    return crawl.bytes_max if part is LimitPart.BYTES else crawl.nanodollars_max


def reasons_of(crawl: Crawl) -> tuple[Reason, ...]:
    """List why URLs of a crawl may end unasked, by the limits that it has."""
    limits = (
        (Reason.HOST_PAGES, crawl.host_pages_max),
        (Reason.BYTES, crawl.bytes_max),
        (Reason.DOLLARS, crawl.nanodollars_max),
    )
    return tuple(reason for reason, limit in limits if limit is not None)


def settlements(reserved: Mapping[str, int], counts: Counts) -> tuple[Settlement, ...]:
    """List what a commit settles: what the journal's delivery reserved, by part."""
    return tuple(
        Settlement(part=part, reserved=reserved[part], spent=counts.get(COUNTED[part], 0))
        for part in LimitPart
        if part in reserved
    )
