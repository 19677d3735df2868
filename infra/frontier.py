"""The queues: for seeds, for packs (crawl, express, and render), and for dead letters.

Rules
- People and programs drop seeds on the queue for seeds, and what comes from there is read as seeds
  alone. Packs say what is to be crawled, so only the stack's own functions send those.
- Visibility is at least 6 times the timeout of the function that takes from it, plus the time a
  batch collects: a batch that Lambda takes again after throttling must still be its own.
- A dead letter's age counts from when it was first sent, so it is kept longer than a message.
- The render queue is there with `rendering=yes` alone: packs with pages that take a browser.
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
        rendering = ["Render"] if config.renders else []
        named = (*lanes, "Seeds", *rendering)
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
            self.dead_letters, "Serverless-SQSRedrivePolicy", "It is the dead-letter queue itself."
        )
        queues = {
            lane: self._queue(lane, name, config) for lane, name in zip(named, sources, strict=True)
        }
        self.seeds, self.render = queues["Seeds"], queues.get("Render")
        self.crawl, self.express = queues[lanes[0]], queues[lanes[-1]]

    @property
    def packs(self) -> tuple[sqs.Queue, ...]:
        """The queues that functions send packs to."""
        rendering = () if self.render is None else (self.render,)
        return (self.crawl, self.express, *rendering)

    def _queue(self, construct_id: str, name: str, config: Config) -> sqs.Queue:
        timeout_s = config.worker_timeout_s
        if construct_id == "Render":
            timeout_s = config.renderer_timeout_s
        visibility_s = VISIBILITY_TIMEOUTS * timeout_s + config.batch_window_s
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
