"""The queues: seeds, packs (batches of URLs to crawl, express or render), dead letters.

People and programs send seeds to the seed queue. Its messages are read only as seeds. Only the
stack's own functions are allowed to send packs. The render queue is for packs that need a browser,
and exists only with `rendering=yes`. Failed invocations have queues of their own, each with an
alarm. Such a queue receives failures of the caller (a schedule, the event bus) and of the function.

Source: docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html,
docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html,
docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aws_cdk import ArnFormat, Duration, Stack
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.findings import accept

if TYPE_CHECKING:
    from infra.config import Config

# Visibility timeout of a queue, as a multiple of its consumer's timeout (plus the batching window).
# A batch that Lambda retries after throttling must still be invisible.
VISIBILITY_TIMEOUTS = 6
MESSAGE_BYTES_MAX = 1_048_576
RETRIES = 2
# Lambda drops events older than this, because their work is out of date by then.
EVENT_S_MAX = 6 * 3_600
FAILURES_KEPT_D = 14


class Frontier(Construct):
    """The queues of the stack."""

    def __init__(self, scope: Construct, construct_id: str, *, config: Config) -> None:
        super().__init__(scope, construct_id)
        prefix = config.stack_name
        # A frugal stack has no express queue, because Lambda would poll it permanently, which costs
        # money. The crawl queue also serves as its express queue.
        lanes = ["Crawl"] if config.is_frugal else ["Crawl", "Express"]
        rendering = ["Render"] if config.renders else []
        named = (*lanes, "Seeds", *rendering)
        # CloudFormation cannot name these queues: the dead-letter queue refers to its source queues
        # by name, and they refer to it.
        sources = [f"{prefix}-{lane.lower()}" for lane in named]
        stack = Stack.of(self)
        arns = [
            stack.format_arn(service="sqs", resource=name, arn_format=ArnFormat.NO_RESOURCE_NAME)
            for name in sources
        ]
        self.dead_letters = sqs.Queue(
            self,
            "DeadLetters",
            queue_name=f"{prefix}-dead-letters",
            retention_period=Duration.days(config.dead_letter_retention_d),
            max_message_size_bytes=MESSAGE_BYTES_MAX,
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=config.tls_only,
            redrive_allow_policy=sqs.RedriveAllowPolicy(
                redrive_permission=sqs.RedrivePermission.BY_QUEUE,
                source_queues=[
                    sqs.Queue.from_queue_arn(self, f"Source{place}", arn)
                    for place, arn in enumerate(arns)
                ],
            ),
        )
        accept(
            self.dead_letters, "Serverless-SQSRedrivePolicy", "It is itself the dead-letter queue."
        )
        queues = {
            lane: self._queue(lane, name, config) for lane, name in zip(named, sources, strict=True)
        }
        self.seeds, self.render = queues["Seeds"], queues.get("Render")
        self.crawl, self.express = queues[lanes[0]], queues[lanes[-1]]

    @property
    def packs(self) -> tuple[sqs.Queue, ...]:
        """The queues to which functions send packs."""
        rendering = () if self.render is None else (self.render,)
        return (self.crawl, self.express, *rendering)

    def _queue(self, construct_id: str, name: str, config: Config) -> sqs.Queue:
        timeout_s = config.worker_timeout_s
        if construct_id == "Render":
            timeout_s = config.renderer_timeout_s
        keeping = Keeping(
            hidden_s=VISIBILITY_TIMEOUTS * timeout_s + config.batch_window_s,
            kept_d=config.queue_retention_d,
            receive_max=config.receive_max,
            dead_letters=self.dead_letters,
            bytes_max=MESSAGE_BYTES_MAX,
        )
        return work_queue(self, construct_id, name, config, keeping)


class FailedCalls(Construct):
    """Queue of failed invocations of the starter and the notifier."""

    def __init__(self, scope: Construct, construct_id: str, *, config: Config) -> None:
        super().__init__(scope, construct_id)
        # One queue for both functions, because alarms cost per metric. A message contains its
        # function's name.
        self.queue = failures_queue(self, "Queue", f"{config.stack_name}-failed-calls", config)


def failures_queue(
    scope: Construct, construct_id: str, name: str, config: Config, *, of_queue: bool = False
) -> sqs.Queue:
    """Create a queue for failed invocations or, if `of_queue`, for a queue's dead letters."""
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
    """Retention and retries of a queue.

    `hidden_s` is the visibility timeout. `receive_max` deliveries make a message a dead letter.
    """

    hidden_s: int
    kept_d: int
    receive_max: int
    dead_letters: sqs.Queue
    bytes_max: int | None = None


def work_queue(
    scope: Construct, construct_id: str, name: str, config: Config, keeping: Keeping
) -> sqs.Queue:
    return sqs.Queue(
        scope,
        construct_id,
        queue_name=name,
        visibility_timeout=Duration.seconds(keeping.hidden_s),
        retention_period=Duration.days(keeping.kept_d),
        max_message_size_bytes=keeping.bytes_max,
        encryption=sqs.QueueEncryption.SQS_MANAGED,
        enforce_ssl=config.tls_only,
        dead_letter_queue=sqs.DeadLetterQueue(
            queue=keeping.dead_letters, max_receive_count=keeping.receive_max
        ),
    )


def retry(scope: Construct, function: lambda_.Function, failures: sqs.Queue) -> None:
    """Configure Lambda's retries of a function, and the queue for its failed invocations.

    The function's role must be allowed to send to that queue.
    """
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
