"""Checks of SQS that need queues of their own, and of disabled event sources."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from localstack.doctor.ground import (
    Finding,
    Ground,
    code_of,
    expect,
    failed,
    number,
    passed,
    probe,
    refused,
    skipped,
    until,
)
from localstack.doctor.probe_sqs import DEAD, Line

if TYPE_CHECKING:
    from collections.abc import Iterator


def foreign(ground: Ground) -> Finding:
    """Check that only the stack's queues may use its dead-letter queue."""
    sqs = ground.client("sqs")
    with _queue(ground, f"{ground.config.stack_name}-foreign") as url:
        attributes = sqs.get_queue_attributes(
            QueueUrl=ground.outputs[DEAD], AttributeNames=["QueueArn"]
        )["Attributes"]
        policy = f'{{"deadLetterTargetArn":"{attributes["QueueArn"]}","maxReceiveCount":"3"}}'
        return refused(
            sqs.set_queue_attributes,
            "another queue",
            QueueUrl=url,
            Attributes={"RedrivePolicy": policy},
        )


def names(ground: Ground) -> Finding:
    """Check that the name of a deleted queue stays unavailable for a while."""
    sqs, name = ground.client("sqs"), f"{ground.config.stack_name}-name"
    with _queue(ground, name):
        pass
    try:
        url = sqs.create_queue(QueueName=name)["QueueUrl"]
    except ClientError as error:
        return passed(code=code_of(error))
    sqs.delete_queue(QueueUrl=url)
    return failed("it was free at once: waiting for it is not needed")


def off(ground: Ground) -> Finding:
    line = Line(ground, "CrawlQueueUrl")
    if ground.config.worker_enabled != "no":
        return skipped("the workers are on")
    line.drain()
    line.send("not a reference")
    ground.pause(5)
    found = until(ground, lambda: line.receive(wait_s=1), 10)
    counts = [number(one["Attributes"]["ApproximateReceiveCount"]) for one in found]
    line.delete(found)
    return expect(counts == [1], "it was received meanwhile", receives=counts)


@contextlib.contextmanager
def _queue(ground: Ground, name: str) -> Iterator[str]:
    sqs = ground.client("sqs")
    url = sqs.create_queue(QueueName=name)["QueueUrl"]
    try:
        yield url
    finally:
        sqs.delete_queue(QueueUrl=url)


CHECKS = (
    probe(
        "sqs.foreign",
        "only named queues have dead letters there",
        foreign,
        "A09",
        emulator="it does not look at the redrive-allow policy",
    ),
    probe(
        "sqs.names",
        "a deleted queue's name is taken for a minute",
        names,
        "A13",
        emulator="a name is free at once",
    ),
    probe("sqs.off", "event sources that are off receive nothing", off, "A18"),
)
