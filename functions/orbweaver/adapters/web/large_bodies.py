"""Memory for bodies: most are small, and few that are not are read at the same time.

Rules

- The first `SMALL_BYTES` of a body are read wherever there is a connection. For more it takes a
  place, of which there are few; until it gets one nothing more of it is read, so its server waits.
- The bodies of one host have all places but one: another host's page gets through beside them.
- Who has waited for longest is next. A request whose time ends while it waits has not failed: it
  was held up by us, and is made again later.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Self
from weakref import WeakValueDictionary

SMALL_BYTES = 256 * 1024
# When a request is made again that got no place in its time.
LATER_S = 5.0


class LargeBodies:
    """Places for so many bodies, in the loop that runs: one that has ended held none."""

    def __init__(self, places: int) -> None:
        self._count = places
        self._loop: asyncio.AbstractEventLoop | None = None
        self._places = asyncio.Semaphore(places)
        # As long as a host is being read from.
        self._hosts: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    def of(self, host: str) -> LargeBody:
        """Make what one request to a host takes its place with."""
        if (loop := asyncio.get_running_loop()) is not self._loop:
            self._loop, self._places = loop, asyncio.Semaphore(self._count)
            self._hosts = WeakValueDictionary()
        known = self._hosts.get(host)
        if known is None:
            known = self._hosts[host] = asyncio.Semaphore(max(1, self._count - 1))
        return LargeBody(known, self._places)


class LargeBody:
    """One request's place, once it needs one; given back at the end of its block."""

    __slots__ = ("_host_places", "_places", "_taken", "taken", "waits")

    def __init__(self, host_places: asyncio.Semaphore, places: asyncio.Semaphore) -> None:
        self._host_places = host_places
        self._places = places
        self._taken = AsyncExitStack()
        self.taken = False
        # Whether it waits, or waited when it was cancelled.
        self.waits = False

    async def __aenter__(self) -> Self:
        """Begin, without a place."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Give the place back."""
        await self._taken.aclose()

    async def take(self) -> None:
        """Wait for the place."""
        self.waits = True
        # First among its host's own: who waits here takes nothing from others.
        await self._taken.enter_async_context(self._host_places)
        await self._taken.enter_async_context(self._places)
        self.waits, self.taken = False, True
