"""Pass messages of the delivery queue to the deliverer."""

from __future__ import annotations

from typing import Any

from orbweaver.app.container import container, prepare
from orbweaver.delivery.deliverer import ReceivedOrder


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Deliver the export that a message orders. Return the message's id if that fails."""
    (record,) = event["Records"]
    taken = ReceivedOrder(
        id=record["messageId"],
        body=record["body"],
        handle=record["receiptHandle"],
        receives=int(record["attributes"]["ApproximateReceiveCount"]),
    )
    failed = container().deliver(taken, context.get_remaining_time_in_millis())
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}


prepare("deliver")
