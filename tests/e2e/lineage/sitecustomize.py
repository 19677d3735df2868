"""Makes MiniStack count invocations through queues, like Lambda's recursive loop detection.

MiniStack (1.5.33) counts direct invocations only: a function gets its invocation's depth and passes
it on in a header of every call. Python imports this module at the emulator's start (its folder is
on `PYTHONPATH`). The module passes the depth through queues too. A sent message keeps its sender's
depth, in `AWSTraceHeader` as on AWS. A delivered batch is one deeper than its deepest message. A
message that would be a 17th invocation goes to the dead-letter queue unless the function allows
loops. Delays are shortened to a twentieth. Source:
docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html,
docs.aws.amazon.com/xray/latest/devguide/xray-services-sqs.html.
"""

from __future__ import annotations

import contextvars
import logging
import os
import threading
import time
from typing import Any

SHORTENED = 20
DEPTH_HEADER = "x-ministack-invoke-depth"
LINEAGE = "Lineage="
SENDER = contextvars.ContextVar("sender_depth", default=0)
_log = logging.getLogger("lineage")


def install() -> None:
    from ministack.services import lambda_svc, sqs

    _stamp(sqs)
    _shorten(sqs)
    _count(lambda_svc, sqs)


def _stamp(sqs: Any) -> None:
    handle, build = sqs.handle_request, sqs._build_send_sys_attrs

    async def handle_request(
        method: str, path: str, headers: dict[str, str], body: bytes, query: dict[str, Any]
    ) -> Any:
        SENDER.set(int(headers.get(DEPTH_HEADER, "0")))
        return await handle(method, path, headers, body, query)

    def attributes(now_s: float, given: dict[str, Any]) -> dict[str, Any]:
        return {**build(now_s, given), "AWSTraceHeader": f"{LINEAGE}{SENDER.get()}"}

    sqs.handle_request, sqs._build_send_sys_attrs = handle_request, attributes


def _shorten(sqs: Any) -> None:
    send = sqs._act_send_message

    def send_message(data: dict[str, Any], url: str) -> Any:
        answer = send(data, url)
        messages = sqs._get_q(data.get("QueueUrl", url))["messages"]
        sent = next(m for m in reversed(messages) if m["id"] == answer["MessageId"])
        wait_s = (sent["visible_at"] - time.time()) / SHORTENED
        if wait_s > 0:
            sent["visible_at"] = time.time() + wait_s
            # By default its poller looks once a second.
            threading.Timer(wait_s, sqs.esm_wake.set).start()
        return answer

    sqs._act_send_message = send_message


def _count(lambda_svc: Any, sqs: Any) -> None:
    run = lambda_svc._run_sqs_batch

    def run_batch(
        mapping: Any, function: Any, event: Any, batch: list[Any], url: str, name: str
    ) -> None:
        if function.get("recursive_loop") != "Allow":
            deep = [m for m in batch if _depth(m) >= lambda_svc.MAX_INVOKE_DEPTH]
            _dead_letter(sqs, url, deep)
            batch = [m for m in batch if m not in deep]
            kept = {m["id"] for m in batch}
            event = {"Records": [r for r in event["Records"] if r["messageId"] in kept]}
        if batch:
            depth = 1 + max(map(_depth, batch))
            _log.warning("depth %d", depth)
            lambda_svc._invoke_depth.set(depth)
            run(mapping, function, event, batch, url, name)

    lambda_svc._run_sqs_batch = run_batch


def _depth(message: dict[str, Any]) -> int:
    return int(message["sys"]["AWSTraceHeader"].removeprefix(LINEAGE))


def _dead_letter(sqs: Any, url: str, messages: list[Any]) -> None:
    """Move messages to the dead-letter queue, like those received too often."""
    if messages:
        with sqs._queues_lock:
            for message in messages:
                message["receive_count"], message["visible_at"] = 1_000, 0.0
            sqs._dlq_sweep(sqs._get_q(url))


if "AWS_LAMBDA_FUNCTION_NAME" not in os.environ:  # Functions inherit the path.
    install()
