"""Models SQS for one crawl: delayed, visible and in-flight messages, oldest first."""

from __future__ import annotations

import heapq
from collections import deque
from typing import TYPE_CHECKING

from orbweaver.budget.billing_units import Stage, Term

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.scale.books import Books, Sizes
    from bench.scale.kernel import Kernel
    from orbweaver.frontier.journal import OutgoingPack
    from orbweaver.frontier.messages import Pack

# The quota of SQS for messages that are received and not deleted.
IN_FLIGHT_MAX = 120_000


class Queue:
    """The crawl queue."""

    def __init__(self, kernel: Kernel, books: Books, sizes: Sizes) -> None:
        self._kernel = kernel
        self._books = books
        self._sizes = sizes
        self._delayed: list[tuple[int, int, Pack]] = []
        self._visible: deque[tuple[int, Pack]] = deque()
        self._sent = 0
        self.in_flight = 0
        self.in_flight_most = 0

    def send(self, outgoing_packs: Sequence[OutgoingPack]) -> None:
        """Accept packs (batches of URLs), in SQS batches of ten."""
        targets = sum(len(outgoing.pack.targets) for outgoing in outgoing_packs)
        requests = self._sizes.outgoing_chunks(targets, len(outgoing_packs))
        self._books.use(Term.SQS, Stage.SEND, requests)
        now_ms = self._kernel.time_ms
        for outgoing in outgoing_packs:
            self._sent += 1
            if outgoing.delay_s:
                due_ms = now_ms + outgoing.delay_s * 1000
                heapq.heappush(self._delayed, (due_ms, self._sent, outgoing.pack))
            else:
                self._visible.append((now_ms, outgoing.pack))

    def refresh(self) -> None:
        """Make due messages visible."""
        now_ms = self._kernel.time_ms
        while self._delayed and self._delayed[0][0] <= now_ms:
            due_ms, _, pack = heapq.heappop(self._delayed)
            self._visible.append((due_ms, pack))

    def receive(self, count: int) -> list[Pack]:
        """Return a batch. Bills its receives and the later deletes."""
        count = min(count, len(self._visible), IN_FLIGHT_MAX - self.in_flight)
        packs = [self._visible.popleft()[1] for _ in range(count)]
        self.in_flight += count
        self.in_flight_most = max(self.in_flight_most, self.in_flight)
        targets = sum(len(pack.targets) for pack in packs)
        received = self._sizes.outgoing_chunks(targets, count)
        self._books.use(Term.SQS, Stage.RECEIVE, received + -(-count // 10))
        return packs

    def delete(self, count: int) -> None:
        self.in_flight -= count

    @property
    def visible(self) -> int:
        return len(self._visible)

    @property
    def delayed(self) -> int:
        return len(self._delayed)

    @property
    def oldest_ms(self) -> int:
        """Time at which the oldest visible message became visible."""
        return self._visible[0][0]

    @property
    def next_ms(self) -> int | None:
        """Time at which the next message becomes visible, or None."""
        return self._delayed[0][0] if self._delayed else None


class Port:
    """The queue with the interface that the worker's parts use."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue

    async def send(self, outgoing_packs: Sequence[OutgoingPack], *, express: bool) -> None:
        del express
        self._queue.send(outgoing_packs)
