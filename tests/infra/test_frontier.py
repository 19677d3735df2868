"""The queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.infra.template import denies_plain_http, text

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.infra.template import Synthesized

pytestmark = pytest.mark.infra

SOURCES = ("FrontierCrawl", "FrontierExpress", "FrontierSeeds")
DEAD_LETTERS = "FrontierDeadLetters"
ALL = (
    *SOURCES,
    DEAD_LETTERS,
    "ExporterOrders",
    "ExporterDeadLetters",
    "ExporterFailures",
    "FailedCallsQueue",
)


def test_queues(aws: Synthesized) -> None:
    """There are these queues and no others."""
    assert set(aws.properties("AWS::SQS::Queue")) == set(ALL)


@pytest.mark.parametrize("name", SOURCES)
def test_redrive(aws: Synthesized, name: str) -> None:
    """A message that is delivered five times in vain becomes a dead letter."""
    redrive = aws.properties("AWS::SQS::Queue")[name]["RedrivePolicy"]
    assert text(redrive["deadLetterTargetArn"]) == "<FrontierDeadLetters.Arn>"
    assert redrive["maxReceiveCount"] == 5


@pytest.mark.parametrize("context", [{}, {"worker_timeout_s": "120", "batch_window_s": "30"}])
def test_visibility(synthesize: Callable[..., Synthesized], context: dict[str, str]) -> None:
    """A message stays hidden for six timeouts of the worker and the window in which it waits."""
    made = synthesize(**context)
    timeout_s = made.properties("AWS::Lambda::Function")["WorkerProgramFunction"]["Timeout"]
    for part in ("WorkerCrawl", "WorkerExpress", "WorkerSeeds"):
        source = made.properties("AWS::Lambda::EventSourceMapping")[part]
        window_s = source["MaximumBatchingWindowInSeconds"]
        for name in SOURCES:
            hidden_s = made.properties("AWS::SQS::Queue")[name]["VisibilityTimeout"]
            assert hidden_s >= 6 * timeout_s + window_s


def test_retention(aws: Synthesized) -> None:
    """A dead letter, whose age counts from when it was first sent, outlives any message."""
    queues = aws.properties("AWS::SQS::Queue")
    kept_s = {name: queue["MessageRetentionPeriod"] for name, queue in queues.items()}
    assert kept_s[DEAD_LETTERS] > max(kept_s[name] for name in SOURCES)


def test_only_our_queues_may_use_the_dead_letter_queue(aws: Synthesized) -> None:
    """The dead-letter queue takes redrives of the queues for seeds and packs only."""
    queues = aws.properties("AWS::SQS::Queue")
    allowed = queues[DEAD_LETTERS]["RedriveAllowPolicy"]
    assert allowed["redrivePermission"] == "byQueue"
    names = {text(arn).rsplit(":", maxsplit=1)[-1] for arn in allowed["sourceQueueArns"]}
    assert names == {queues[name]["QueueName"] for name in SOURCES}


@pytest.mark.parametrize("name", ALL)
def test_encryption(aws: Synthesized, name: str) -> None:
    """Messages are encrypted at rest, and refused over anything but TLS."""
    assert aws.properties("AWS::SQS::Queue")[name]["SqsManagedSseEnabled"] is True
    (policy,) = (
        policy
        for policy in aws.properties("AWS::SQS::QueuePolicy").values()
        if [text(queue) for queue in policy["Queues"]] == [f"<{name}>"]
    )
    assert denies_plain_http(policy["PolicyDocument"]["Statement"], "sqs:*")
