"""Pass API Gateway requests to the hosted console."""

from __future__ import annotations

from typing import Any

from orbweaver.app.container import container, prepare
from orbweaver.console.hosted import hosted_console


def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    return container().answer(event, hosted_console)


prepare("answer", hosted_console)
