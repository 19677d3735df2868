"""Makes an emulator's messages in flight visible when it starts again.

The emulator's workers ended with it (see `guard`), so no worker will finish these messages. On AWS
the visibility timeout must expire, because a queue cannot detect that. Messages sent with a delay
keep the delay.

Source: MiniStack 1.5.33, `services/sqs.py` (`visible_at`, `receive_count`) and
`core/persistence.py`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STATE = "sqs.json"


def make_visible(state: Path, now_s: float) -> int:
    """Make messages in flight visible in a saved state of a known format. Return their number."""
    file = state / STATE
    try:
        saved = json.loads(file.read_text())
        hidden = [
            message
            for message in _messages(saved)
            if message["receive_count"] > 0 and message["visible_at"] > now_s
        ]
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return 0
    # The receives still count: the worker did not requeue a message in time, and may have died
    # because of it.
    for message in hidden:
        message["visible_at"] = now_s
    if hidden:
        draft = file.with_suffix(".new")
        draft.write_text(json.dumps(saved))
        draft.replace(file)
    return len(hidden)


def _messages(saved: Any) -> Iterator[dict[str, Any]]:
    for queue in saved["payload"]["queues"]["data"].values():
        yield from queue["messages"]
