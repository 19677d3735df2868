"""Memory limit for bodies: only a few large bodies are read at the same time.

- The first `SMALL_BYTES` of a body are read on any connection. More requires one of a few places.
  Until then the rest stays unread, so its server waits.
- The bodies of one host can take all places but one, so that other hosts' pages get through.
- The longest waiting request is next. A request whose time ends while it waits has not failed: the
  delay was ours, and it is made again later.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Self
from weakref import WeakValueDictionary

SMALL_BYTES = 256 * 1024
# Delay before a request that got no place in time is made again.
LATER_S = 5.0


class LargeBodies:
    """Places for large bodies, per event loop. A loop that has ended holds none."""

    def __init__(self, places: int) -> None:
        self._count = places
        self._loop: asyncio.AbstractEventLoop | None = None
        self._places = asyncio.Semaphore(places)
        # Entries exist while a host is being read from.
        self._hosts: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    def of(self, host: str) -> LargeBody:
        """Return the place of one request to a host, not yet taken."""
        if (loop := asyncio.get_running_loop()) is not self._loop:
            self._loop, self._places = loop, asyncio.Semaphore(self._count)
            self._hosts = WeakValueDictionary()
        known = self._hosts.get(host)
        if known is None:
            known = self._hosts[host] = asyncio.Semaphore(max(1, self._count - 1))
        return LargeBody(known, self._places)


class LargeBody:
    """One request's place, taken on demand and released at the end of the block."""

    __slots__ = ("_host_places", "_places", "_taken", "taken", "waits")

    def __init__(self, host_places: asyncio.Semaphore, places: asyncio.Semaphore) -> None:
        self._host_places = host_places
        self._places = places
        self._taken = AsyncExitStack()
        self.taken = False
        # Whether it waits, or waited when it was cancelled.
        self.waits = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._taken.aclose()

    async def take(self) -> None:
        """Wait for the place."""
        self.waits = True
        # The host's own limit first: waiting here blocks no other host.
        await self._taken.enter_async_context(self._host_places)
        await self._taken.enter_async_context(self._places)
        self.waits, self.taken = False, True
