"""The receiving side of a queue: messages for an actor, acknowledged one by one.

A reader takes messages for a while (`hold_s`), works, and then deletes what is done and shows what
is to come back, as Lambda does with a batch and its partial response. A reader that dies shows
them by the end of the hold.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from orbweaver.adapters.sqlite.messages import (
    QueueDepth,
    QueueName,
    Sharing,
    SqliteMessages,
    TakenMessage,
)

if TYPE_CHECKING:
    from orbweaver.model.ports import Clock
    from orbweaver.worker.pack import Delivery

# How often a reader that waits looks for what other processes have sent.
LOOK_S = 0.1


class SqliteInbox:
    """One queue of a store, for its readers."""

    def __init__(self, messages: SqliteMessages, queue: QueueName, *, clock: Clock) -> None:
        """Take the queues, which of them, and the clock to wait by."""
        self._messages = messages
        self.queue = queue
        self._clock = clock

    async def receive(
        self, count_max: int, hold_s: float, wait_s: float = 0, sharing: Sharing | None = None
    ) -> tuple[TakenMessage, ...]:
        """Take messages, hidden from other readers for so long; wait so long for the first.

        With `sharing` those alone that are not to be left to other processes.
        """
        until_ms = self._clock.now_ms() + round(wait_s * 1000)
        while True:
            taken = self._messages.take(self.queue, count_max, hold_s, sharing)
            left_ms = until_ms - self._clock.now_ms()
            if taken or left_ms <= 0:
                return taken
            await self._clock.sleep(min(LOOK_S, left_ms / 1000))

    async def delete(self, taken: Sequence[TakenMessage]) -> None:
        """Acknowledge messages; what another reader has taken meanwhile is left to it."""
        self._messages.delete(message.handle for message in taken)

    async def show(self, taken: Sequence[TakenMessage], after_s: float = 0) -> None:
        """Have messages come back, at once or after so long."""
        self._messages.show((message.handle for message in taken), after_s)

    async def settle(
        self, taken: Sequence[TakenMessage], failed: Collection[str], after_s: float = 0
    ) -> None:
        """Carry out a partial batch response; messages whose ids are named come back."""
        await self.delete([message for message in taken if message.id not in failed])
        await self.show([message for message in taken if message.id in failed], after_s)

    def depth(self) -> QueueDepth:
        """Count the messages: those that can be taken, those in work, those not due yet."""
        return self._messages.depth(self.queue)

    def next_due_ms(self) -> int | None:
        """When there is next something to take; in the past if there is now, None if never."""
        return self._messages.next_due_ms(self.queue)


def deliveries_of(taken: Sequence[TakenMessage], queue: QueueName) -> list[Delivery]:
    """Hand messages over as a worker takes them (`Worker.run`)."""
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
