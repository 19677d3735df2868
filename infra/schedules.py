"""Recurring crawls: a group for their schedules, and the function that the schedules invoke.

Users create schedules with `orbweaver schedule put`, in this group and with this role. No function
of the stack is allowed to create schedules. Removing the group removes its schedules.

Source: docs.aws.amazon.com/scheduler/latest/UserGuide/,
cross-service-confused-deputy-prevention.html.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import ArnFormat, Aws, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from infra.frontier import retry
from infra.program import Needs, Program, Site, allow, sending

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aws_cdk import aws_lambda as lambda_
    from aws_cdk import aws_sqs as sqs


HANDLER = "starter"
MEMORY_MB = 512
TIMEOUT_S = 60


class Starter(Construct):
    """The function that starts recurring crawls, with the group and role of their schedules."""

    def __init__(self, scope: Construct, construct_id: str, site: Site) -> None:
        super().__init__(scope, construct_id)
        config, failed_calls = site.config, site.failed_calls
        # The function only starts crawls. The first pages of a crawl need no browser, so it does
        # not send to the render queue.
        crawl, express = site.frontier.crawl.queue_arn, site.frontier.express.queue_arn
        # The function lists and reads existing runs, and writes a new run.
        crawls = ("Scan", "GetItem", "BatchGetItem", "PutItem")
        needs = Needs(
            handler=HANDLER,
            memory_mb=MEMORY_MB,
            timeout_s=TIMEOUT_S,
            uses=("CRAWL_QUEUE_URL", "EXPRESS_QUEUE_URL", "CRAWLS_TABLE"),
            permissions=[
                allow(sending(config), crawl, express),
                allow([f"dynamodb:{one}" for one in crawls], site.storage.crawls.table_arn),
                allow(["sqs:SendMessage"], failed_calls.queue.queue_arn),
            ],
        )
        program = Program(self, site, needs)
        self.function, self.logs = program.function, program.logs
        retry(self, self.function, failed_calls.queue)
        self.group = scheduler.CfnScheduleGroup(self, "Group", name=config.stack_name)
        self.role = self._role(site)

    def _role(self, site: Site) -> iam.Role:
        group = Stack.of(self).format_arn(
            service="scheduler",
            resource="schedule-group",
            resource_name=site.config.stack_name,
            arn_format=ArnFormat.SLASH_RESOURCE_NAME,
        )
        failures = site.failed_calls.queue
        # Only schedules of the group are allowed to assume the role, and it only allows invoking
        # the function.
        return firing_role(self, "FiringRole", self.function, failures, {"aws:SourceArn": group})


def firing_role(
    scope: Construct,
    construct_id: str,
    function: lambda_.Function,
    failures: sqs.Queue,
    sources: Mapping[str, str] | None = None,
) -> iam.Role:
    """Create the role with which schedules invoke a function.

    `sources` restricts which schedules are allowed to assume the role. `failures` receives failed
    events.
    """
    needs = [
        allow(["lambda:InvokeFunction"], function.function_arn),
        allow(["sqs:SendMessage"], failures.queue_arn),
    ]
    return iam.Role(
        scope,
        construct_id,
        assumed_by=iam.ServicePrincipal(
            "scheduler.amazonaws.com",
            conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID, **(sources or {})}},
        ),
        inline_policies={"Needs": iam.PolicyDocument(statements=needs)},
    )
