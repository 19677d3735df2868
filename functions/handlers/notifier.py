"""Pass ends of crawls to the webhook of their definition."""

from __future__ import annotations

from typing import Any

from orbweaver.app.container import container, prepare


def handler(event: dict[str, Any], _context: Any) -> dict[str, str]:
    """Post an event. Raises if a later attempt may succeed, so that Lambda retries."""
    return container().notify(event)


prepare("notify")
