"""Limit the memory of bodies: only a few large bodies are read at the same time.

A request needs one of a few places to read a body beyond `SMALL_BYTES`. Requests get places in the
order in which they asked. Until then the remaining body stays unread.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Self
from weakref import WeakValueDictionary

SMALL_BYTES = 256 * 1024
# Seconds after which a request is sent again if it got no place in time. It does not count as a
# failed attempt.
LATER_S = 5.0


class LargeBodies:
    """Gives requests places to read large bodies. The places belong to one event loop."""

    def __init__(self, places: int) -> None:
        self._count = places
        self._loop: asyncio.AbstractEventLoop | None = None
        self._places = asyncio.Semaphore(places)
        # Places by host. An entry exists while a request to the host uses it.
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
