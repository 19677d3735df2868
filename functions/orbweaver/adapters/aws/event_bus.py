"""The event bus: `CrawlCompleted` and `ExportCompleted`.

The bus gives every event an id of its own, so what tells a repeat is `id` in the detail: a crawl's
own, and of an export the beginning of its manifest's SHA-256, with the day and the crawl before it.

The bus is shared by all stacks of an account and region: `stack` in the detail says whose it is.

PutEvents answers 200 even for an event it did not take; `FailedEntryCount` says so.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from orbweaver.adapters.aws import clients
from orbweaver.model.crawl import Counts, Crawl
from orbweaver.model.events import COMPLETED, EXPORTED, SOURCE, completed_detail

if TYPE_CHECKING:
    from orbweaver.exporting.manifest import Manifest


class BusEvents:
    """The event bus."""

    def __init__(self, client: Any, *, bus: str, stack: str, bucket: str) -> None:
        """Take the client, the bus, the stack, and the bucket that exports lie in."""
        self._client = client
        self._stack = stack
        self._bus = bus
        self._bucket = bucket

    async def completed(self, crawl: Crawl, total: Counts) -> None:
        await self._put(COMPLETED, completed_detail(crawl, total))

    async def exported(self, manifest: Manifest, key: str) -> None:
        from orbweaver.exporting.manifest import exported_detail  # workers tell of no exports

        await self._put(EXPORTED, exported_detail(manifest, key, self._bucket))

    async def _put(self, kind: str, detail: dict[str, Any]) -> None:
        entry = {
            "Source": SOURCE,
            "DetailType": kind,
            "Detail": json.dumps({"stack": self._stack, **detail}),
            "EventBusName": self._bus,
        }
        answer = await clients.call(self._client, "put_events", Entries=[entry])
        if answer.get("FailedEntryCount"):
            code = answer["Entries"][0].get("ErrorCode", "unknown")
            raise clients.error_of(code, 0, f"put_events: {code}")
