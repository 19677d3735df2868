"""Events: what is told of a crawl that has ended, and under which names.

`id` tells a repeat from another event: a crawl's own. That of an export follows from its manifest
(exporting/manifest.py).
"""

from __future__ import annotations

from typing import Any

from orbweaver.model.crawl import Counts, Crawl

SOURCE = "orbweaver"
COMPLETED = "CrawlCompleted"
EXPORTED = "ExportCompleted"


def completed_detail(crawl: Crawl, total: Counts) -> dict[str, Any]:
    """Say how a crawl ended."""
    return {
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
