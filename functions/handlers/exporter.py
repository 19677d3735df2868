"""A schedule, a person, or the export queue to the exporter."""

from __future__ import annotations

from typing import Any

from orbweaver.app.container import container, prepare


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Begin to export days, or do what was ordered; what fails is tried again."""
    # The request's id is the same when Lambda repeats an invocation.
    remaining_ms = context.get_remaining_time_in_millis()
    return container().export(event, context.aws_request_id, remaining_ms)


prepare("export")
