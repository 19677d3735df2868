"""Whether a failed request is tried again, and when: exponential backoff with full jitter.

Transient endings (time-outs, refused and dropped connections, 5xx, 429) come back up to
`ATTEMPTS_MAX` times in all; those that hardly ever pass, twice; permanent ones (404, a certificate,
a forbidden address) do not.
Source of the jitter: AWS Architecture Blog, "Exponential Backoff And Jitter" (2015).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from orbweaver.model.outcome import Reason

if TYPE_CHECKING:
    from random import Random

ATTEMPTS_MAX = 4
# 5-10, 10-20 and 20-40 s: a server that restarts is back by the last attempt.
BASE_S = 10.0
CAP_S = 600.0
TOO_MANY_REQUESTS = 429
SERVER_ERROR_MIN = 500
NOT_IMPLEMENTED = 501
HTTP_VERSION = 505

TRANSIENT = frozenset(
    {
        Reason.DNS,
        Reason.DNS_UNKNOWN,
        Reason.CONNECT,
        Reason.TLS_HANDSHAKE,
        Reason.PROXY,
        Reason.TIMEOUT,
        Reason.DISCONNECTED,
        Reason.HTTP_SERVER_ERROR,
        Reason.BLOCKED,
    }
)

# A name that nobody knows may be a zone that is just being moved; a handshake cut short may be a
# balancer at work. Both are mostly there to stay.
ATTEMPTS_FEW = 2
FEW = frozenset({Reason.DNS_UNKNOWN, Reason.TLS_HANDSHAKE})


# What keeps a robots.txt from being had as long as nothing is changed by a person.
ROBOTS_ONCE = frozenset({Reason.ADDRESS, Reason.TLS})


def robots_attempts_max(reason: str | None) -> int:
    """How often a URL waits for a robots.txt that cannot be had for this reason, in all.

    None, or a reason of another release: as often as for anything that passes.
    """
    if reason in ROBOTS_ONCE:
        return 1
    return ATTEMPTS_FEW if reason in FEW else ATTEMPTS_MAX


def attempts_max(reason: Reason) -> int:
    """How often a URL is asked for, in all, that keeps failing for this reason."""
    return ATTEMPTS_FEW if reason in FEW else ATTEMPTS_MAX


def transient_status(status: int) -> bool:
    """Whether a status may be different the next time."""
    if status in (408, 425, TOO_MANY_REQUESTS):
        return True
    return status >= SERVER_ERROR_MIN and status not in (NOT_IMPLEMENTED, HTTP_VERSION)


def backoff_s(attempt: int, random: Random, base_s: float = BASE_S) -> float:
    """Seconds before attempt `attempt` + 1: between half and all of `base_s` x 2^(attempt - 1)."""
    ceiling: float = min(CAP_S, base_s * 2 ** (attempt - 1))
    return ceiling * (0.5 + random.random() / 2)
