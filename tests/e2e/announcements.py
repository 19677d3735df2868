"""Announcements of finished crawls, received by a rule on the event bus."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from tests.e2e.stand import Stand

PATTERN = {"source": ["orbweaver"], "detail-type": ["CrawlCompleted"]}


@contextmanager
def listening(stand: Stand, name: str) -> Iterator[str]:
    """Route announcements of completed crawls to a queue of this name; yield its URL."""
    with stand.client("sqs") as sqs, stand.client("events") as events:
        url = sqs.create_queue(QueueName=name)["QueueUrl"]
        names = ["QueueArn"]
        arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]["QueueArn"]
        events.put_rule(Name=name, EventPattern=json.dumps(PATTERN))
        events.put_targets(Rule=name, Targets=[{"Id": "queue", "Arn": arn}])
        try:
            yield url
        finally:
            events.remove_targets(Rule=name, Ids=["queue"])
            events.delete_rule(Name=name)
            sqs.delete_queue(QueueUrl=url)
