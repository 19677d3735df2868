"""How long an invocation goes on, and which packs it takes on meanwhile.

The packs of a backlog are visited until their crawl's round ends: a moment of the clock, the same
for all workers, so that what is left over comes back at the same time and travels together. Until
then an invocation takes on the next pack of a host as soon as the one before it has been asked for.

What is taken on hangs on a message all the same: its own, which is sent with a delay that ends
after the round, or until then that of the pack before it, whose commit sends it. Should the worker
die, a message is delivered as any other; else it finds its pack committed. Nothing is held back by
a worker that has taken a pack on.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Coroutine
from math import ceil
from typing import Any

from orbweaver.frontier.messages import Pack
from orbweaver.model.ports import Clock
from orbweaver.model.settings import Settings
from orbweaver.worker.ending import Ending

# The rest of a round must be worth a new pack: of a billed function, and where time costs nothing.
LEAST_MS, LEAST_UNBILLED_MS = 3_000, 250
COPY_S_MAX = 900
# A host that is busy with others, or a table out of reach, takes less; a blocked host more.
PAUSE_S_MAX = 10


class _Taken:
    """A pack that was taken on, and whether its message was sent, once that is known."""

    def __init__(self, *, after: str) -> None:
        self.after = after
        self.sent = False
        self.known = asyncio.Event()

    def tell(self, *, sent: bool) -> None:
        """Say so."""
        self.sent = sent
        self.known.set()


class Round:
    """One invocation's time."""

    def __init__(
        self,
        *,
        clock: Clock,
        settings: Settings,
        deadline_ms: int,
        ending: Ending,
    ) -> None:
        self._clock = clock
        self._settings = settings
        self._ending = ending
        reserve_s = settings.fetch_total_s + settings.apply_reserve_s
        self._reserve_ms = round(reserve_s * 1000)
        self._latest_ms = deadline_ms - self._reserve_ms
        billed = settings.waits_billed == "yes"
        self._least_ms = LEAST_MS if billed else LEAST_UNBILLED_MS
        self._take: Callable[[Pack], Coroutine[None, None, None]] | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._beside: set[asyncio.Task[None]] = set()
        self._ends: dict[str, int] = {}
        self._taken: dict[str, _Taken] = {}

    def until_ms(self, crawl_id: str, *, long: bool) -> int:
        """When the last request of a pack that comes now may start."""
        now_ms = self._clock.now_ms()
        if not long:
            return min(self._latest_ms, now_ms + round(self._settings.wait_s_max * 1000))
        return min(self._latest_ms, self._end_ms(crawl_id))

    def _end_ms(self, crawl_id: str) -> int:
        """When the crawl's round ends: rounds of different crawls do not end at once.

        An invocation takes part in one round of a crawl. Otherwise it would go on with the few
        hosts it has for as long as it may, while others do the same with theirs.
        """
        known_ms = self._ends.get(crawl_id)
        if known_ms is not None:
            return known_ms
        now_ms = self._clock.now_ms()
        length_ms = round(self._settings.round_s * 1000)
        phase_ms = zlib.crc32(crawl_id.encode()) % length_ms
        past_ms = (now_ms + self._least_ms - phase_ms) % length_ms
        end_ms = self._ends[crawl_id] = now_ms + self._least_ms - past_ms + length_ms
        return end_ms

    @property
    def open(self) -> bool:
        """Whether packs are taken on."""
        return self._take is not None and not self._ending.resting

    def takes(self, pack: Pack) -> bool:
        """Whether this worker is one for a pack: those with a browser have packs of their own."""
        apart = bool(self._settings.render_queue_url)
        return not apart or pack.render is bool(self._settings.browser)

    def goes_on(self, crawl_id: str) -> bool:
        """Whether a pack of a crawl would be taken on now."""
        left_ms = self.until_ms(crawl_id, long=True) - self._clock.now_ms()
        return self.open and left_ms >= self._least_ms and self.copy_delay_s(crawl_id) <= COPY_S_MAX

    async def pause(self, crawl_id: str, seconds: float) -> bool:
        """Wait until a pack that could do nothing may start again; False if it is not to.

        Its message would come back after the round only, and its host would stay idle until then.
        """
        if seconds > PAUSE_S_MAX:
            return False
        until_ms = self._clock.now_ms() + round(seconds * 1000)
        while self.goes_on(crawl_id) and (left_ms := until_ms - self._clock.now_ms()) > 0:
            await self._clock.sleep(min(1.0, left_ms / 1000))
        return self.goes_on(crawl_id)

    def left_s(self, crawl_id: str) -> int:
        """How long the round of a crawl goes on, in whole seconds."""
        left_ms = self.until_ms(crawl_id, long=True) - self._clock.now_ms()
        return ceil(max(left_ms, 0) / 1000)

    def copy_delay_s(self, crawl_id: str) -> int:
        """How long the message of a pack that is taken on is held back: until that is done with."""
        left_ms = self.until_ms(crawl_id, long=True) - self._clock.now_ms()
        return ceil((max(left_ms, 0) + self._reserve_ms) / 1000)

    def rest_s(self, crawl_id: str, *, alone: bool) -> int:
        """How long what comes too late to be taken on waits: until the round ends, for the others.

        One that did not would begin the next round alone. A queue counts in seconds: who has others
        to wait for comes in the second after the end, who has none (`alone`) in the one before it.
        """
        left_ms = self._end_ms(crawl_id) - self._clock.now_ms()
        if not self.open or not 0 < left_ms < self._least_ms:
            return 0
        return left_ms // 1000 if alone else ceil(left_ms / 1000)

    def take_on(self, pack: Pack, *, after: str = "") -> None:
        """Begin a pack, unless it was begun in this invocation before.

        Its message has been sent; or it is yet to be, by the pack `after` which it comes.
        """
        taken = self._taken.get(pack.id)
        if taken is None:
            if not self.open:
                return
            taken = self._taken[pack.id] = _Taken(after=after)
            self._start(pack)
        if not after:
            taken.tell(sent=True)

    def has_taken(self, pack: Pack) -> bool:
        """Whether a pack was taken on."""
        return pack.id in self._taken

    async def is_sent(self, pack_id: str) -> bool:
        """Whether a pack has a message that would go on with it, once that is known.

        What was taken on before must not do what only its message would do again.
        """
        taken = self._taken.get(pack_id)
        if taken is None:
            return True
        await taken.known.wait()
        return taken.sent

    def ended(self, pack_id: str) -> None:
        """Note that a pack was processed, as far as that goes now: it sends no more messages."""
        for taken in self._taken.values():
            if taken.after == pack_id:
                taken.tell(sent=taken.sent)

    def _start(self, pack: Pack) -> None:
        assert self._take is not None  # noqa: S101 - else it is not open
        self._tasks.append(asyncio.create_task(self._take(pack)))

    def beside(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Do what nothing waits for; what is not done when the invocation ends is given up."""
        task = asyncio.create_task(work)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)
        return task

    async def run(
        self, first: Awaitable[None], take: Callable[[Pack], Coroutine[None, None, None]]
    ) -> None:
        """Do what the batch holds, and what is taken on meanwhile."""
        self._take = take
        try:
            await first
            while self._tasks:
                await self._tasks[-1]
                self._tasks = [task for task in self._tasks if not task.done()]
        finally:
            # What is done beside is no longer in the set once it is cancelled.
            tasks = [*self._tasks, *self._beside]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
