"""A schedule, or a person, to the exporter."""

from __future__ import annotations

from typing import Any

from orbweaver.bootstrap import container


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Export a day; a day too big for one invocation goes on in another."""
    return container().export(event, context.get_remaining_time_in_millis())
