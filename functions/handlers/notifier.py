"""The end of a crawl to the webhook that its definition names."""

from __future__ import annotations

from typing import Any

from orbweaver.app.container import container, prepare


def handler(event: dict[str, Any], _context: Any) -> dict[str, str]:
    """Post it; what may be taken later is raised, so that Lambda tries again."""
    return container().notify(event)


prepare("notify")
