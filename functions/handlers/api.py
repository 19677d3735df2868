"""Pass API Gateway requests to the HTTP API."""

from __future__ import annotations

from typing import Any

from orbweaver.app.container import container, prepare


def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    return container().answer(event)


prepare("answer")
