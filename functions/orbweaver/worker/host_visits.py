"""Give permits to request a host, one per URL of a visit, and count waiting visits."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field

from orbweaver.budget.prices import second, wait_ms_most
from orbweaver.frontier.pack_result import PackResult
from orbweaver.model.settings import Settings
from orbweaver.model.target import Target
from orbweaver.model.value import value_class
from orbweaver.politeness.pacer import Pacer, Turn
from orbweaver.worker.pack_context import PackContext


@value_class
class HostVisit:
    """Work of a pack at one host."""

    host: str
    context: PackContext
    result: PackResult


@value_class
class LoginRefused:
    """There is no login at a host, so its URLs fail. `error` has the reason without a secret."""

    error: str


@value_class
class HostPermit:
    """Permission to request `target` in `turn`. `leave` releases the semaphore early."""

    target: Target
    pacer: Pacer
    turn: Turn
    leave: Callable[[], None]


@dataclass(slots=True, kw_only=True)
class HostPermits:
    """Permits of one visit: a turn for each URL, with the host's semaphore held.

    `queue` has the URLs without a permit. `next_slot` waits for a slot, or returns a time to try
    again. After that the visit gets no more permits.
    """

    queue: deque[Target]
    pacer: Pacer
    semaphore: asyncio.Semaphore
    next_slot: Callable[[int], Awaitable[int | None]]
    # The visit holds this lock while it has slots or reserves them. Otherwise another visit could
    # acquire the host's semaphore, and then wait for slots with it.
    reserving: asyncio.Lock
    return_at_ms: int | None = None
    _is_locked: bool = field(default=False, init=False)
    _order: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    @asynccontextmanager
    async def permit(self) -> AsyncIterator[HostPermit | None]:
        """Hold the permit of the next URL. Yields None if there is none."""
        with ExitStack() as held:
            async with self._order:
                permit = await self._next(held) if self.return_at_ms is None else None
            yield permit

    async def _next(self, held: ExitStack) -> HostPermit | None:
        if not self._is_locked:
            self._is_locked = await self.reserving.acquire()
        await self.semaphore.acquire()
        held.callback(self.semaphore.release)
        self.return_at_ms = await self.next_slot(len(self.queue))
        turn = self.pacer.turn
        if self.return_at_ms is not None or turn.is_last:
            self._unlock()
        if self.return_at_ms is not None:
            return None
        target = self.queue.popleft()
        return HostPermit(target=target, pacer=self.pacer, turn=turn, leave=held.close)

    def _unlock(self) -> None:
        if self._is_locked:
            self.reserving.release()
        self._is_locked = False

    async def aclose(self) -> None:
        """Release the slots that no request uses."""
        self._unlock()
        await self.pacer.release()


class WaitingVisits:
    """Counts packs that wait for a host at the same time. They share the cost of the function."""

    def __init__(self, settings: Settings) -> None:
        self._visits = 0
        self._a_second = second(
            memory_mb=settings.function.memory_mb, architecture=settings.function.architecture
        )
        self._billed = settings.function.waits_billed == "yes"

    @contextmanager
    def joined(self) -> Iterator[None]:
        self._visits += 1
        try:
            yield
        finally:
            self._visits -= 1

    def wait_limit_ms(self) -> float:
        """Return the longest wait in ms that costs less than requeueing the URLs."""
        if not self._billed:
            return math.inf
        return wait_ms_most(a_second=self._a_second, visits=max(1, self._visits))
