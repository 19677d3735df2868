"""Deliveries: exports are pushed to an SFTP server, or copied to another bucket.

The constructs exist only if exports have receivers (`sftp_url`, `copy_bucket`), and cost nothing
otherwise. EventBridge and SQS deliver at least once, so the function detects files that exist
already.

Source: docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html,
docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.findings import accept, accept_files
from infra.frontier import Keeping, failures_queue, work_queue
from infra.program import Batches, Needs, Program, Site, allow, feed, secret_arn
from orbweaver.app.file_retention import EXPORTS
from orbweaver.delivery.plan import TRIES_MAX
from orbweaver.model.events import EXPORTED, SOURCE

if TYPE_CHECKING:
    from aws_cdk import aws_iam as iam

    from infra.config import Config
    from infra.storage import Storage

HANDLER = "delivery"
# Encryption needs CPU: 1,024 MB give 0.6 CPU, about 20 MB/s.
MEMORY_MB = 1_024
TIMEOUT_S = 900
VISIBILITY_TIMEOUTS = 6
AT_ONCE = 2  # Lambda's minimum; more connections would share the same bandwidth
RETENTION_D = 7


class Delivery(Construct):
    """The function that delivers exports, its queue, and the rule that fills the queue."""

    def __init__(self, scope: Construct, construct_id: str, site: Site) -> None:
        super().__init__(scope, construct_id)
        config, storage = site.config, site.storage
        name = f"{config.stack_name}-{HANDLER}"
        self.dead_letters = failures_queue(self, "DeadLetters", f"{name}-dead-letters", config)
        keeping = Keeping(
            hidden_s=VISIBILITY_TIMEOUTS * TIMEOUT_S,
            kept_d=RETENTION_D,
            receive_max=TRIES_MAX,
            dead_letters=self.dead_letters,
        )
        # Lambda repeats an asynchronous invocation only twice within three minutes, but a failed
        # server is usually down for longer. The queue delivers a failed message again after one
        # minute, and finally every hour, for a day in all. Then the message goes to the dead-letter
        # queue, which has an alarm.
        self.queue = work_queue(self, "Queue", name, config, keeping)
        needs = Needs(
            handler=HANDLER,
            memory_mb=MEMORY_MB,
            timeout_s=TIMEOUT_S,
            uses=("BUCKET",),
            settings=self._settings(config),
            permissions=self._permissions(config, storage),
            # A delivery that takes too long for one invocation sends a message to its own queue.
            recursive_loop=lambda_.RecursiveLoop.ALLOW,
            libraries="files",
        )
        program = Program(self, site, needs)
        self.function, self.logs = program.function, program.logs
        self.source = feed(self, "Source", program, self.queue, Batches(at_once=AT_ONCE))
        self._listen(storage)
        self._accept(config, storage, program)

    def _settings(self, config: Config) -> dict[str, str]:
        sftp = config.sftp_settings if config.sftp_url else {}
        return {
            "DELIVERY_QUEUE_URL": self.queue.queue_url,
            "DELIVERY_DEAD_LETTER_URL": self.dead_letters.queue_url,
            **{key.upper(): value for key, value in sftp.items() if value},
            **({"COPY_BUCKET": config.copy_bucket} if config.copy_bucket else {}),
        }

    def _permissions(self, config: Config, storage: Storage) -> list[iam.PolicyStatement]:
        bucket = storage.bucket.bucket_arn
        receive = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"]
        given = [
            allow(
                [*receive, "sqs:ChangeMessageVisibility", "sqs:SendMessage"], self.queue.queue_arn
            ),
            allow(["sqs:SendMessage"], self.dead_letters.queue_arn),
            allow(["s3:GetObject"], f"{bucket}/{EXPORTS}*"),
            # Without this permission, GetObject reports "access denied" instead of "no such key".
            allow(["s3:ListBucket"], bucket),
        ]
        if config.sftp_url:
            secret = secret_arn(self, config.sftp_secret)
            given.append(allow(["secretsmanager:GetSecretValue"], secret))
        if config.copy_bucket:
            there = _bucket_arn(self, config.copy_bucket)
            objects = ("GetObject", "PutObject", "PutObjectAcl", "DeleteObject")
            given += [
                allow([f"s3:{operation}" for operation in objects], f"{there}/{EXPORTS}*"),
                allow(["s3:ListBucket"], there),
            ]
        return given

    def _listen(self, storage: Storage) -> None:
        """Queue export events of this stack's bucket only, because stacks share the event bus."""
        events.Rule(
            self,
            "Rule",
            event_pattern=events.EventPattern(
                source=[SOURCE],
                detail_type=[EXPORTED],
                detail={"bucket": [storage.bucket.bucket_name]},
            ),
            targets=[targets.SqsQueue(self.queue, dead_letter_queue=self.dead_letters)],
        )

    def _accept(self, config: Config, storage: Storage, program: Program) -> None:
        accept(
            self.function,
            "Serverless-LambdaDLQ",
            "Invoked by a queue only; failures go to that queue's dead-letter queue.",
        )
        names = [f"<{storage.bucket_id}.Arn>"]
        if config.copy_bucket:
            names.append(f"arn:<AWS::Partition>:s3:::{config.copy_bucket}")
        for name in names:
            accept_files(program.role, f"{name}/{EXPORTS}")


def _bucket_arn(scope: Construct, name: str) -> str:
    return Stack.of(scope).format_arn(
        service="s3",
        resource=name,
        account="",
        region="",
        arn_format=ArnFormat.NO_RESOURCE_NAME,
    )
