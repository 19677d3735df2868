"""Store packs of deferred links (late packs), and send them when few URLs are in flight.

Late packs wait in a backlog of the crawl. Their places order them by band (rank).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from orbweaver.frontier.backlog import Backlog, WaitingPack, outgoing_of
from orbweaver.frontier.journal import OutgoingPack
from orbweaver.frontier.late_links import BANDS_MAX, LANE, band_at
from orbweaver.frontier.messages import Pack, encode
from orbweaver.frontier.queues import Queue
from orbweaver.model.crawl import Crawl
from orbweaver.model.ports import Clock
from orbweaver.model.slices import SLICE_PACKS
from orbweaver.model.turns import slices
from orbweaver.worker.rounds import Round
from orbweaver.worker.succession import Succession

# Places of late packs, and the times at which workers sent them, each by the worker's own clock.
SentTimes: TypeAlias = frozenset[tuple[str, int]]
# A late pack is not sent again within this time.
SENT_LATE_MS = 60_000
# The search for the first late pack of a host reads at most this number of packs.
LOOKED_THROUGH = 50


class LatePacks:
    """Stores and sends the late packs of crawls."""

    def __init__(
        self, *, backlog: Backlog, queue: Queue, clock: Clock, succession: Succession
    ) -> None:
        self._backlog = backlog
        self._queue = queue
        self._clock = clock
        self._succession = succession

    async def put(self, crawl: Crawl, packs: Sequence[Pack]) -> None:
        """Store packs of deferred links, before any message is sent that could end the crawl."""
        async for part in slices(packs, SLICE_PACKS):
            waiting = [WaitingPack(place=pack.place, body=encode(pack)) for pack in part]
            await self._backlog.put(crawl.id, LANE, waiting)

    async def send(
        self,
        crawl: Crawl,
        count: int,
        band_max: int = BANDS_MAX,
        known: SentTimes | None = None,
    ) -> SentTimes | None:
        """Send the first packs of deferred links.

        Sends each of the first `count` packs whose band (rank) is at most `band_max`. It sends none
        if one of these was sent in the last minute. With `known`, an earlier result, it sends none
        if one was sent since that result. Returns None, or the times of sending if the caller must
        check again.
        """
        now_ms = self._clock.now_ms()
        waiting = await self._backlog.first_places(crawl.id, LANE, count)
        times = frozenset((one.place, one.sent_at_ms) for one in waiting if one.sent_at_ms)
        if known is not None:  # clocks of workers differ, so times are only compared for equality
            sent = not times <= known
        else:  # each pack that was sent checks for late packs when it is done
            sent = any(_is_recently_sent(one, now_ms) for one in waiting)
        if sent:
            return times
        packs: list[OutgoingPack] = []
        again: SentTimes | None = None
        for one in waiting:
            if band_at(one.place) > band_max:
                continue
            # The time is recorded before sending, so that only one of several workers sends the
            # pack.
            if not await self._backlog.note_sent(crawl.id, LANE, one, now_ms):
                again = times
                break  # another worker is sending them
            packs.append(outgoing_of(one, self._clock.now_ms()))
        if packs:
            await self._queue.send(packs, express=crawl.express)
        return again

    async def send_to(self, crawl: Crawl, host: str, band_max: int, round_: Round) -> bool:
        """Send a host's first pack of deferred links with a band (rank) of at most `band_max`.

        Returns False if there is none.
        """
        now_ms = self._clock.now_ms()
        for one in await self._backlog.first_places(crawl.id, LANE, LOOKED_THROUGH):
            # Searching the message's text is faster than decoding it.
            if f"{host}/" not in one.body or band_at(one.place) > band_max:
                continue
            if _is_recently_sent(one, now_ms):
                continue
            if await self._backlog.note_sent(crawl.id, LANE, one, now_ms):
                await self._succession.send_waiting(crawl, one, round_)
                return True
        return False


def _is_recently_sent(waiting: WaitingPack, now_ms: int) -> bool:
    # If the clocks of workers differ, the time of sending can be in the future.
    return abs(now_ms - waiting.sent_at_ms) < SENT_LATE_MS
