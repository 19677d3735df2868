"""Publish the events `CrawlCompleted` and `ExportCompleted` on EventBridge.

All stacks of an account and region share the bus, and `stack` in the detail names the sender.
EventBridge assigns each event a new id, so consumers detect repeats by `id` in the detail.
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
    """Implements `Events` on EventBridge."""

    def __init__(self, client: Any, *, bus: str, stack: str, bucket: str) -> None:
        """`bucket` holds the exports."""
        self._client = client
        self._stack = stack
        self._bus = bus
        self._bucket = bucket

    async def completed(self, crawl: Crawl, total: Counts) -> None:
        await self._put(COMPLETED, completed_detail(crawl, total))

    async def exported(self, manifest: Manifest, key: str) -> None:
        from orbweaver.exporting.manifest import exported_detail  # not needed by workers

        await self._put(EXPORTED, exported_detail(manifest, key, self._bucket))

    async def _put(self, kind: str, detail: dict[str, Any]) -> None:
        entry = {
            "Source": SOURCE,
            "DetailType": kind,
            "Detail": json.dumps({"stack": self._stack, **detail}),
            "EventBusName": self._bus,
        }
        answer = await clients.call(self._client, "put_events", Entries=[entry])
        if answer.get("FailedEntryCount"):  # PutEvents answers 200 even if it rejects an event
            code = answer["Entries"][0].get("ErrorCode", "unknown")
            raise clients.error_of(code, 0, f"put_events: {code}")
