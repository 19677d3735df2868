"""What is stored of pages, on its way into one file a crawl and invocation.

The file has to stand before any journal names it, and a file a pack would cost more than all else.
So the packs that a batch has of a crawl wait for each other: whoever has visited puts in what it
has, and the file is written when nobody is visiting any more, when it is large enough, or when the
first one has waited for `segment_wait_s`. Who comes later begins another one.

A pack whose file cannot be written fails as it would if its journal could not.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

from orbweaver.core.segment import Segment
from orbweaver.patience import Patience, happens
from orbweaver.ports import Transient

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from random import Random

    from orbweaver.core.segment import Kept, Place
    from orbweaver.ports import Clock, Files
    from orbweaver.settings import Settings

RETRY_BASE_S = 0.2


class _Open:
    """A segment that is not written yet, and those who wait for that."""

    def __init__(self, segment: Segment, due_s: float) -> None:
        self.segment = segment
        self.due_s = due_s
        self.written: asyncio.Future[None] | None = None


class Part:
    """One pack's part in the segments of its invocation."""

    def __init__(self, segments: Segments, crawl_id: str) -> None:
        self._segments = segments
        self._crawl_id = crawl_id
        self.visiting = True
        # How many files it has written, for itself and others.
        self.files = 0

    async def put(self, kept: Sequence[Kept]) -> Mapping[str, Place]:
        """Store what is kept of pages; where it lies, by URL."""
        self.leave()
        if not kept:
            return {}
        places, wrote = await self._segments.put(self._crawl_id, kept)
        self.files += wrote
        return places

    def leave(self) -> None:
        """Have nothing to put in any more."""
        if self.visiting:
            self.visiting = False
            self._segments.left(self._crawl_id)


class Segments:
    """The files of one container's invocation."""

    def __init__(self, *, files: Files, clock: Clock, random: Random, settings: Settings) -> None:
        """Take the ports, and how large a file gets."""
        self._files = files
        self._clock = clock
        self._random = random
        self._patience = Patience(clock=clock, random=random, base_s=RETRY_BASE_S)
        self._wait_s = settings.segment_wait_s
        self._bytes_max = settings.segment_bytes_max
        self._visiting: Counter[str] = Counter()
        self._open: dict[str, _Open] = {}
        # Somebody has left, or is about to write.
        self._turn = asyncio.Event()

    @contextmanager
    def taking_part(self, crawl_id: str) -> Iterator[Part]:
        """Visit, so that others of the crawl wait for what comes of it."""
        self._visiting[crawl_id] += 1
        part = Part(self, crawl_id)
        try:
            yield part
        finally:
            part.leave()

    def left(self, crawl_id: str) -> None:
        """Note that somebody is through with visiting."""
        self._visiting[crawl_id] -= 1
        self._turn.set()

    async def put(self, crawl_id: str, kept: Sequence[Kept]) -> tuple[Mapping[str, Place], bool]:
        """Put pages into the open segment of a crawl, and wait until it is written.

        Where they lie, and whether it was us who wrote it.
        """
        running = asyncio.get_running_loop()
        opened = self._open.get(crawl_id)
        if opened is None:
            segment = Segment(crawl_id, self._clock.now_ms(), self._random)
            opened = self._open[crawl_id] = _Open(segment, running.time() + self._wait_s)
        places = {one.url: opened.segment.add(one) for one in kept}
        while opened.written is None:
            full = opened.segment.size >= self._bytes_max
            if full or self._visiting[crawl_id] <= 0 or running.time() >= opened.due_s:
                await self._write(crawl_id, opened)
                return places, True
            await happens(self._turn, opened.due_s - running.time())
        await asyncio.shield(opened.written)
        return places, False

    async def _write(self, crawl_id: str, opened: _Open) -> None:
        """Write a segment, for all who wait for it."""
        opened.written = asyncio.get_running_loop().create_future()
        if self._open.get(crawl_id) is opened:
            del self._open[crawl_id]
        self._turn.set()
        try:
            body = opened.segment.whole()
            await self._patience.tried(lambda: self._files.put(opened.segment.key, body))
        except BaseException as error:
            # Whoever was to write it is gone, and with it the file: the others come back.
            gone = (
                error if isinstance(error, Exception) else Transient("the segment was not written")
            )
            opened.written.set_exception(gone)
            opened.written.exception()  # somebody has seen it, whether anybody waits or not
            raise
        opened.written.set_result(None)
