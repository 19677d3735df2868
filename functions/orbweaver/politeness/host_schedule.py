"""A host's next moment to be asked: the generic cell rate algorithm, and blocks.

A host has a theoretical arrival time, `tat`. Reserving n slots moves it to
`max(tat, now) + n x spacing`; the slots are `max(tat, now) + i x spacing`. The reservation is
atomic over all workers and crawls, so no two requests share a slot.

A slot may be used up to `slack` late and is forfeited after that; the spacing is the delay plus
the slack, so two requests in neighbouring slots are never closer than the delay.

`line` is a second, advisory time: where the end of the waiting line is. URLs that get no slot come
back when their turn in the line is due, instead of all at once; they line up for the slots of one
visit. It is never more than a hint.

A block is what a host asks for (429, 503), or what it gets for not answering. After `FAILURES_MAX`
failures without an answer between, it is left alone for a minute. Then *one* request tries it, and
each that fails doubles the rest. After `ROUNDS_MAX` of these rounds, a quarter of an hour, the host
is *down* for an hour: its URLs end without being asked, so no crawl waits longer for a dead host.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

# The longest a queue can hold a message back (SQS DelaySeconds).
HORIZON_MS = 900_000
CRAWL_DELAY_S_MAX = 60
# No slot is reserved further ahead: visits end within the horizon, and clocks are minutes apart.
# A later one was reserved by a clock that was set back since.
AHEAD_MS_MAX = 3 * HORIZON_MS
SLACK_MS_MIN, SLACK_MS_MAX = 10, 100
BLOCK_S = 60
BLOCK_S_MAX = 86_400
BLOCK_JITTER = 0.1
STRIKES_FORGIVEN_MS = 30 * 60_000
FAILURES_MAX = 5
ROUNDS_MAX = 4
DOWN_S = 3_600
# Longer than a request may take, so that there is one at a time.
PROBE_MS = 30_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotsEntry:
    """A host's robots.txt as last fetched: its body when there is one, else how it ended."""

    fetched_at_ms: int
    body: bytes | None = None
    # allow: unavailable (4xx), everything may be asked; unreachable: nothing may be asked
    verdict: str = "rules"
    detail: str | None = None
    # Of an unreachable one: what kept the request from an answer; None where there was one.
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One politeness unit as last read."""

    name: str
    tat_ms: int = 0
    line_ms: int = 0
    blocked_until_ms: int = 0
    strikes: int = 0
    struck_at_ms: int = 0
    failures: int = 0
    failed_at_ms: int = 0
    robots: RobotsEntry | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Slots:
    """What a reservation gave: moments in ms, and when the rest of what was wanted may return."""

    at_ms: tuple[int, ...]
    return_at_ms: int


def slack_ms(delay_ms: int) -> int:
    """How late a slot may be used: 5 % of the delay, within 10 to 100 ms."""
    if delay_ms == 0:
        return 0
    return min(max(SLACK_MS_MIN, delay_ms // 20), SLACK_MS_MAX)


def spacing_ms(delay_ms: int) -> int:
    """Distance between two slots such that asks at most `slack` late keep the delay."""
    return delay_ms + slack_ms(delay_ms)


def delay_of(crawl_delay_ms: int, robots_delay_s: float | None, pace_ms: int = 0) -> int:
    """The delay of a host for a crawl: the longest of the crawl's, robots.txt's and the pace.

    A crawl without a delay is one of a site of one's own: it does not follow the host's pace.
    """
    asked_s = min(max(0.0, robots_delay_s or 0.0), CRAWL_DELAY_S_MAX)
    return max(crawl_delay_ms, round(asked_s * 1000), pace_ms if crawl_delay_ms else 0)


def pace_of(known_ms: int, latency_ms: int, *, well: bool) -> int:
    """How long a host takes: the pace at which one request at a time keeps it busy.

    Slower at once, faster by halves, and never faster by an answer that was not `well`: errors are
    quick. At most a minute. The rule is that of Scrapy's AutoThrottle.
    """
    new_ms = max(latency_ms, (known_ms + latency_ms) // 2)
    if not well and new_ms < known_ms:
        return known_ms
    return min(max(0, new_ms), CRAWL_DELAY_S_MAX * 1000)


def pace_after_silence(known_ms: int, waited_ms: int) -> int:
    """Say how long a host takes that gave no answer: twice as long, but no longer than was waited.

    How long was waited is no answer's time. The host was left alone meanwhile, and is blocked if
    that goes on.
    """
    return max(known_ms, min(2 * known_ms, waited_ms, CRAWL_DELAY_S_MAX * 1000))


def grant(tat_ms: int, wanted: int, spacing: int, now_ms: int, until_ms: int) -> tuple[int, int]:
    """Of `wanted` slots, say where the first lies and how many start no later than `until_ms`."""
    first_ms = max(tat_ms, now_ms)
    if first_ms > until_ms:
        return first_ms, 0
    return first_ms, min(wanted, (until_ms - first_ms) // spacing + 1)


def turn(
    line_ms: int, tat_ms: int, wanted: int, spacing: int, now_ms: int, until_ms: int
) -> tuple[int, int]:
    """Join the waiting line: when to return, and where the line then ends (at most 15 minutes).

    A pack that returns uses as many slots as a visit has, from now until `until_ms`, and lines up
    anew for the others: places for all of them would be places that no pack takes.
    """
    return_ms = min(max(line_ms, tat_ms, now_ms), now_ms + HORIZON_MS)
    places = min(wanted, max(0, until_ms - now_ms) // spacing + 1) if spacing else wanted
    return return_ms, min(return_ms + places * spacing, now_ms + HORIZON_MS)


def reserved(
    host: Host, wanted: int, spacing_ms: int, now_ms: int, until_ms: int
) -> tuple[Host, Slots]:
    """Reserve slots of a host as it stands; the host as it stands then, and what they are."""
    if max(host.tat_ms, host.line_ms) > now_ms + AHEAD_MS_MAX:
        host = replace(host, tat_ms=min(host.tat_ms, now_ms), line_ms=0)
    if host.blocked_until_ms > now_ms:
        return host, Slots(at_ms=(), return_at_ms=host.blocked_until_ms)
    if spacing_ms == 0:
        return host, Slots(at_ms=(now_ms,) * wanted, return_at_ms=now_ms)
    first_ms, count = grant(host.tat_ms, wanted, spacing_ms, now_ms, until_ms)
    if count:
        host = replace(host, tat_ms=first_ms + count * spacing_ms)
    return_at_ms = now_ms
    if count < wanted:
        return_at_ms, line_ms = turn(
            host.line_ms, host.tat_ms, wanted - count, spacing_ms, now_ms, until_ms
        )
        host = replace(host, line_ms=line_ms)
    slots = tuple(first_ms + place * spacing_ms for place in range(count))
    return host, Slots(at_ms=slots, return_at_ms=return_at_ms)


def after_failure(host: Host, now_ms: int, chance: float, *, probe: bool) -> Host:
    """Count a request without an answer; the host as it stands then.

    Those that were on their way when a block began say nothing new, unless it was the probe.
    """
    if host.blocked_until_ms > now_ms and not probe:
        return host
    quiet = now_ms - max(host.failed_at_ms, host.blocked_until_ms) >= STRIKES_FORGIVEN_MS
    failures = 1 if quiet else host.failures + 1
    until_ms, rounds = host.blocked_until_ms, failures - FAILURES_MAX
    if rounds >= 0:
        wait_s = BLOCK_S * 2**rounds if rounds < ROUNDS_MAX else DOWN_S
        until_ms = max(until_ms, now_ms + round(wait_s * 1000 * (1 + BLOCK_JITTER * chance)))
    return replace(host, failures=failures, failed_at_ms=now_ms, blocked_until_ms=until_ms)


def is_doubtful(host: Host, now_ms: int) -> bool:
    """Whether a host has been silent, and has had its rest: one request may try it."""
    rested_ms = now_ms - host.blocked_until_ms
    return host.failures >= FAILURES_MAX and 0 <= rested_ms < STRIKES_FORGIVEN_MS


def is_down(host: Host, now_ms: int) -> bool:
    """Whether no pack waits for a host any longer."""
    return host.failures >= FAILURES_MAX + ROUNDS_MAX and host.blocked_until_ms > now_ms


def strikes_of(host: Host, now_ms: int) -> int:
    """How often a host asked to be left alone, as long as that counts."""
    quiet_ms = now_ms - max(host.struck_at_ms, host.blocked_until_ms)
    return 0 if quiet_ms >= STRIKES_FORGIVEN_MS else host.strikes


def block_until_ms(
    host: Host, now_ms: int, retry_after_s: float | None, random: Random, asked_at_ms: int
) -> tuple[int, int]:
    """Answer a 429 or 503: until when the host is left alone, and its strikes so far.

    `Retry-After` if given (at most a day), else 60 s doubling with every strike up to a day; 10 %
    jitter so that workers do not return together; 30 quiet minutes forgive all strikes. Requests
    that were on their way when the host struck are of the same strike.
    """
    if host.struck_at_ms > asked_at_ms and host.blocked_until_ms > now_ms:
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
