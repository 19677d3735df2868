"""Messages that were in work when an emulator ended: visible again when it is started.

A worker of that emulator ended with it (see `guard`), so each of them waits for a worker that is
dead. On AWS its visibility has to run out, since a queue cannot tell. Here the processes are known
to be gone, and the saved state of the queues is read before the next start and nowhere else.

A message stays counted as received: its worker did not requeue it in the moment that it had, and
may have died of it. Messages that were sent with a delay keep it.

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
    """Have messages in work seen at once, in the folder of a saved state; how many there were.

    A state that is not there, or is not as it is known here, is left as it is.
    """
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
