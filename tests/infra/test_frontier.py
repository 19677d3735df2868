"""Queues of the stack."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.infra.template import denies_plain_http, text

if TYPE_CHECKING:
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


def test_queues_are_exactly_these(aws: Synthesized) -> None:
    assert set(aws.properties("AWS::SQS::Queue")) == set(ALL)


@pytest.mark.parametrize("name", SOURCES)
def test_message_becomes_dead_letter_after_five_receives(aws: Synthesized, name: str) -> None:
    redrive = aws.properties("AWS::SQS::Queue")[name]["RedrivePolicy"]
    assert text(redrive["deadLetterTargetArn"]) == "<FrontierDeadLetters.Arn>"
    assert redrive["maxReceiveCount"] == 5


def test_visibility_timeout_is_six_worker_timeouts_plus_window(aws: Synthesized) -> None:
    timeout_s = aws.properties("AWS::Lambda::Function")["WorkerProgramFunction"]["Timeout"]
    for part in ("WorkerCrawl", "WorkerExpress", "WorkerSeeds"):
        source = aws.properties("AWS::Lambda::EventSourceMapping")[part]
        window_s = source["MaximumBatchingWindowInSeconds"]
        for name in SOURCES:
            hidden_s = aws.properties("AWS::SQS::Queue")[name]["VisibilityTimeout"]
            assert hidden_s >= 6 * timeout_s + window_s


def test_dead_letters_outlive_every_message(aws: Synthesized) -> None:
    """The age of dead letters counts from the first send."""
    queues = aws.properties("AWS::SQS::Queue")
    kept_s = {name: queue["MessageRetentionPeriod"] for name, queue in queues.items()}
    assert kept_s[DEAD_LETTERS] > max(kept_s[name] for name in SOURCES)


def test_dead_letter_queue_accepts_redrives_of_own_queues_only(aws: Synthesized) -> None:
    queues = aws.properties("AWS::SQS::Queue")
    allowed = queues[DEAD_LETTERS]["RedriveAllowPolicy"]
    assert allowed["redrivePermission"] == "byQueue"
    names = {text(arn).rsplit(":", maxsplit=1)[-1] for arn in allowed["sourceQueueArns"]}
    assert names == {queues[name]["QueueName"] for name in SOURCES}


@pytest.mark.parametrize("name", ALL)
def test_queues_are_encrypted_and_require_tls(aws: Synthesized, name: str) -> None:
    assert aws.properties("AWS::SQS::Queue")[name]["SqsManagedSseEnabled"] is True
    (policy,) = (
        policy
        for policy in aws.properties("AWS::SQS::QueuePolicy").values()
        if [text(queue) for queue in policy["Queues"]] == [f"<{name}>"]
    )
    assert denies_plain_http(policy["PolicyDocument"]["Statement"], "sqs:*")
