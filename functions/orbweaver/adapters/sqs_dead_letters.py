"""The dead-letter queue as an SQS queue, for whoever looks after it; any other queue likewise.

Rules
- A receive asks for 10 messages at most and gets fewer, or none, though there are more: only
  several empty ones in a row, of those that wait (and so ask every server), say that it is empty.
- A look at a message is a receive: it is hidden for a while, and put back by a visibility timeout
  of 0. The dead-letter queue has none of its own, so being looked at never moves a message on.
- What is not hidden any more cannot be put back, and need not be.

Source: Amazon SQS developer guide, "Short and long polling", "Visibility timeout"; API reference,
ReceiveMessage, ChangeMessageVisibilityBatch, DeleteMessageBatch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from orbweaver.adapters import aws
from orbweaver.core.dead_letters import DeadLetter
from orbweaver.ports import Transient

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

BATCH_ENTRIES_MAX = 10
CALLS_AT_ONCE = 4
EMPTY_ROUNDS = 3
WAIT_S = 1
HIDDEN = ("ApproximateNumberOfMessagesDelayed", "ApproximateNumberOfMessagesNotVisible")


class SqsDeadLetters:
    """The dead-letter queue; what is sent back as it is goes to the crawl queue."""

    def __init__(
        self, client: Any, *, dead_letter_url: str, crawl_url: str, wait_s: int = WAIT_S
    ) -> None:
        self._client = client
        self._url = dead_letter_url
        self._crawl_url = crawl_url
        self._wait_s = wait_s

    async def take(self, count_max: int, hold_s: int) -> tuple[DeadLetter, ...]:
        """See the port."""
        step = BATCH_ENTRIES_MAX
        left = [min(step, count_max - start) for start in range(0, count_max, step)]
        for _ in range(EMPTY_ROUNDS):
            receives = (self._receive(number, hold_s) for number in left[:CALLS_AT_ONCE])
            rounds = await aws.all_of(receives, CALLS_AT_ONCE)
            if letters := tuple(letter for some in rounds for letter in some):
                return letters
        return ()

    async def put_back(self, letters: Sequence[DeadLetter]) -> None:
        """See the port."""
        await self._batches("change_message_visibility_batch", letters, VisibilityTimeout=0)

    async def delete(self, letters: Sequence[DeadLetter]) -> None:
        """See the port."""
        failed = await self._batches("delete_message_batch", letters)
        if failed:
            raise Transient(f"delete_message_batch: {failed} messages were not deleted")

    async def resend(self, bodies: Sequence[str]) -> None:
        """See the port."""
        sends = (
            aws.call(self._client, "send_message", QueueUrl=self._crawl_url, MessageBody=body)
            for body in bodies
        )
        await aws.all_of(sends, CALLS_AT_ONCE)

    async def hidden(self) -> int:
        """See the port `Lane`."""
        answer = await aws.call(
            self._client, "get_queue_attributes", QueueUrl=self._url, AttributeNames=list(HIDDEN)
        )
        return sum(int(answer["Attributes"].get(name, 0)) for name in HIDDEN)

    async def _receive(self, number: int, hold_s: int) -> list[DeadLetter]:
        answer = await aws.call(
            self._client,
            "receive_message",
            QueueUrl=self._url,
            MaxNumberOfMessages=number,
            VisibilityTimeout=hold_s,
            WaitTimeSeconds=self._wait_s,
            MessageAttributeNames=["reason"],
            MessageSystemAttributeNames=["All"],
        )
        return [_letter(message) for message in answer.get("Messages", ())]

    async def _batches(
        self, operation: str, letters: Sequence[DeadLetter], **parameters: Any
    ) -> int:
        """Do something with letters, ten a call; how many it was not done with."""
        calls = (
            aws.call(
                self._client,
                operation,
                QueueUrl=self._url,
                Entries=[
                    {"Id": str(place), "ReceiptHandle": letter.handle, **parameters}
                    for place, letter in enumerate(batch)
                ],
            )
            for batch in _in_tens(letters)
        )
        answers = await aws.all_of(calls, CALLS_AT_ONCE)
        return sum(len(answer.get("Failed", ())) for answer in answers)


def _in_tens(letters: Sequence[DeadLetter]) -> Iterator[Sequence[DeadLetter]]:
    for start in range(0, len(letters), BATCH_ENTRIES_MAX):
        yield letters[start : start + BATCH_ENTRIES_MAX]


def _letter(message: dict[str, Any]) -> DeadLetter:
    system = message.get("Attributes", {})
    received = system.get("ApproximateFirstReceiveTimestamp")
    return DeadLetter(
        id=message["MessageId"],
        body=message["Body"],
        reason=message.get("MessageAttributes", {}).get("reason", {}).get("StringValue"),
        receives=int(system.get("ApproximateReceiveCount", 1)),
        sent_at_ms=int(system.get("SentTimestamp", 0)),
        first_received_at_ms=int(received) if received else None,
        handle=message["ReceiptHandle"],
    )
