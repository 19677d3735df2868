"""Tickets: unguessable temporary addresses for requests that cannot carry a header.

A frame and a download cannot send the token. Each gets an address that works once, within one
minute.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

GOOD_MS, TICKETS_MAX = 60_000, 200


class Tickets:
    """Creates tickets, and redeems each of them once."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._given: dict[str, tuple[int, Any]] = {}

    def create(self, what: Any) -> str:
        """Create a ticket for a value. If too many tickets are open, the oldest become invalid."""
        now_ms = self._now_ms()
        self._given = {
            ticket: (at_ms, one)
            for ticket, (at_ms, one) in list(self._given.items())[1 - TICKETS_MAX :]
            if now_ms - at_ms < GOOD_MS
        }
        ticket = secrets.token_urlsafe(32)
        self._given[ticket] = (now_ms, what)
        return ticket

    def redeem(self, ticket: str) -> Any | None:
        """Return a ticket's value, or None if it is invalid, used or expired."""
        at_ms, what = self._given.pop(ticket, (0, None))
        return what if self._now_ms() - at_ms < GOOD_MS else None
