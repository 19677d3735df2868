"""API Gateway to the control actor."""

from __future__ import annotations

from typing import Any

from orbweaver.app.container import container, prepare


def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """Answer one request."""
    return container().answer(event)


prepare("answer")
