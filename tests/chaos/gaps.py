"""Distances between requests, as the host itself sees them.

A request is sent in its slot and logged on arrival. If it is delayed on its way (a new connection,
a busy machine), it arrives closer to the next one, which no sender can avoid. The product promises
that a request is not *sent* sooner than the delay after the one before it. So it cannot arrive
sooner than the delay after that one was sent. The send time of a request is in its row.

Rules
- A gap is short if its second request arrives sooner than the delay after its first was sent, by
  more than `TOLERANCE_MS`. Both times are truncated to milliseconds (1 ms each). The site's clock
  runs freely from its start while the workers' clock is slewed, by at most 500 ppm; the rest is for
  that.
- A first request has no row if its answer was 429 or 500, or its worker died. It may have been
  delayed as long as the slowest request of its host. Beyond that its gap is short, too.
- robots.txt is requested at the delay of the crawl, because the delay of the host is not known
  before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

TOLERANCE_MS = 5
ROBOTS = "/robots.txt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A request in the log of a host."""

    at_ms: int
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaps:
    """Gaps of a host's requests; `smallest_ms` is between arrivals.

    `fair_ms` is the smallest time from a sending to the next arrival. `close` counts gaps below the
    delay, and `short` those that no delay on the way explains.
    """

    requests: int
    delay_ms: int
    smallest_ms: int | None
    fair_ms: int | None
    held_up_ms: int
    close: int
    short: int


def measure(
    arrivals: Sequence[Arrival], sent: Mapping[str, int], *, delay_ms: int, robots_delay_ms: int
) -> Gaps:
    """Return a host's gaps; `sent` has the send time of the recorded request of each path."""
    held = _held_up(arrivals, sent)
    worst_ms = max(held.values(), default=0)
    raw: list[int] = []
    fair: list[int] = []
    close = short = 0
    for place, (first, second) in enumerate(pairwise(arrivals)):
        due_ms = robots_delay_ms if first.path == ROBOTS else delay_ms
        gap_ms = second.at_ms - first.at_ms
        if first.path != ROBOTS:
            raw.append(gap_ms)
            if place in held:
                fair.append(gap_ms + held[place])
        close += gap_ms < due_ms
        short += gap_ms + held.get(place, worst_ms) < due_ms - TOLERANCE_MS
    return Gaps(
        requests=len(arrivals),
        delay_ms=delay_ms,
        smallest_ms=min(raw, default=None),
        fair_ms=min(fair, default=None),
        held_up_ms=worst_ms,
        close=close,
        short=short,
    )


def _held_up(arrivals: Sequence[Arrival], sent: Mapping[str, int]) -> dict[int, int]:
    """Return the delay on the way by index of arrival, for each path's recorded request."""
    held: dict[int, int] = {}
    found: set[str] = set()
    for place, arrival in enumerate(arrivals):
        path = arrival.path
        if path not in found and path in sent and arrival.at_ms >= sent[path] - TOLERANCE_MS:
            found.add(path)
            held[place] = max(0, arrival.at_ms - sent[path])
    return held
