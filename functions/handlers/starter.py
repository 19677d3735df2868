"""Start crawls when their schedules fire."""

from __future__ import annotations

from typing import Any

from orbweaver.app.container import container, prepare


def handler(event: dict[str, Any], _context: Any) -> dict[str, str]:
    """Start a run of a schedule's crawl, or skip it if another run has not ended."""
    return container().fire(event)


prepare("fire")
