"""Pass schedules, manual calls and export orders to the exporter."""

from __future__ import annotations

from typing import Any

from orbweaver.app.container import container, prepare


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Start an export, or carry out the export orders in an event. Lambda retries failures."""
    # A repeated invocation has the same request id.
    remaining_ms = context.get_remaining_time_in_millis()
    return container().export(event, context.aws_request_id, remaining_ms)


prepare("export")
