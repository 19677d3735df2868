"""Pass SQS batches to the worker and return its partial batch response."""

from typing import Any

from orbweaver.app.container import container, prepare
from orbweaver.worker.pack import delivery_of


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Process a batch and return the ids of failed messages."""
    deliveries = [delivery_of(record) for record in event["Records"]]
    failed = container().process_batch(deliveries, context.get_remaining_time_in_millis())
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}


prepare("work")
