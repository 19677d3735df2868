"""Dead letters (messages that failed too often) on SQS, for an operator's commands.

Sources: Amazon SQS developer guide, "Short and long polling", "Visibility timeout". API reference,
ReceiveMessage, ChangeMessageVisibilityBatch, DeleteMessageBatch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from orbweaver.adapters.aws import clients
from orbweaver.frontier.dead_letters import DeadLetter
from orbweaver.frontier.messages import MessageSource
from orbweaver.model.errors import Transient

BATCH_ENTRIES_MAX = 10
CALLS_AT_ONCE = 4
# SQS can return no message although the queue has some. Only several empty long polls mean that it
# is empty.
EMPTY_ROUNDS = 3
WAIT_S = 1
# The queue from which SQS moved a message. Senders cannot set it.
MOVED_FROM = "DeadLetterQueueSourceArn"


class SqsDeadLetters:
    """The dead-letter queue of a stack."""

    def __init__(
        self,
        client: Any,
        *,
        dead_letter_url: str,
        crawl_url: str,
        seed_url: str = "",
        pack_queues: AbstractSet[str] = frozenset(),
        wait_s: int = WAIT_S,
    ) -> None:
        self._client = client
        self._url = dead_letter_url
        self._homes = {MessageSource.PACKS: crawl_url, MessageSource.SEEDS: seed_url}
        self._pack_queues = pack_queues
        self._wait_s = wait_s

    async def take(self, count_max: int, hold_s: int) -> tuple[DeadLetter, ...]:
        # Taken messages are hidden until they are put back. A dead-letter queue has no dead-letter
        # queue itself, so repeated takes move no message.
        step = BATCH_ENTRIES_MAX
        left = [min(step, count_max - start) for start in range(0, count_max, step)]
        for _ in range(EMPTY_ROUNDS):
            receives = (self._receive(number, hold_s) for number in left[:CALLS_AT_ONCE])
            rounds = await clients.all_of(receives, CALLS_AT_ONCE)
            if letters := tuple(letter for some in rounds for letter in some):
                return letters
        return ()

    async def put_back(self, letters: Sequence[DeadLetter]) -> None:
        # Failures do not matter: such a message is visible already.
        await self._batches("change_message_visibility_batch", letters, VisibilityTimeout=0)

    async def delete(self, letters: Sequence[DeadLetter]) -> None:
        failed = await self._batches("delete_message_batch", letters)
        if failed:
            raise Transient(f"delete_message_batch: {failed} messages were not deleted")

    async def resend(
        self, bodies: Sequence[str], source: MessageSource = MessageSource.PACKS
    ) -> None:
        url = self._homes[source]
        sends = (
            clients.call(self._client, "send_message", QueueUrl=url, MessageBody=body)
            for body in bodies
        )
        await clients.all_of(sends, CALLS_AT_ONCE)

    async def _receive(self, number: int, hold_s: int) -> list[DeadLetter]:
        answer = await clients.call(
            self._client,
            "receive_message",
            QueueUrl=self._url,
            MaxNumberOfMessages=number,
            VisibilityTimeout=hold_s,
            WaitTimeSeconds=self._wait_s,
            MessageAttributeNames=["reason", "source"],
            MessageSystemAttributeNames=["All"],
        )
        return [self._letter(message) for message in answer.get("Messages", ())]

    def _letter(self, message: dict[str, Any]) -> DeadLetter:
        system = message.get("Attributes", {})
        received = system.get("ApproximateFirstReceiveTimestamp")
        told = _worker_attributes(message)
        return DeadLetter(
            id=message["MessageId"],
            body=message["Body"],
            reason=told.get("reason"),
            receives=int(system.get("ApproximateReceiveCount", 1)),
            sent_at_ms=int(system.get("SentTimestamp", 0)),
            first_received_at_ms=int(received) if received else None,
            source=_source_of(system, told, self._pack_queues),
            handle=message["ReceiptHandle"],
        )

    async def _batches(
        self, operation: str, letters: Sequence[DeadLetter], **parameters: Any
    ) -> int:
        """Apply an operation to dead letters, ten per call. Return how many failed."""
        calls = (
            clients.call(
                self._client,
                operation,
                QueueUrl=self._url,
                Entries=[
                    {"Id": str(place), "ReceiptHandle": letter.handle, **parameters}
                    for place, letter in enumerate(batch)
                ],
            )
            for batch in _chunks_of_ten(letters)
        )
        answers = await clients.all_of(calls, CALLS_AT_ONCE)
        return sum(len(answer.get("Failed", ())) for answer in answers)


def _chunks_of_ten(letters: Sequence[DeadLetter]) -> Iterator[Sequence[DeadLetter]]:
    for start in range(0, len(letters), BATCH_ENTRIES_MAX):
        yield letters[start : start + BATCH_ENTRIES_MAX]


def _worker_attributes(message: dict[str, Any]) -> dict[str, str]:
    """Return the attributes that a worker set on a dead letter, or {} if SQS moved it."""
    if MOVED_FROM in message.get("Attributes", {}):
        return {}
    attributes = message.get("MessageAttributes", {})
    return {name: one["StringValue"] for name, one in attributes.items() if "StringValue" in one}


def _source_of(
    system: dict[str, str], told: dict[str, str], pack_queues: AbstractSet[str]
) -> MessageSource:
    # A message without any source is read as seeds.
    own = told.get("source") == MessageSource.PACKS
    if moved_from := system.get(MOVED_FROM):
        own = moved_from.rpartition(":")[2] in pack_queues
    return MessageSource.PACKS if own else MessageSource.SEEDS
