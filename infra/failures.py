"""Queues of failed invocations, each with an alarm.

A queue receives failures of the caller (a schedule, the event bus) and of the function. It is
separate from dead letters, which are URLs.

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
# Events older than this are dropped, because their work is out of date by then.
EVENT_S_MAX = 6 * 3_600
FAILURES_KEPT_D = 14


class FailedCalls(Construct):
    """Queue of failed invocations of the starter and the notifier."""

    def __init__(self, scope: Construct, construct_id: str, *, config: Config) -> None:
        super().__init__(scope, construct_id)
        # One queue, because alarms cost per metric. A message names its function.
        self.queue = failures_queue(self, "Queue", f"{config.stack_name}-failed-calls", config)


def failures_queue(
    scope: Construct, construct_id: str, name: str, config: Config, *, of_queue: bool = False
) -> sqs.Queue:
    """Make a queue for failed invocations, or (`of_queue`) for a queue's dead letters."""
    queue = sqs.Queue(
        scope,
        construct_id,
        queue_name=name,
        retention_period=Duration.days(FAILURES_KEPT_D),
        encryption=sqs.QueueEncryption.SQS_MANAGED,
        enforce_ssl=config.tls_only,
    )
    reason = "It is itself a dead-letter queue, for functions and their callers."
    if not of_queue:
        accept(queue, "AwsSolutions-SQS3", reason)
    accept(queue, "Serverless-SQSRedrivePolicy", reason)
    return queue


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """Retention and retries of a queue. `hidden_s` is the visibility timeout."""

    hidden_s: int
    kept_d: int
    receive_max: int
    dead_letters: sqs.Queue


def work_queue(
    scope: Construct, construct_id: str, name: str, config: Config, keeping: Keeping
) -> sqs.Queue:
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
    """Configure Lambda's retries and failure queue. The role must allow sending to it."""
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
        "It has an on-failure destination, which adds the error to the event.",
    )
