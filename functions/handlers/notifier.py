"""Post the ends of crawls to the webhooks that their definitions name."""

from __future__ import annotations

from typing import Any

from orbweaver.app.container import container, prepare


def handler(event: dict[str, Any], _context: Any) -> dict[str, str]:
    """Post an event. Raises if another attempt might succeed, so that Lambda retries."""
    return container().notify(event)


prepare("notify")
