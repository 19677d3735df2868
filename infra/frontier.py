"""The queues: one for seeds, two for packs (crawl and express), and one for dead letters.

Rules
- People and programs drop seeds on the queue for seeds, and what comes from there is read as seeds
  alone. Packs say what is to be crawled, so only the stack's own functions send those.
- Visibility is at least 6 times the worker's timeout, plus the time a batch collects: a batch that
  Lambda takes again after throttling must still be its own.
- A dead letter's age counts from when it was first sent, so it is kept longer than a message.
- With `frugal` there is no express queue, which would be polled day and night: the crawl queue is
  both.
- Names are made here rather than by CloudFormation: the dead-letter queue names those that may
  feed it, and they name it.

Source: docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html,
docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import ArnFormat, Duration, Stack
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.findings import accept

if TYPE_CHECKING:
    from infra.config import Config

VISIBILITY_TIMEOUTS = 6
MESSAGE_BYTES_MAX = 1_048_576


class Frontier(Construct):
    """Where URLs wait."""

    def __init__(self, scope: Construct, construct_id: str, *, config: Config) -> None:
        super().__init__(scope, construct_id)
        prefix = config.stack_name
        lanes = ["Crawl"] if config.thrifty else ["Crawl", "Express"]
        sources = [f"{prefix}-{lane.lower()}" for lane in (*lanes, "Seeds")]
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
            self.dead_letters, "Serverless-SQSRedrivePolicy", "It is the dead-letter queue itself."
        )
        *packs, self.seeds = [
            self._queue(lane, name, config)
            for lane, name in zip((*lanes, "Seeds"), sources, strict=True)
        ]
        self.crawl, self.express = packs[0], packs[-1]

    def _queue(self, construct_id: str, name: str, config: Config) -> sqs.Queue:
        visibility_s = VISIBILITY_TIMEOUTS * config.worker_timeout_s + config.batch_window_s
        return sqs.Queue(
            self,
            construct_id,
            queue_name=name,
            visibility_timeout=Duration.seconds(visibility_s),
            retention_period=Duration.days(config.queue_retention_d),
            max_message_size_bytes=MESSAGE_BYTES_MAX,
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=config.tls_only,
            dead_letter_queue=sqs.DeadLetterQueue(
                queue=self.dead_letters, max_receive_count=config.receive_max
            ),
        )
