"""Failed worker messages become visible soon, not after the visibility timeout."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.e2e.deeds import Answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.e2e.deeds import Act
    from tests.iam.account import Here

ACTION = "sqs:ChangeMessageVisibility"
# Without these, packs (batches of URLs) and seeds cannot be processed.
TABLES = ("worker dynamodb:BatchGetItem table/packs", "worker dynamodb:GetItem table/crawls")
OUTPUTS = {"crawl": "PackQueueUrl", "express": "ExpressQueueUrl", "seeds": "CrawlQueueUrl"}


def _failed(queue: str) -> Callable[[Here], Act]:
    """Build a piece of work: a queue's message fails because tables refuse."""

    def deed(bench: Here) -> Act:
        body = '{"url": "https://example.com/"}' if queue == "seeds" else None
        body = body or bench.pack(bench.crawl(), "/")

        def act() -> Answer:
            with bench.stand.client("sqs") as sqs:
                url = bench.stand.outputs[OUTPUTS[queue]]
                sqs.send_message(QueueUrl=url, MessageBody=body)
                found = sqs.receive_message(QueueUrl=url, VisibilityTimeout=600)["Messages"][-1]
            record = {
                "messageId": "failed",
                "receiptHandle": found["ReceiptHandle"],
                "body": body,
                "attributes": {"ApproximateReceiveCount": "1"},
                "eventSourceARN": f"arn:aws:sqs:us-east-1:123456789012:{queue}",
            }
            with bench.functions.without(*TABLES):
                reply, answer = bench.functions.invoke("worker", {"Records": [record]})
            said = "\n".join(line for line in answer.said.splitlines() if ACTION in line)
            came_back = reply == {"batchItemFailures": [{"itemIdentifier": "failed"}]}
            return replace(answer, failed=answer.failed or not came_back or bool(said), said=said)

        return act

    deed.__name__ = f"failed_message_of_{queue}"
    return deed


RETRIED = {_failed(queue): (f"worker {ACTION} {queue}",) for queue in OUTPUTS}
