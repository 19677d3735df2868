"""Receive messages from a queue, and acknowledge them one by one.

If a reader dies, its messages become visible again when their `hold_s` ends.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from orbweaver.adapters.sqlite.messages import (
    QueueDepth,
    QueueName,
    ReceivedMessage,
    Sharing,
    SqliteMessages,
)

if TYPE_CHECKING:
    from orbweaver.model.ports import Clock
    from orbweaver.worker.pack import Delivery

LOOK_S = 0.1  # between two reads while waiting


class SqliteInbox:
    """One queue of a store, for its readers."""

    def __init__(self, messages: SqliteMessages, queue: QueueName, *, clock: Clock) -> None:
        self._messages = messages
        self.queue = queue
        self._clock = clock

    async def receive(
        self, count_max: int, hold_s: float, wait_s: float = 0, sharing: Sharing | None = None
    ) -> tuple[ReceivedMessage, ...]:
        """Take messages and hide them for `hold_s` seconds. Wait up to `wait_s` for the first."""
        until_ms = self._clock.now_ms() + round(wait_s * 1000)
        while True:
            taken = self._messages.take(self.queue, count_max, hold_s, sharing)
            left_ms = until_ms - self._clock.now_ms()
            if taken or left_ms <= 0:
                return taken
            await self._clock.sleep(min(LOOK_S, left_ms / 1000))

    async def delete(self, taken: Sequence[ReceivedMessage]) -> None:
        """Delete processed messages. A message that another reader has taken again is kept."""
        self._messages.delete(message.handle for message in taken)

    async def show(self, taken: Sequence[ReceivedMessage], after_s: float = 0) -> None:
        self._messages.show((message.handle for message in taken), after_s)

    async def settle(
        self, taken: Sequence[ReceivedMessage], failed: Collection[str], after_s: float = 0
    ) -> None:
        """Acknowledge messages, except those with an id in `failed`, which become visible again."""
        await self.delete([message for message in taken if message.id not in failed])
        await self.show([message for message in taken if message.id in failed], after_s)

    def depth(self) -> QueueDepth:
        return self._messages.depth(self.queue)

    def next_due_ms(self) -> int | None:
        return self._messages.next_due_ms(self.queue)


def deliveries_of(taken: Sequence[ReceivedMessage], queue: QueueName) -> list[Delivery]:
    from orbweaver.worker.pack import Delivery

    return [
        Delivery(
            id=message.id,
            body=message.body,
            receives=message.receives,
            queue=queue,
            since_ms=message.since_ms,
        )
        for message in taken
    ]
