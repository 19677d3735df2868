"""Limit the duration of an invocation, and start packs before their messages arrive.

A pack is a message with up to 25 URLs. In a crawl with a delay, a worker processes a host's packs
one after the other, until the crawl's round ends. All workers of a crawl compute the same end, so
the messages of the remaining packs become visible together.
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
from orbweaver.worker.shutdown import ShutdownSignal

# A new pack is started only if at least this time of the round is left: with billed waits, and
# without.
LEAST_MS, LEAST_UNBILLED_MS = 3_000, 250
COPY_S_MAX = 900
# Longest wait before a pack is tried again. A busy host or a failing table needs less, a blocked
# host more.
PAUSE_S_MAX = 10


class _Taken:
    def __init__(self, *, after: str) -> None:
        self.after = after
        self.sent = False
        self.left_s: int | None = None
        self.known = asyncio.Event()

    def set_sent(self, *, sent: bool) -> None:
        self.sent = sent
        self.known.set()


class Round:
    """Time limits of one invocation, and the packs that it starts early (takes on).

    A host's next pack starts when all URLs of its current pack were requested. The message of the
    next pack is delayed until after the round. So a crash does not lose the pack. The commit of the
    current pack sends that message.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        settings: Settings,
        deadline_ms: int,
        ending: ShutdownSignal,
    ) -> None:
        self._clock = clock
        self._settings = settings
        self._ending = ending
        reserve_s = settings.fetching.fetch_total_s + settings.worker.apply_reserve_s
        self._reserve_ms = round(reserve_s * 1000)
        # No request may start after this time.
        self.latest_ms = deadline_ms - self._reserve_ms
        billed = settings.function.waits_billed == "yes"
        self._least_ms = LEAST_MS if billed else LEAST_UNBILLED_MS
        self._take: Callable[[Pack], Coroutine[None, None, None]] | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._beside: set[asyncio.Task[None]] = set()
        self._ends: dict[str, int] = {}
        self._taken: dict[str, _Taken] = {}

    def until_ms(self, crawl_id: str, *, long: bool, request_s: float = 0.0) -> int:
        """Return the time after which a pack that starts now must send no more requests.

        This is the end of the round if `long`, else a few seconds from now. `request_s` is the
        longest time limit of the crawl's requests.
        """
        now_ms = self._clock.now_ms()
        beyond_s = max(0.0, request_s - self._settings.fetching.fetch_total_s)
        latest_ms = self.latest_ms - round(beyond_s * 1000)
        if not long:
            return min(latest_ms, now_ms + round(self._settings.worker.wait_s_max * 1000))
        return min(latest_ms, self._end_ms(crawl_id))

    def _end_ms(self, crawl_id: str) -> int:
        """Return the end of the crawl's round. Until then, workers process the same hosts."""
        # The end is computed once per invocation and crawl. Otherwise the worker would keep its few
        # hosts as long as it can, while other workers do the same with theirs.
        known_ms = self._ends.get(crawl_id)
        if known_ms is not None:
            return known_ms
        now_ms = self._clock.now_ms()
        length_ms = round(self._settings.worker.round_s * 1000)
        phase_ms = zlib.crc32(crawl_id.encode()) % length_ms
        past_ms = (now_ms + self._least_ms - phase_ms) % length_ms
        end_ms = self._ends[crawl_id] = now_ms + self._least_ms - past_ms + length_ms
        return end_ms

    @property
    def is_open(self) -> bool:
        """True if this invocation starts packs early."""
        return self._take is not None and not self._ending.resting

    def accepts(self, pack: Pack) -> bool:
        # If there is a render queue, workers with a browser process only the packs to render.
        apart = bool(self._settings.queues.render_queue_url)
        return not apart or pack.render is bool(self._settings.function.browser)

    def accepts_more(self, crawl_id: str) -> bool:
        """Return True if a pack of the crawl could be started early now."""
        left_ms = self.until_ms(crawl_id, long=True) - self._clock.now_ms()
        return (
            self.is_open and left_ms >= self._least_ms and self.copy_delay_s(crawl_id) <= COPY_S_MAX
        )

    async def pause(self, crawl_id: str, seconds: float) -> bool:
        """Wait until a pack may be tried again. Return False if the round ends before."""
        # Without this wait, the pack would be processed after the round. Its host would be idle
        # until then.
        if seconds > PAUSE_S_MAX:
            return False
        until_ms = self._clock.now_ms() + round(seconds * 1000)
        while self.accepts_more(crawl_id) and (left_ms := until_ms - self._clock.now_ms()) > 0:
            await self._clock.sleep(min(1.0, left_ms / 1000))
        return self.accepts_more(crawl_id)

    def resend_delay_s(self, crawl_id: str, seconds: int) -> int | None:
        """Return the delay of a second message for a pack that was started early.

        `seconds` is the minimum. Returns None if the first message arrives as early.
        """
        left_ms = self.until_ms(crawl_id, long=True) - self._clock.now_ms()
        delay_s = max(seconds, ceil(left_ms / 1000))
        # If a pack has two messages at the same time, two workers request its URLs.
        return delay_s if delay_s < self.copy_delay_s(crawl_id) else None

    def copy_delay_s(self, crawl_id: str) -> int:
        """Return the delay of the message of a pack started early: until it must be committed."""
        left_ms = self.until_ms(crawl_id, long=True) - self._clock.now_ms()
        return ceil((max(left_ms, 0) + self._reserve_ms) / 1000)

    def rest_s(self, crawl_id: str, *, alone: bool) -> int:
        """Return the delay of a pack that is too late to start early: until the round ends.

        `alone` means that the crawl has only one host.
        """
        left_ms = self._end_ms(crawl_id) - self._clock.now_ms()
        if not self.is_open or not 0 < left_ms < self._least_ms:
            return 0
        # Without a delay, the pack would start the next round before the other packs. Queue delays
        # are whole seconds. Unless the crawl has one host (`alone`), the pack becomes due just
        # after the end.
        return left_ms // 1000 if alone else ceil(left_ms / 1000)

    def take_on(self, pack: Pack, *, after: str = "") -> None:
        """Start a pack early, once. Its message has been sent, or the pack `after` will send it."""
        taken = self._taken.get(pack.id)
        if taken is None:
            if not self.is_open:
                return
            taken = self._taken[pack.id] = _Taken(after=after)
            self._start(pack)
        if not after:
            taken.set_sent(sent=True)

    def has_taken(self, pack: Pack) -> bool:
        return pack.id in self._taken

    def leave(self, pack: Pack, delay_s: int = 0) -> bool:
        """Leave a pack that was started early to its message. Return True if that was sent.

        If not, the pack that sends the message later uses this delay.
        """
        taken = self._taken.get(pack.id)
        if taken is None:
            return True
        taken.left_s = delay_s
        return taken.sent

    def left_s(self, pack: Pack) -> int | None:
        """Return the delay of a pack that was started early and left to its message, or None."""
        taken = self._taken.get(pack.id)
        return None if taken is None else taken.left_s

    async def is_sent(self, pack_id: str) -> bool:
        """Return True if the message of a pack was sent. Waits until this is known."""
        taken = self._taken.get(pack_id)
        if taken is None:
            return True
        # An early pack must not send anything before its message is sent, because no later delivery
        # would repeat that.
        await taken.known.wait()
        if not taken.sent and taken.left_s is None:
            # The pack is done, except for its own messages. If another pack of this round sends its
            # message later, the message must not wait until the end of the round.
            taken.left_s = 0
        return taken.sent

    def ended(self, pack_id: str) -> None:
        """Record that a pack was processed, so that it sends no more messages."""
        for taken in self._taken.values():
            if taken.after == pack_id:
                taken.set_sent(sent=taken.sent)

    def _start(self, pack: Pack) -> None:
        assert self._take is not None  # noqa: S101 - `is_open` requires it
        self._tasks.append(asyncio.create_task(self._take(pack)))

    def run_background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start background work that is cancelled when the invocation ends."""
        task = asyncio.create_task(work)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)
        return task

    async def run(
        self, first: Awaitable[None], take: Callable[[Pack], Coroutine[None, None, None]]
    ) -> None:
        """Run `first`, then wait for all packs that were started early. `take` processes a pack."""
        self._take = take
        try:
            await first
            while self._tasks:
                await self._tasks[-1]
                self._tasks = [task for task in self._tasks if not task.done()]
        finally:
            # A copy, because a cancelled background task leaves the set.
            tasks = [*self._tasks, *self._beside]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
