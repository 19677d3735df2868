"""Messages in flight of an ended emulator become visible for the next one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from localstack import inflight

NOW_S = 1_000.0


def message(visible_at: float, receives: int) -> dict[str, Any]:
    return {"id": "m", "body": "{}", "visible_at": visible_at, "receive_count": receives}


def saved(*messages: dict[str, Any]) -> dict[str, Any]:
    queues = {"a": {"name": "a", "messages": list(messages)}, "b": {"name": "b", "messages": []}}
    return {"__ministack_format__": 2, "payload": {"queues": {"data": queues}}}


def test_received_messages_become_visible(tmp_path: Path) -> None:
    state = saved(message(1_300, 2), message(1_300, 0), message(900, 1))
    (tmp_path / inflight.STATE).write_text(json.dumps(state))
    assert inflight.make_visible(tmp_path, NOW_S) == 1
    assert json.loads((tmp_path / inflight.STATE).read_text()) == saved(
        message(NOW_S, 2), message(1_300, 0), message(900, 1)
    )
    assert inflight.make_visible(tmp_path, NOW_S) == 0


@pytest.mark.parametrize("text", [None, "", "[]", '{"payload": {"queues": {"data": {"a": 3}}}}'])
def test_unknown_state_is_not_changed(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / inflight.STATE
    if text is not None:
        file.write_text(text)
    assert inflight.make_visible(tmp_path, NOW_S) == 0
    assert (file.read_text() if text is not None else None) == text
