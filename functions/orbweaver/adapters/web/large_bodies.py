"""Limit the memory of bodies: only a few large bodies are read at the same time.

A body above `SMALL_BYTES` needs one of a few places, in order of waiting. Until then the rest stays
unread.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Self
from weakref import WeakValueDictionary

SMALL_BYTES = 256 * 1024
# Delay before a request that got no place in time is sent again. It does not count as failed.
LATER_S = 5.0


class LargeBodies:
    """Places for large bodies, per event loop."""

    def __init__(self, places: int) -> None:
        self._count = places
        self._loop: asyncio.AbstractEventLoop | None = None
        self._places = asyncio.Semaphore(places)
        # Entries exist while a host is being read from.
        self._hosts: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    def place_for(self, host: str) -> LargeBody:
        """Return the place of one request to a host. The request must still `take` it."""
        if (loop := asyncio.get_running_loop()) is not self._loop:
            self._loop, self._places = loop, asyncio.Semaphore(self._count)
            self._hosts = WeakValueDictionary()
        known = self._hosts.get(host)
        if known is None:
            # One place is left for other hosts.
            known = self._hosts[host] = asyncio.Semaphore(max(1, self._count - 1))
        return LargeBody(known, self._places)


class LargeBody:
    """The place of one request, released when the context manager exits."""

    __slots__ = ("_host_places", "_places", "_taken", "taken", "waits")

    def __init__(self, host_places: asyncio.Semaphore, places: asyncio.Semaphore) -> None:
        self._host_places = host_places
        self._places = places
        self._taken = AsyncExitStack()
        self.taken = False
        # True while waiting, and if cancelled while waiting.
        self.waits = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._taken.aclose()

    async def take(self) -> None:
        self.waits = True
        # The host's own limit first: waiting here blocks no other host.
        await self._taken.enter_async_context(self._host_places)
        await self._taken.enter_async_context(self._places)
        self.waits, self.taken = False, True
