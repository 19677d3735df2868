"""Repeat calls to storage and queues after transient faults, and limit concurrent calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

from orbweaver.model.backoff import ATTEMPTS_MAX, backoff_s
from orbweaver.model.errors import Transient
from orbweaver.model.page_record import PageRecord
from orbweaver.model.value import value_class

if TYPE_CHECKING:
    from random import Random

    from orbweaver.frontier.ports import Pages
    from orbweaver.model.ports import Clock

T = TypeVar("T")
STORAGE_BASE_S = 2.0  # a busy bucket recovers sooner than a busy site


@value_class
class RetryPolicy:
    """Repeats a failed call a few times, with waits that grow from `base_s`, then raises."""

    clock: Clock
    random: Random
    base_s: float = STORAGE_BASE_S

    async def call(self, call: Callable[[], Awaitable[T]]) -> T:
        for attempt in range(1, ATTEMPTS_MAX):
            try:
                return await call()
            except Transient:
                await self._wait(attempt)
        return await call()

    async def read_shard(
        self, pages: Pages, day: str, shard: int, *, crawl: str, after: str | None = None
    ) -> AsyncGenerator[tuple[str, PageRecord], None]:
        """Read a crawl's records of a shard, and continue after transient faults."""
        failures = 0
        while True:
            try:
                async with closing(pages.read_shard(day, shard, after=after, crawl=crawl)) as rows:
                    async for key, record in rows:
                        yield key, record
                        after, failures = key, 0  # each record resets the attempts
            except Transient:
                failures += 1
                if failures == ATTEMPTS_MAX:
                    raise
                await self._wait(failures)
            else:
                return

    async def _wait(self, attempt: int) -> None:
        await self.clock.sleep(backoff_s(attempt, self.random, self.base_s))


@asynccontextmanager
async def closing(rows: AsyncIterator[T]) -> AsyncIterator[AsyncIterator[T]]:
    """Close `rows` at the end of the block, instead of when it is garbage-collected."""
    try:
        yield rows
    finally:
        if isinstance(rows, AsyncGenerator):
            await rows.aclose()


async def happens(event: asyncio.Event, within_s: float) -> None:
    event.clear()  # only an event from now on counts
    with suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            await event.wait()


async def all_of(calls: Iterable[Awaitable[T]], at_once: int) -> list[T]:
    """Await calls, `at_once` at a time. Return results in order, or raise the first error."""
    found: dict[int, T] = {}

    async def take(turns: Iterator[tuple[int, Awaitable[T]]]) -> None:
        for index, call in turns:
            found[index] = await call

    # Each call is taken from the iterator when it starts, so no awaitable is left unawaited.
    turns = enumerate(calls)
    await asyncio.gather(*(take(turns) for _ in range(at_once)))
    return [found[index] for index in sorted(found)]
