"""Tickets: addresses that cannot be guessed, for what a browser fetches without a header.

A frame and a download carry no token, so each gets an address of its own, which is good once and
for a minute.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

GOOD_MS, TICKETS_MAX = 60_000, 200


class Tickets:
    """Gives tickets out, and takes each back once."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        """Take the clock."""
        self._now_ms = now_ms
        self._given: dict[str, tuple[int, Any]] = {}

    def give(self, what: Any) -> str:
        """Make a ticket for a thing; the oldest are dropped where there are too many."""
        now_ms = self._now_ms()
        self._given = {
            ticket: (at_ms, one)
            for ticket, (at_ms, one) in list(self._given.items())[1 - TICKETS_MAX :]
            if now_ms - at_ms < GOOD_MS
        }
        ticket = secrets.token_urlsafe(32)
        self._given[ticket] = (now_ms, what)
        return ticket

    def take(self, ticket: str) -> Any | None:
        """Return what a ticket is for; None for one that is not good, or not any more."""
        at_ms, what = self._given.pop(ticket, (0, None))
        return what if self._now_ms() - at_ms < GOOD_MS else None
