"""Pass firings of schedules to the starter."""

from __future__ import annotations

from typing import Any

from orbweaver.app.container import container, prepare


def handler(event: dict[str, Any], _context: Any) -> dict[str, str]:
    """Start a run, or skip the firing."""
    return container().fire(event)


prepare("fire")
