"""Write the stored content of pages into one file per crawl and invocation.

A file per pack (message with up to 25 URLs) would cost more than everything else. If a file cannot
be written, its packs fail as if their journals (stored results) could not be written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from orbweaver.frontier.body_file import BodyLocation, Kept, Segment
from orbweaver.frontier.retrying import RetryPolicy
from orbweaver.model.ports import Clock, Files
from orbweaver.model.settings import Settings
from orbweaver.worker.call_batching import CallBatcher

if TYPE_CHECKING:
    from random import Random

RETRY_BASE_S = 0.2


class BodyPart:
    """The stored content of one pack (message with up to 25 URLs) in its invocation's files."""

    def __init__(self, body_writer: BodyWriter, crawl_id: str) -> None:
        self._body_writer = body_writer
        self._crawl_id = crawl_id
        # Number of files that this pack has written. They can contain content of other packs.
        self.files = 0

    async def put(self, kept: Sequence[Kept]) -> Mapping[str, BodyLocation]:
        self.leave()
        if not kept:
            return {}
        locations, wrote = await self._body_writer.put(self._crawl_id, kept)
        self.files += wrote
        return locations

    def leave(self) -> None:
        """Declare that this pack adds no more content."""
        self._body_writer.left(self._crawl_id, self)


class BodyWriter:
    """Writes the content files of one container's invocation."""

    def __init__(self, *, files: Files, clock: Clock, random: Random, settings: Settings) -> None:
        self._files = files
        self._clock = clock
        self._random = random
        self._patience = RetryPolicy(clock=clock, random=random, base_s=RETRY_BASE_S)
        self._bytes_max = settings.worker.segment_bytes_max
        # By crawl. A file is written when no pack is fetching, or when it is large enough. It is
        # also written when the first pack has waited for `segment_wait_s`. Packs after that start
        # another file.
        self._gathering: CallBatcher[Segment, None] = CallBatcher(settings.worker.segment_wait_s)

    @contextmanager
    def taking_part(self, crawl_id: str) -> Iterator[BodyPart]:
        """Open a context for fetching a pack. Other packs of the crawl wait for its content."""
        part = BodyPart(self, crawl_id)
        self._gathering.expect(crawl_id, part)
        try:
            yield part
        finally:
            part.leave()

    def left(self, crawl_id: str, part: BodyPart) -> None:
        self._gathering.cancel_wait(crawl_id, part)

    async def put(
        self, crawl_id: str, kept: Sequence[Kept]
    ) -> tuple[Mapping[str, BodyLocation], bool]:
        """Add content of pages to the crawl's file, and wait until the file is written.

        Returns the locations of the content by URL, and True if this task wrote the file.
        """
        group = self._gathering.group(crawl_id, lambda: self._begin(crawl_id))
        locations = {one.url: group.input.add(one) for one in kept}
        _, wrote = await self._gathering.outcome(group, self._is_full, self._write)
        final = group.input.final_location
        return {url: final(location) for url, location in locations.items()}, wrote

    def _begin(self, crawl_id: str) -> Segment:
        return Segment(crawl_id, self._clock.now_ms(), self._random)

    def _is_full(self, segment: Segment) -> bool:
        return segment.size >= self._bytes_max

    async def _write(self, segment: Segment) -> None:
        body = segment.whole()
        await self._patience.call(lambda: self._files.put(segment.key, body))
