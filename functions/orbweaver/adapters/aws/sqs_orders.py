"""The export queue, through which exporters share their work."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from orbweaver.adapters.aws.sqs import Mail, group_of, send_all
from orbweaver.model.ports import Clock


class SqsOrders:
    """Sends messages to the export queue."""

    def __init__(self, client: Any, *, clock: Clock, random: Random, queue_url: str) -> None:
        self._client = client
        self._clock = clock
        self._random = random
        self._queue_url = queue_url

    async def send(self, bodies: Sequence[tuple[str, str]]) -> None:
        # Groups make the queue fair, so that a large crawl does not delay others.
        mails = (Mail(body=body, group=group_of(group)) for body, group in bodies)
        await send_all(self._client, self._queue_url, mails, clock=self._clock, random=self._random)
