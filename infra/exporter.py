"""The exporter: writes days of page records to the bucket, every night and on request.

An event starts a run and splits it into units of work. A queue delivers each unit to the same
function, so if one unit fails, the others succeed. Failed events and failed units go to separate
dead-letter queues. An operator must export a missing day again.

Source: docs.aws.amazon.com/scheduler/latest/UserGuide/managing-targets-universal.html,
docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from infra.catalogue import accept_registering, table_permissions
from infra.findings import accept, accept_files
from infra.frontier import EVENT_S_MAX, RETRIES, Keeping, failures_queue, retry, work_queue
from infra.program import Batches, Needs, Program, Site, allow, event_bus_arn, feed, sending
from infra.schedules import firing_role
from orbweaver.app.file_retention import BODIES, EXPORTS
from orbweaver.exporting.glue_schema import database_name

if TYPE_CHECKING:
    from infra.config import Config
    from infra.storage import Storage

HANDLER = "exporter"
# A message is delivered again one minute after the longest possible invocation. AWS recommends six
# times the timeout, but then a crash would cost up to an hour and a half. The event source limits
# the concurrency, so messages are rarely throttled.
HIDDEN_S = 60
# glibc keeps freed memory for each thread, and Lambda kills functions that use too much memory.
# With this setting, `make export-scale` exports a million pages in 256 MB.
ALLOCATORS = {"MALLOC_ARENA_MAX": "2"}
ORDERS_KEPT_D = 4


class Exporter(Construct):
    """The function that exports, and its schedule."""

    def __init__(self, scope: Construct, construct_id: str, site: Site) -> None:
        super().__init__(scope, construct_id)
        config, storage = site.config, site.storage
        name = f"{config.stack_name}-{HANDLER}"
        self.failures = failures_queue(self, "Failures", f"{name}-failures", config)
        self.dead_letters = failures_queue(
            self, "DeadLetters", f"{name}-dead-letters", config, of_queue=True
        )
        keeping = Keeping(
            hidden_s=config.exporter_timeout_s + HIDDEN_S,
            kept_d=ORDERS_KEPT_D,
            receive_max=config.receive_max,
            dead_letters=self.dead_letters,
        )
        self.queue = work_queue(self, "Orders", f"{config.stack_name}-exports", config, keeping)
        needs = Needs(
            handler=HANDLER,
            memory_mb=config.exporter_memory_mb,
            storage_mb=config.exporter_storage_mb,
            timeout_s=config.exporter_timeout_s,
            uses=("PAGES_TABLE", "BUCKET", "CRAWLS_TABLE"),
            settings={
                "EXPORT_QUEUE_URL": self.queue.queue_url,
                "EXPORT_FORMATS": config.export_formats,
                "EXPORT_SPAN": config.export_span,
                "DATABASE": database_name(config.stack_name),
            },
            environment=ALLOCATORS,
            permissions=self._permissions(config, storage),
            # A unit that takes too long for one invocation sends a message to its own queue.
            recursive_loop=lambda_.RecursiveLoop.ALLOW,
            libraries="files",
        )
        program = Program(self, site, needs)
        self.function, self.logs = program.function, program.logs
        retry(self, self.function, self.failures)
        batches = Batches(at_once=config.exporter_concurrency_max, partly=False)
        self.source = feed(self, "FromOrders", program, self.queue, batches)
        self._schedule(config)
        accept_files(program.role, f"<{storage.bucket_id}.Arn>/{EXPORTS}")
        accept(
            program.role,
            f"AwsSolutions-IAM5[Resource::<{storage.bucket_id}.Arn>/{BODIES}*]",
            "The day's records determine which bodies and texts are exported.",
        )
        accept_registering(program.role, config)

    def _permissions(self, config: Config, storage: Storage) -> list[iam.PolicyStatement]:
        bucket = storage.bucket.bucket_arn
        return [
            allow(["dynamodb:Query"], storage.pages.table_arn),
            allow(["dynamodb:GetItem", "dynamodb:Scan"], storage.crawls.table_arn),
            allow(["s3:GetObject", "s3:PutObject", "s3:DeleteObject"], f"{bucket}/{EXPORTS}*"),
            allow(["s3:GetObject"], f"{bucket}/{BODIES}*"),
            # Without this permission, GetObject reports "access denied" instead of "no such key". A
            # condition on the prefix is impossible, because GetObject sends no prefix.
            allow(["s3:ListBucket"], bucket),
            allow(
                ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"],
                self.queue.queue_arn,
            ),
            allow(sending(config), self.queue.queue_arn),
            allow(["sqs:SendMessage"], self.failures.queue_arn),
            allow(["events:PutEvents"], event_bus_arn(self)),
            table_permissions(config),
        ]

    def _schedule(self, config: Config) -> None:
        role = firing_role(self, "ScheduleRole", self.function, self.failures)
        scheduler.CfnSchedule(
            self,
            "Schedule",
            schedule_expression=config.exporter_cron,
            schedule_expression_timezone="UTC",
            flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
            # Without an input, the event contains its own time, so a repeated event requests the
            # same day.
            target=scheduler.CfnSchedule.TargetProperty(
                arn=self.function.function_arn,
                role_arn=role.role_arn,
                dead_letter_config=scheduler.CfnSchedule.DeadLetterConfigProperty(
                    arn=self.failures.queue_arn
                ),
                retry_policy=scheduler.CfnSchedule.RetryPolicyProperty(
                    maximum_retry_attempts=RETRIES, maximum_event_age_in_seconds=EVENT_S_MAX
                ),
            ),
        )
