"""The export queue: what exporters are to do, from one to the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from orbweaver.adapters import aws
from orbweaver.adapters.sqs import group_of
from orbweaver.ports import Transient

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from orbweaver.ports import Clock

BATCH_ENTRIES_MAX = 10
BATCHES_AT_ONCE = 8


class SqsOrders:
    """The export queue."""

    def __init__(self, client: Any, *, clock: Clock, random: Random, queue_url: str) -> None:
        self._client = client
        self._clock = clock
        self._random = random
        self._queue_url = queue_url

    async def send(self, bodies: Sequence[tuple[str, str]]) -> None:
        """See the port."""
        starts = range(0, len(bodies), BATCH_ENTRIES_MAX)
        await aws.all_of(
            (self._send(bodies[start : start + BATCH_ENTRIES_MAX]) for start in starts),
            BATCHES_AT_ONCE,
        )

    async def _send(self, bodies: Sequence[tuple[str, str]]) -> None:
        entries = [
            # A crawl with many units does not keep those of others waiting.
            {"Id": str(place), "MessageBody": body, "MessageGroupId": group_of(group)}
            for place, (body, group) in enumerate(bodies)
        ]
        for attempt in range(1, aws.BATCH_TRIES + 1):
            answer = await aws.call(
                self._client, "send_message_batch", QueueUrl=self._queue_url, Entries=entries
            )
            failed = {entry["Id"]: entry for entry in answer.get("Failed", ())}
            for entry in failed.values():
                error = aws.error_of(entry["Code"], 0, f"send_message_batch: {entry['Code']}")
                if entry.get("SenderFault") and not isinstance(error, Transient):
                    raise error
            entries = [entry for entry in entries if entry["Id"] in failed]
            if not entries:
                return
            await aws.pause(self._clock, self._random, attempt)
        raise Transient(f"send_message_batch: {len(entries)} messages were not taken")
