"""Compute the schedule of a host: slots by the generic cell rate algorithm (GCRA), and blocks.

Reserving n slots moves the host's arrival time `tat` to `max(tat, now) + n x spacing`. The
reservation is atomic over all workers and crawls, so no two requests share a slot.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from orbweaver.model.value import value_class

if TYPE_CHECKING:
    from random import Random

# Longest delay of a queue (SQS DelaySeconds).
HORIZON_MS = 900_000
CRAWL_DELAY_S_MAX = 60
# Slots are never reserved further ahead than this, because visits end within HORIZON_MS and clocks
# differ by minutes at most. A later slot was reserved by a clock that has been set back since.
AHEAD_MS_MAX = 3 * HORIZON_MS
SLACK_MS_MIN, SLACK_MS_MAX = 10, 100
BLOCK_S = 60
BLOCK_S_MAX = 86_400
# Blocks are extended by a random part of up to this share. So workers do not continue at the same
# time.
BLOCK_JITTER = 0.1
STRIKES_FORGIVEN_MS = 30 * 60_000
FAILURES_MAX = 5
ROUNDS_MAX = 4
DOWN_S = 3_600
# Time reserved for a probe (the single request to a host after a block). It is longer than a
# request may take, so that only one probe runs at a time.
PROBE_MS = 30_000


@value_class
class RobotsEntry:
    """A host's robots.txt as last fetched: its body if there is one, else its verdict."""

    fetched_at_ms: int
    body: bytes | None = None
    # "rules": use the body. "allow": unavailable (4xx), every URL is allowed. "unreachable": no URL
    # is allowed.
    verdict: str = "rules"
    detail: str | None = None
    # Reason why an unreachable file got no response, or None if there was a response.
    reason: str | None = None


@value_class
class Host:
    """State of a host, as last read.

    `tat_ms` is the theoretical arrival time of the next request.
    """

    name: str
    tat_ms: int = 0
    # End of the waiting line of URLs without a slot. It is only a hint, which spreads the times at
    # which these URLs are requeued.
    line_ms: int = 0
    blocked_until_ms: int = 0
    strikes: int = 0
    struck_at_ms: int = 0
    failures: int = 0
    failed_at_ms: int = 0
    robots: RobotsEntry | None = None


@value_class
class Slots:
    """Times of reserved slots in ms, and the time to try again for URLs without a slot."""

    at_ms: tuple[int, ...]
    return_at_ms: int


def slack_ms(delay_ms: int) -> int:
    """Return how many ms late a slot may be used: 5 % of the delay, within 10 to 100 ms."""
    if delay_ms == 0:
        return 0
    return min(max(SLACK_MS_MIN, delay_ms // 20), SLACK_MS_MAX)


def spacing_ms(delay_ms: int) -> int:
    """Return the time between slots that keeps the delay if requests are up to `slack_ms` late."""
    return delay_ms + slack_ms(delay_ms)


def delay_of(crawl_delay_ms: int, robots_delay_s: float | None, pace_ms: int = 0) -> int:
    """Return a host's delay for a crawl: the longest of crawl delay, robots.txt delay and pace."""
    # A crawl without a delay is assumed to crawl its owner's site, so it ignores the pace.
    asked_s = min(max(0.0, robots_delay_s or 0.0), CRAWL_DELAY_S_MAX)
    return max(crawl_delay_ms, round(asked_s * 1000), pace_ms if crawl_delay_ms else 0)


def pace_of(known_ms: int, latency_ms: int, *, well: bool) -> int:
    """Return the new pace of a host: the delay at which one request at a time keeps it busy.

    `known_ms` is the previous pace, `latency_ms` the last response time. `well` means that the
    response was no error. A longer pace applies at once, and a shorter one is approached by halves.
    The maximum is a minute. Scrapy's AutoThrottle has the same rule.
    """
    new_ms = max(latency_ms, (known_ms + latency_ms) // 2)
    if not well and new_ms < known_ms:
        return known_ms  # errors are fast, so they never speed it up
    return min(max(0, new_ms), CRAWL_DELAY_S_MAX * 1000)


def pace_after_silence(known_ms: int, waited_ms: int) -> int:
    """Return the pace after a request without a response: doubled, but at most the time waited."""
    # The waiting time is no response time. The host was not requested meanwhile, and is blocked if
    # this continues.
    return max(known_ms, min(2 * known_ms, waited_ms, CRAWL_DELAY_S_MAX * 1000))


def grant_slots(
    tat_ms: int, wanted: int, spacing: int, now_ms: int, until_ms: int
) -> tuple[int, int]:
    """Return the time of the first of `wanted` slots, and how many start by `until_ms`.

    `tat_ms` is the time when the host's next slot starts.
    """
    first_ms = max(tat_ms, now_ms)
    if first_ms > until_ms:
        return first_ms, 0
    return first_ms, min(wanted, (until_ms - first_ms) // spacing + 1)


def join_queue(
    line_ms: int, tat_ms: int, wanted: int, spacing: int, now_ms: int, until_ms: int
) -> tuple[int, int]:
    """Return the time to try again for URLs without a slot, and the new end of their line.

    `wanted` is their number, `line_ms` the previous end of the line. Both results are at most 15
    minutes from now.
    """
    # A requeued pack uses as many slots as a visit has, from now until `until_ms`. It joins the
    # line again for its other URLs. Slots for all of them in the line would remain unused.
    return_ms = min(max(line_ms, tat_ms, now_ms), now_ms + HORIZON_MS)
    places = min(wanted, max(0, until_ms - now_ms) // spacing + 1) if spacing else wanted
    return return_ms, min(return_ms + places * spacing, now_ms + HORIZON_MS)


def reserved(
    host: Host, wanted: int, spacing_ms: int, now_ms: int, until_ms: int
) -> tuple[Host, Slots]:
    """Reserve slots that start by `until_ms`. Return the host's new state, and the slots."""
    if max(host.tat_ms, host.line_ms) > now_ms + AHEAD_MS_MAX:
        host = replace(host, tat_ms=min(host.tat_ms, now_ms), line_ms=0)
    if host.blocked_until_ms > now_ms:
        return host, Slots(at_ms=(), return_at_ms=host.blocked_until_ms)
    if spacing_ms == 0:
        return host, Slots(at_ms=(now_ms,) * wanted, return_at_ms=now_ms)
    first_ms, count = grant_slots(host.tat_ms, wanted, spacing_ms, now_ms, until_ms)
    if count:
        host = replace(host, tat_ms=first_ms + count * spacing_ms)
    return_at_ms = now_ms
    if count < wanted:
        return_at_ms, line_ms = join_queue(
            host.line_ms, host.tat_ms, wanted - count, spacing_ms, now_ms, until_ms
        )
        host = replace(host, line_ms=line_ms)
    slots = tuple(first_ms + place * spacing_ms for place in range(count))
    return host, Slots(at_ms=slots, return_at_ms=return_at_ms)


def after_failure(host: Host, now_ms: int, chance: float, *, probe: bool) -> Host:
    """Count a request without a response, and return the host's new state.

    The host is blocked for a minute after `FAILURES_MAX` failures in a row. After each failed
    `probe` (the single request after a block) it is blocked twice as long. After `ROUNDS_MAX` of
    these blocks it is blocked for an hour. `chance` is a random number from 0 to 1, for the length
    of the block.
    """
    if host.blocked_until_ms > now_ms and not probe:
        return host  # requested before the block began
    quiet = now_ms - max(host.failed_at_ms, host.blocked_until_ms) >= STRIKES_FORGIVEN_MS
    failures = 1 if quiet else host.failures + 1
    until_ms, rounds = host.blocked_until_ms, failures - FAILURES_MAX
    if rounds >= 0:
        wait_s = BLOCK_S * 2**rounds if rounds < ROUNDS_MAX else DOWN_S
        until_ms = max(until_ms, now_ms + round(wait_s * 1000 * (1 + BLOCK_JITTER * chance)))
    return replace(host, failures=failures, failed_at_ms=now_ms, blocked_until_ms=until_ms)


def is_doubtful(host: Host, now_ms: int) -> bool:
    """Return True if a silent host's block is over, so that one request may probe the host."""
    rested_ms = now_ms - host.blocked_until_ms
    return host.failures >= FAILURES_MAX and 0 <= rested_ms < STRIKES_FORGIVEN_MS


def is_down(host: Host, now_ms: int) -> bool:
    """Return True if all probes of a host failed, so that its URLs end without a request."""
    return host.failures >= FAILURES_MAX + ROUNDS_MAX and host.blocked_until_ms > now_ms


def strikes_of(host: Host, now_ms: int) -> int:
    """Return the number of backoffs that a host has demanded and that still count."""
    quiet_ms = now_ms - max(host.struck_at_ms, host.blocked_until_ms)
    return 0 if quiet_ms >= STRIKES_FORGIVEN_MS else host.strikes


def block_until_ms(
    host: Host, now_ms: int, retry_after_s: float | None, random: Random, asked_at_ms: int
) -> tuple[int, int]:
    """Handle a 429 or 503. Return the end of the block, and the host's strikes.

    The block lasts as `Retry-After` states (at most a day). Without it, it lasts 60 s, doubled with
    every strike up to a day. Strikes expire after 30 minutes without a new strike.
    """
    if host.struck_at_ms > asked_at_ms and host.blocked_until_ms > now_ms:
        # Requested before the last strike, so it belongs to that strike.
        return _until_ms(host, now_ms, retry_after_s or 0.0, random), host.strikes
    strikes = strikes_of(host, now_ms) + 1
    wait_s: float = min(BLOCK_S * 2 ** min(strikes - 1, 20), BLOCK_S_MAX)
    if retry_after_s is not None:
        wait_s = retry_after_s
    return _until_ms(host, now_ms, wait_s, random), strikes


def _until_ms(host: Host, now_ms: int, wait_s: float, random: Random) -> int:
    wait_s = min(max(0.0, wait_s), BLOCK_S_MAX)
    until_ms = now_ms + round(wait_s * 1000 * (1 + BLOCK_JITTER * random.random()))
    return max(until_ms, host.blocked_until_ms)
