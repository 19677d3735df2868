"""Messages that only a newer version can read: sent again as they are, for a stated time.

After a rollback some of what is queued, or what its packs, crawls and journals hold, may be of the
version before it. Such a body is sent again byte for byte, with the longest delay, and its delivery
is acknowledged: the queue counts its receives anew, so neither a failure nor a strike is counted.
Since when it waits stands beside it. When that is too long ago it goes to the dead letters, with
the reason that says what to do (docs/upgrade.md).

A loose body from the seed queue waits on the queue of packs, where it means the same.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orbweaver.frontier.envelope import Waiting
from orbweaver.frontier.messages import Source
from orbweaver.model.errors import PortError, StoredNewer
from orbweaver.model.metrics import Metric
from orbweaver.model.version import REMEDY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orbweaver.frontier.queues import Queue
    from orbweaver.model.ports import Clock, Metrics
    from orbweaver.model.settings import Settings
    from orbweaver.worker.pack import Delivery

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A message has to wait for a newer version, for what is `said`."""

    said: str
    crawl: str


class Holder:
    """Holds messages back that only a newer version can read."""

    def __init__(self, *, queue: Queue, clock: Clock, metrics: Metrics, settings: Settings) -> None:
        """Take the ports."""
        self._queue = queue
        self._clock = clock
        self._metrics = metrics
        self._settings = settings

    async def hold(self, held: Sequence[tuple[Delivery, Held]]) -> list[str]:
        """Send messages again, or bury them; the ids of those with which that failed."""
        failed: list[str] = []
        lanes: dict[bool, list[tuple[Delivery, Waiting]]] = {}
        now_ms = self._clock.now_ms()
        for delivery, why in held:
            since_ms = now_ms if delivery.since_ms is None else delivery.since_ms
            told = {"id": delivery.id, "crawl": why.crawl, "why": why.said, "since_ms": since_ms}
            if now_ms - since_ms < self._settings.newer_wait_s * 1000:
                waiting = Waiting(body=delivery.body, crawl=why.crawl, since_ms=since_ms)
                express = self._settings.is_express(delivery.queue)
                lanes.setdefault(express, []).append((delivery, waiting))
                _log.warning("message.newer", extra=told)
            elif not await self._bury(delivery, f"{why.said}; {REMEDY}, then redrive"):
                failed.append(delivery.id)
        for express, some in lanes.items():
            try:
                await self._queue.hold([waiting for _, waiting in some], express=express)
                self._metrics.add(Metric.MESSAGES_NEWER, len(some))
            except PortError as error:
                _log.warning("messages.not_held", extra={"error": str(error)})
                failed += [delivery.id for delivery, _ in some]
        return failed

    async def _bury(self, delivery: Delivery, reason: str) -> bool:
        try:
            source = Source.of(delivery.queue, self._settings.pack_queues)
            await self._queue.bury(delivery.body, reason, source)
        except PortError as error:
            _log.warning("message.deferred", extra={"id": delivery.id, "error": repr(error)})
            return False
        _log.error("message.buried", extra={"id": delivery.id, "reason": reason})
        self._metrics.add(Metric.MESSAGES_BURIED, 1)
        return True


def newer_in(error: Exception) -> str | None:
    """Say what a newer version has stored, if that is why something failed."""
    if not isinstance(error, ExceptionGroup):
        return str(error) if isinstance(error, StoredNewer) else None
    if error.split(PortError)[1] is not None:
        return None
    return next(filter(None, map(newer_in, error.exceptions)), None)
