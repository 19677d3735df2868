"""How close requests came to each other, as the host itself saw them.

A request is sent in its slot and noted when it arrives; one that was held up on its way (a new
connection, a busy machine) comes closer to the next one, which no sender can rule out. What the
product does promise is that a request is not *sent* sooner than the delay after the one before it,
so it cannot arrive sooner than the delay after that one was sent. When a request was sent is known
from its row. Rules

- A gap is short if its second request arrived sooner than the delay after its first was sent, by
  more than `TOLERANCE_MS`: both moments are cut to the millisecond (1 ms each), and the clock of
  the site runs on by itself from its start while the workers' is slewed, by 500 ppm at most; the
  rest is for that.
- A first request without a row (its answer was 429 or 500, or its worker died) may have been held
  up as long as the longest of its host was; beyond that its gap is short too.
- robots.txt is asked for at the crawl's own delay: nobody knows the host's before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

TOLERANCE_MS = 5
ROBOTS = "/robots.txt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A request as a host noted it."""

    at_ms: int
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaps:
    """What came of a host's requests; `smallest_ms` as they arrived, `fair_ms` as they were sent.

    `fair_ms` is the smallest distance from a request's sending to the arrival of the next one;
    `close` counts gaps below the delay, and `short` those of them that nothing excuses.
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
    """Measure a host's gaps; `sent` says of paths when the request that counted was sent."""
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
    """Say how long requests were on their way, by their place: of each path, the one in its row."""
    held: dict[int, int] = {}
    found: set[str] = set()
    for place, arrival in enumerate(arrivals):
        path = arrival.path
        if path not in found and path in sent and arrival.at_ms >= sent[path] - TOLERANCE_MS:
            found.add(path)
            held[place] = max(0, arrival.at_ms - sent[path])
    return held
