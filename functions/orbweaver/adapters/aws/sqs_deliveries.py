"""The delivery queue on SQS, and its dead-letter queue."""

from __future__ import annotations

from orbweaver.adapters.aws import clients
from orbweaver.adapters.aws.clients import Aws
from orbweaver.adapters.aws.sqs import dead_letter


class SqsDeliveries:
    """Sends messages to the delivery queue and to its dead-letter queue."""

    def __init__(self, aws: Aws, *, queue_url: str, dead_letter_url: str) -> None:
        self._clients = aws
        self._queue_url = queue_url
        self._dead_letter_url = dead_letter_url

    async def send(self, body: str) -> None:
        client = await self._clients.client("sqs")
        await clients.call(client, "send_message", QueueUrl=self._queue_url, MessageBody=body)

    async def postpone(self, handle: str, seconds: int) -> None:
        # The message stays the same, so SQS counts its receives. The limit is 12 hours.
        await clients.call(
            await self._clients.client("sqs"),
            "change_message_visibility",
            QueueUrl=self._queue_url,
            ReceiptHandle=handle,
            VisibilityTimeout=seconds,
        )

    async def dead_letter(self, body: str, reason: str) -> None:
        await dead_letter(await self._clients.client("sqs"), self._dead_letter_url, body, reason)
