"""Turns at one resource, which hosts use in rotation."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeAlias

Ticket: TypeAlias = "asyncio.Future[None]"


class Turns:
    """A lock that serves waiting hosts in rotation, and the tasks of one host in order."""

    def __init__(self) -> None:
        self._taken = False
        self._waiting: OrderedDict[str, deque[Ticket]] = OrderedDict()

    @asynccontextmanager
    async def taken(self, host: str, wait_s: float) -> AsyncIterator[bool]:
        """Wait up to `wait_s` seconds for a turn, and yield whether it came."""
        got = await self._take(host, wait_s)
        try:
            yield got
        finally:
            if got:
                self._release()

    async def _take(self, host: str, wait_s: float) -> bool:
        if not self._taken:
            self._taken = True
            return True
        ticket: Ticket = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(host, deque()).append(ticket)
        try:
            async with asyncio.timeout(max(0.0, wait_s)):
                await ticket
        except TimeoutError:
            return not self._leave(host, ticket)  # the turn may have come at the last moment
        except asyncio.CancelledError:
            if not self._leave(host, ticket):
                self._release()
            raise
        return True

    def _leave(self, host: str, ticket: Ticket) -> bool:
        """Stop waiting. Return False if the turn had come."""
        queue = self._waiting.get(host)
        if queue is None or ticket not in queue:
            return False
        queue.remove(ticket)
        if not queue:
            del self._waiting[host]
        return True

    def _release(self) -> None:
        if not self._waiting:
            self._taken = False
            return
        host, queue = self._waiting.popitem(last=False)
        ticket = queue.popleft()
        if queue:
            self._waiting[host] = queue  # after all other hosts
        ticket.set_result(None)
