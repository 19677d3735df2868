"""Run other asyncio tasks between the slices of long work (model/slices.py).

Work that fits into one slice never yields, so small pages cost the event loop nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Generator, Sequence, Sized
from typing import TypeVar

from orbweaver.model.slices import SLICE_URLS, sliced

T = TypeVar("T")
Result = TypeVar("Result")


async def slices(items: Sequence[T], size: int = SLICE_URLS) -> AsyncIterator[Sequence[T]]:
    """Yield items in slices, and let other tasks run between two slices."""
    for number, part in enumerate(sliced(items, size)):
        if number:
            await asyncio.sleep(0)
        yield part


async def turn_after(items: Sized) -> None:
    """Let other tasks run if there are more items than fit into one slice."""
    if len(items) > SLICE_URLS:
        await asyncio.sleep(0)


async def in_turns(work: Generator[None, None, Result]) -> Result:
    """Run a generator to its end, and let other tasks run at each of its `yield`s."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: Result = end.value
            return result
        await asyncio.sleep(0)
