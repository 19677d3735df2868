"""Define the events that announce the end of a crawl or an export."""

from __future__ import annotations

from typing import Any

from orbweaver.model.crawl import Counts, Crawl

SOURCE = "orbweaver"
COMPLETED = "CrawlCompleted"
EXPORTED = "ExportCompleted"


def completed_detail(crawl: Crawl, total: Counts) -> dict[str, Any]:
    return {
        # Repeated deliveries have the same `id`. For an export it follows from its manifest.
        "id": crawl.id,
        "crawl": crawl.id,
        "name": crawl.name,
        "stop": crawl.stop,
        # Whether the crawl has a webhook, so that receivers need not read other crawls.
        "webhook": crawl.webhook is not None,
        "counts": dict(sorted(total.items())),
        "started_at_ms": crawl.started_at_ms,
        "finished_at_ms": crawl.finished_at_ms,
    }
