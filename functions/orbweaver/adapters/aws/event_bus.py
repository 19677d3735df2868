"""The event bus: `CrawlCompleted` and `ExportCompleted`.

The bus gives every event an id of its own, so what tells a repeat is `id` in the detail: a crawl's
own, and of an export the beginning of its manifest's SHA-256, with the day and the crawl before it.

The bus is shared by all stacks of an account and region: `stack` in the detail says whose it is.

PutEvents answers 200 even for an event it did not take; `FailedEntryCount` says so.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from orbweaver.adapters.aws import clients
from orbweaver.model.crawl import Counts, Crawl

if TYPE_CHECKING:
    from orbweaver.exporting.manifest import Manifest

SOURCE = "orbweaver"
COMPLETED = "CrawlCompleted"
EXPORTED = "ExportCompleted"
ID_DIGITS = 16


class BusEvents:
    """The event bus."""

    def __init__(self, client: Any, *, bus: str, stack: str, bucket: str = "") -> None:
        """Take the client, the bus, the stack, and the bucket that exports lie in."""
        self._client = client
        self._stack = stack
        self._bus = bus
        self._bucket = bucket

    async def completed(self, crawl: Crawl, total: Counts) -> None:
        detail = {
            "id": crawl.id,
            "crawl": crawl.id,
            "name": crawl.name,
            "stop": crawl.stop,
            # Whether there is a receiver, so that no other crawl need be looked at.
            "webhook": crawl.webhook is not None,
            "counts": dict(sorted(total.items())),
            "started_at_ms": crawl.started_at_ms,
            "finished_at_ms": crawl.finished_at_ms,
        }
        await self._put(COMPLETED, detail)

    async def exported(self, manifest: Manifest, key: str) -> None:
        from orbweaver.exporting.manifest import encode_manifest  # workers tell of no exports

        sha256 = hashlib.sha256(encode_manifest(manifest)).hexdigest()
        whose = (manifest.day, manifest.crawl, sha256[:ID_DIGITS])
        detail = {
            "id": "-".join(part for part in whose if part is not None),
            "day": manifest.day,
            "crawl": manifest.crawl,
            "bucket": self._bucket,
            "manifest": key,
            "sha256": sha256,
            "rows": dict(manifest.rows),
            "files": len(manifest.files),
            "bytes": manifest.bytes,
        }
        await self._put(EXPORTED, detail)

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
