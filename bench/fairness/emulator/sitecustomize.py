"""Makes MiniStack deliver like a fair SQS queue, by the message groups.

MiniStack (1.5.33) stores `MessageGroupId` on standard queues but ignores it at delivery. Python
imports this module when the emulator starts, because its folder is on `PYTHONPATH`.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict, deque
from typing import Any

NEIGHBOURS = "_neighbours"


def install() -> None:
    from ministack.services import sqs

    collect, delete = sqs._collect_msgs, sqs._delete_messages_for_esm

    def collect_fairly(queue: dict[str, Any], most: int, visibility_s: int) -> Any:
        if queue["is_fifo"]:
            return collect(queue, most, visibility_s)
        now_s = time.time()
        waiting: defaultdict[str, deque[Any]] = defaultdict(deque)
        for message in queue["messages"]:
            if message["visible_at"] <= now_s:
                waiting[message.get("group_id") or message["id"]].append(message)
        first: list[Any] = []
        neighbours = _neighbours(queue)
        while waiting and len(first) < most:
            group = neighbours.first({g: ms[0]["sent_at"] for g, ms in waiting.items()}, now_s)
            message = waiting[group].popleft()
            if not waiting[group]:
                del waiting[group]
            neighbours.taken(message["id"], group, now_s)
            first.append(message)
        chosen = {message["id"] for message in first}
        rest = [message for message in queue["messages"] if message["id"] not in chosen]
        queue["messages"] = [*first, *rest]
        return collect(queue, most, visibility_s)

    def delete_and_note(queue_url: str, handles: set[str]) -> None:
        queue = sqs._get_q(queue_url)
        gone = [m["id"] for m in queue["messages"] if m.get("receipt_handle") in handles]
        delete(queue_url, handles)
        for message in gone:
            _neighbours(queue).done(message, time.time())

    sqs._collect_msgs, sqs._delete_messages_for_esm = collect_fairly, delete_and_note


def _neighbours(queue: dict[str, Any]) -> Any:
    from bench.fairness.neighbours import Neighbours

    return queue.setdefault(NEIGHBOURS, Neighbours())


if "AWS_LAMBDA_FUNCTION_NAME" not in os.environ:  # functions inherit the path
    install()
