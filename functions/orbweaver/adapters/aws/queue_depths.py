"""Approximate numbers of messages on a stack's queues.

Source: docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_GetQueueAttributes.html.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orbweaver.adapters.aws import clients
from orbweaver.frontier.queues import Depths

COUNTS = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
    "VisibilityTimeout",
)


class QueueDepths:
    """Reads the lengths of the workers' queues and of the dead-letter queue."""

    def __init__(self, client: Any, *, lanes: Sequence[str], dead_letters: str) -> None:
        """`lanes` and `dead_letters` are queue URLs. A repeated URL counts once."""
        self._client = client
        self._lanes = tuple(dict.fromkeys(lanes))
        self._dead_letters = dead_letters

    async def read(self) -> Depths:
        urls = (*self._lanes, self._dead_letters)
        *lanes, dead = await clients.all_of(map(self._counts, urls), len(urls))
        return depths_of(lanes, dead)

    async def _counts(self, url: str) -> dict[str, str]:
        answer = await clients.call(
            self._client, "get_queue_attributes", QueueUrl=url, AttributeNames=list(COUNTS)
        )
        found: dict[str, str] = answer["Attributes"]
        return found


def depths_of(lanes: Sequence[Mapping[str, str]], dead: Mapping[str, str]) -> Depths:
    counts = [tuple(int(found.get(name, 0)) for name in COUNTS) for found in lanes]
    waiting, in_work, delayed, _ = (sum(numbers) for numbers in zip(*counts, strict=True))
    return Depths(
        waiting=waiting,
        in_work=in_work,
        delayed=delayed,
        dead=int(dead.get(COUNTS[0], 0)),
        hidden_s=max(hidden_s for *_, hidden_s in counts),
    )
