"""The event bus: `CrawlCompleted`, with the crawl's id as the event's, so a repeat is told apart.

PutEvents answers 200 even for an event it did not take; `FailedEntryCount` says so.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from orbweaver.adapters import aws

if TYPE_CHECKING:
    from orbweaver.core.crawl import Crawl, Tally

SOURCE = "orbweaver"
COMPLETED = "CrawlCompleted"


class BusEvents:
    """The event bus."""

    def __init__(self, client: Any, *, bus: str) -> None:
        self._client = client
        self._bus = bus

    async def completed(self, crawl: Crawl, total: Tally) -> None:
        """See the port."""
        detail = {
            "id": crawl.id,
            "crawl": crawl.id,
            "name": crawl.name,
            "stop": crawl.stop,
            # Whether anybody asked to be told, so that nobody else need be looked at.
            "webhook": crawl.webhook is not None,
            "counts": dict(sorted(total.items())),
            "started_at_ms": crawl.started_at_ms,
            "finished_at_ms": crawl.finished_at_ms,
        }
        entry = {
            "Source": SOURCE,
            "DetailType": COMPLETED,
            "Detail": json.dumps(detail),
            "EventBusName": self._bus,
        }
        answer = await aws.call(self._client, "put_events", Entries=[entry])
        if answer.get("FailedEntryCount"):
            code = answer["Entries"][0].get("ErrorCode", "unknown")
            raise aws.error_of(code, 0, f"put_events: {code}")
