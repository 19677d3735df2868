"""The firing of a schedule to the crawl that it starts."""

from __future__ import annotations

from typing import Any

from orbweaver.app.container import container, prepare


def handler(event: dict[str, Any], _context: Any) -> dict[str, str]:
    """Start a run, or pass the firing over."""
    return container().fire(event)


prepare("fire")
