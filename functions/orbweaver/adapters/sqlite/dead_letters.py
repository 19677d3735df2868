"""Dead letters (messages that failed too often) for an operator's commands."""

from __future__ import annotations

from collections.abc import Sequence

from orbweaver.adapters.sqlite.messages import Outgoing, QueueName, ReceivedMessage, SqliteMessages
from orbweaver.frontier.dead_letters import DeadLetter
from orbweaver.frontier.messages import MessageSource

# The queue to which a dead letter is sent again, by its source.
_HOMES = {MessageSource.PACKS: QueueName.CRAWL, MessageSource.SEEDS: QueueName.SEEDS}
_PACK_QUEUES = (MessageSource.PACKS, QueueName.CRAWL, QueueName.EXPRESS)


class SqliteDeadLetters:
    """The dead-letter queue of a store."""

    def __init__(self, messages: SqliteMessages) -> None:
        self._messages = messages

    async def take(self, count_max: int, hold_s: int) -> tuple[DeadLetter, ...]:
        taken = self._messages.take(QueueName.DEAD_LETTERS, count_max, hold_s)
        return tuple(self._letter(message) for message in taken)

    async def put_back(self, letters: Sequence[DeadLetter]) -> None:
        self._messages.show(letter.handle for letter in letters)

    async def delete(self, letters: Sequence[DeadLetter]) -> None:
        self._messages.delete(letter.handle for letter in letters)

    async def resend(
        self, bodies: Sequence[str], source: MessageSource = MessageSource.PACKS
    ) -> None:
        self._messages.send(_HOMES[source], [Outgoing(body=body) for body in bodies])

    def _letter(self, message: ReceivedMessage) -> DeadLetter:
        own = message.source in _PACK_QUEUES
        source = MessageSource.PACKS if own else MessageSource.SEEDS
        return DeadLetter(
            id=message.id,
            body=message.body,
            reason=message.reason,
            receives=message.receives,
            sent_at_ms=message.sent_at_ms,
            first_received_at_ms=message.first_taken_at_ms,
            source=source,
            handle=message.handle,
        )
