"""Decide whether and when a failed request is retried: exponential backoff with jitter.

Transient failures (time-outs, refused and dropped connections, 5xx, 429) get up to `ATTEMPTS_MAX`
attempts. Failures that rarely recover get two, permanent ones (404, a certificate, a forbidden
address) one. `outcome.Reason` has the number for each reason. Source of the jitter: AWS
Architecture Blog, "Exponential Backoff And Jitter" (2015).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

ATTEMPTS_MAX = 4
# Delays of 5-10, 10-20 and 20-40 s, so that a server can restart before the last attempt. If only
# one page of a host fails, its delays are a part of these (politeness/host_health.py).
BASE_S = 10.0
CAP_S = 600.0
TOO_MANY_REQUESTS = 429
SERVER_ERROR_MIN = 500
NOT_IMPLEMENTED = 501
HTTP_VERSION = 505
# Number of attempts after failures that rarely recover.
ATTEMPTS_FEW = 2


def transient_status(status: int) -> bool:
    """Return True if a retry can result in another status."""
    if status in (408, 425, TOO_MANY_REQUESTS):
        return True
    return status >= SERVER_ERROR_MIN and status not in (NOT_IMPLEMENTED, HTTP_VERSION)


def attempts_of(most: int, retries: int | None) -> int:
    """Return the number of attempts at a URL whose failure allows `most`.

    `retries` is the user's limit of further attempts. It can be above the default only for failures
    that get all attempts by default.
    """
    if retries is None:
        return most
    return retries + 1 if most == ATTEMPTS_MAX else min(most, retries + 1)


def backoff_s(attempt: int, random: Random, base_s: float = BASE_S) -> float:
    """Return the seconds to wait after `attempt`: half to all of `base_s` x 2^(attempt - 1)."""
    ceiling: float = min(CAP_S, base_s * 2 ** (attempt - 1))
    return ceiling * (0.5 + random.random() / 2)
