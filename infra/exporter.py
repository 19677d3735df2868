"""The exporter: writes a day of page records to the bucket, every night and when asked.

Rules
- The schedule's event carries its time, so a repeated one means the same day.
- It goes on by invoking itself when its time is nearly over, so loops are allowed to it as well.
- An event that keeps failing ends in a queue of its own: a day that is missing is a thing of its
  own for whoever is called.

Source: docs.aws.amazon.com/scheduler/latest/UserGuide/managing-targets-universal.html.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Aws
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from infra.failures import EVENT_S_MAX, RETRIES, failures_queue, retry
from infra.findings import accept
from infra.program import Code, Needs, Program, allow, function_arn
from infra.storage import EXPORTS

if TYPE_CHECKING:
    from infra.config import Config
    from infra.storage import Storage

HANDLER = "exporter"


class Exporter(Construct):
    """The function that exports, and its schedule."""

    def __init__(
        self, scope: Construct, construct_id: str, *, config: Config, code: Code, storage: Storage
    ) -> None:
        super().__init__(scope, construct_id)
        name = f"{config.stack_name}-{HANDLER}"
        self.failures = failures_queue(self, "Failures", f"{name}-failures", config)
        program = Program(
            self,
            "Program",
            config=config,
            code=code,
            needs=Needs(
                handler=HANDLER,
                memory_mb=config.exporter_memory_mb,
                timeout_s=config.exporter_timeout_s,
                environment={
                    "ORBWEAVER_PAGES_TABLE": storage.pages.table_name,
                    "ORBWEAVER_BUCKET": storage.bucket.bucket_name,
                    "ORBWEAVER_EXPORTER_FUNCTION": name,
                },
                permissions=self._permissions(name, storage),
                recursive_loop=lambda_.RecursiveLoop.ALLOW,
            ),
        )
        self.function, self.logs = program.function, program.logs
        retry(self, self.function, self.failures)
        self._schedule(config)
        accept(
            program.role,
            f"AwsSolutions-IAM5[Resource::<{storage.bucket_id}.Arn>/{EXPORTS}*]",
            "Names of files follow from days and crawls; the prefix is the narrowest fence.",
        )

    def _permissions(self, name: str, storage: Storage) -> list[iam.PolicyStatement]:
        bucket = storage.bucket.bucket_arn
        return [
            allow(["dynamodb:Query"], storage.pages.table_arn),
            allow(["s3:GetObject", "s3:PutObject", "s3:DeleteObject"], f"{bucket}/{EXPORTS}*"),
            # Without a condition on the prefix: GetObject answers "no such key" instead of
            # "access denied" only to who may list, and it sends no prefix to compare.
            allow(["s3:ListBucket"], bucket),
            allow(["lambda:InvokeFunction"], function_arn(self, name)),
            allow(["sqs:SendMessage"], self.failures.queue_arn),
        ]

    def _schedule(self, config: Config) -> None:
        role = iam.Role(
            self,
            "ScheduleRole",
            assumed_by=iam.ServicePrincipal(
                "scheduler.amazonaws.com",
                conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}},
            ),
            inline_policies={
                "Needs": iam.PolicyDocument(
                    statements=[
                        allow(["lambda:InvokeFunction"], self.function.function_arn),
                        allow(["sqs:SendMessage"], self.failures.queue_arn),
                    ]
                )
            },
        )
        scheduler.CfnSchedule(
            self,
            "Schedule",
            schedule_expression=config.exporter_cron,
            schedule_expression_timezone="UTC",
            flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
            # Without an input of its own it sends the event with its time.
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
