"""Invocations that keep failing: they end in a queue, with an alarm on it.

Rules
- It ends there whether it failed at its caller (a schedule, the event bus) or in the function.
- It does not belong among dead letters, which are URLs.
- The starter and the notifier share one queue: a message names its function, and alarms are paid
  for by the piece.

Source: docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aws_cdk import Duration
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.findings import accept

if TYPE_CHECKING:
    from infra.config import Config

RETRIES = 2
# Longer than an outage of a night would be pointless: what was to be done then is stale.
EVENT_S_MAX = 6 * 3_600
FAILURES_KEPT_D = 14


class FailedCalls(Construct):
    """The queue of what the starter and the notifier could not do."""

    def __init__(self, scope: Construct, construct_id: str, *, config: Config) -> None:
        super().__init__(scope, construct_id)
        self.queue = failures_queue(self, "Queue", f"{config.stack_name}-failed-calls", config)


def failures_queue(
    scope: Construct, construct_id: str, name: str, config: Config, *, of_queue: bool = False
) -> sqs.Queue:
    """Make a queue for invocations that failed for good, or for what a queue gives up."""
    queue = sqs.Queue(
        scope,
        construct_id,
        queue_name=name,
        retention_period=Duration.days(FAILURES_KEPT_D),
        encryption=sqs.QueueEncryption.SQS_MANAGED,
        enforce_ssl=config.tls_only,
    )
    reason = "It is a dead-letter queue: of functions and who invokes them, not of a queue."
    if not of_queue:
        accept(queue, "AwsSolutions-SQS3", reason)
    accept(queue, "Serverless-SQSRedrivePolicy", reason)
    return queue


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """How a queue keeps messages: taken ones hidden, all for so long, failed ones put aside."""

    hidden_s: int
    kept_d: int
    receive_max: int
    dead_letters: sqs.Queue


def work_queue(
    scope: Construct, construct_id: str, name: str, config: Config, keeping: Keeping
) -> sqs.Queue:
    """Make a queue for what is to be done; what fails too often is put aside."""
    return sqs.Queue(
        scope,
        construct_id,
        queue_name=name,
        visibility_timeout=Duration.seconds(keeping.hidden_s),
        retention_period=Duration.days(keeping.kept_d),
        encryption=sqs.QueueEncryption.SQS_MANAGED,
        enforce_ssl=config.tls_only,
        dead_letter_queue=sqs.DeadLetterQueue(
            queue=keeping.dead_letters, max_receive_count=keeping.receive_max
        ),
    )


def retry(scope: Construct, function: lambda_.Function, failures: sqs.Queue) -> None:
    """Have Lambda repeat what failed, and then put it aside; the role must allow it to send."""
    lambda_.CfnEventInvokeConfig(
        scope,
        "Retries",
        function_name=function.function_name,
        qualifier="$LATEST",
        maximum_retry_attempts=RETRIES,
        maximum_event_age_in_seconds=EVENT_S_MAX,
        destination_config=lambda_.CfnEventInvokeConfig.DestinationConfigProperty(
            on_failure=lambda_.CfnEventInvokeConfig.OnFailureProperty(
                destination=failures.queue_arn
            )
        ),
    )
    accept(
        function,
        "Serverless-LambdaDLQ",
        "It has an on-failure destination, which says more: the error beside the event.",
    )
