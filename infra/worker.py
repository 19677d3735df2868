"""The worker receives packs (batches of URLs) and seeds, crawls, and sends follow-up packs.

The renderer does the same for packs that need a browser. It runs on x86_64, like the browser.

Source: docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html, …/invocation-recursion.html,
aws.amazon.com/lambda/pricing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.browser import PLACE
from infra.config import Config
from infra.findings import accept, accept_files
from infra.program import (
    EVENT_BUS,
    Batches,
    Needs,
    Program,
    Site,
    allow,
    event_bus_arn,
    feed,
    login_arns,
    secret_arn,
    sending,
)
from orbweaver.app.file_retention import BODIES, CLAIMED
from orbweaver.budget.estimate import BATCH
from orbweaver.model.auth import login_prefix
from orbweaver.model.settings import INSTALLED, Settings
from orbweaver.rendering.task import RenderLimits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aws_cdk import aws_iam as iam
    from aws_cdk import aws_sqs as sqs


# Seconds of a round (the time that a worker crawls per batch) on an emulator, as text.
LOCAL_ROUND_S = "10"
# Messages per batch on an emulator. All hosts of a batch are crawled concurrently, so a worker with
# more messages waits less.
LOCAL_BATCH = 10
# Messages per batch of a renderer. It renders four pages at a time, from different hosts if
# possible.
RENDER_BATCH = 5
LOOP = lambda_.RecursiveLoop[Config.recursive_loop.upper()]
USES = (
    *("SEED_QUEUE_URL", "CRAWL_QUEUE_URL", "EXPRESS_QUEUE_URL", "RENDER_QUEUE_URL"),
    *("DEAD_LETTER_QUEUE_URL", "URLS_TABLE", "PAGES_TABLE", "HOSTS_TABLE"),
    *("CRAWLS_TABLE", "PACKS_TABLE", "BUCKET"),
)
# SQS requires at least this concurrency. It also suffices for many seeds, because seeds are only
# split into messages.
SEED_WORKERS, SEED_BODIES = 2, 10


class Worker(Construct):
    """The function that crawls, and its event sources."""

    def __init__(self, scope: Construct, construct_id: str, site: Site) -> None:
        super().__init__(scope, construct_id)
        config, frontier = site.config, site.frontier
        needs = Needs(
            handler="worker",
            memory_mb=config.worker_memory_mb,
            timeout_s=config.worker_timeout_s,
            uses=USES,
            settings=settings_of(config),
            permissions=crawling(self, site, (*frontier.packs[:2], frontier.seeds)),
            recursive_loop=LOOP,
        )
        program = Program(self, site, needs)
        self.function, self.logs = program.function, program.logs
        # Reserved concurrency would throttle deliveries. A throttled delivery counts as a receive,
        # and after several receives a message becomes a dead letter. So the event sources limit the
        # concurrency instead.
        at_once, size = config.worker_concurrency_max, LOCAL_BATCH if config.local else BATCH
        batches = batches_of(config, at_once=at_once, size=size)
        express = replace(batches, at_once=config.express_concurrency_max)
        seeds = replace(batches, at_once=SEED_WORKERS, size=SEED_BODIES)
        self.crawl_source = feed(self, "Crawl", program, frontier.crawl, batches)
        self.express_source = self.crawl_source
        if frontier.express is not frontier.crawl:
            self.express_source = feed(self, "Express", program, frontier.express, express)
        self.seed_source = feed(self, "Seeds", program, frontier.seeds, seeds)
        accept_crawling(program, site)


class Renderer(Construct):
    """A worker with a browser, and its event source. Exists only with `rendering=yes`.

    It fetches a page and runs its scripts in the same invocation. So its role equals the worker's
    role, except for the queue that it consumes. It starts no page that it could not finish before
    its timeout.
    """

    def __init__(self, scope: Construct, construct_id: str, site: Site, queue: sqs.Queue) -> None:
        super().__init__(scope, construct_id)
        config = site.config
        needs = Needs(
            handler="renderer",
            memory_mb=config.renderer_memory_mb,
            timeout_s=config.renderer_timeout_s,
            storage_mb=None if config.local else config.renderer_storage_mb,
            uses=USES,
            settings=settings_of(config) | _rendering_settings(config),
            permissions=crawling(self, site, (queue,)),
            recursive_loop=LOOP,
            renders=True,
        )
        program = Program(self, site, needs)
        self.function, self.logs = program.function, program.logs
        at_once, size = config.renderer_concurrency_max, RENDER_BATCH
        batches = batches_of(config, at_once=at_once, size=size)
        self.source = feed(self, "Render", program, queue, batches)
        accept_crawling(program, site)


def _rendering_settings(config: Config) -> dict[str, str]:
    settings = Settings.from_environment(config.environment())
    reserve_s = settings.worker.apply_reserve_s + RenderLimits().page_s_max
    return {
        "BROWSER": INSTALLED if config.local else PLACE,
        "APPLY_RESERVE_S": f"{reserve_s:g}",
    }


def crawling(scope: Construct, site: Site, taken: Sequence[sqs.Queue]) -> list[iam.PolicyStatement]:
    """Return the permissions of a function that crawls and consumes the queues `taken`."""
    config, frontier, storage = site.config, site.frontier, site.storage
    sent = (*frontier.packs, frontier.dead_letters)
    receive = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"]
    # With this action, a failed message is delivered again before its visibility timeout.
    receive.append("sqs:ChangeMessageVisibility")
    # A transaction is authorised by the actions in it: PutItem, UpdateItem, ConditionCheckItem.
    tables = {
        storage.urls: ("BatchGetItem", "PartiQLInsert", "PutItem", "UpdateItem", "DeleteItem"),
        # A run reads the record of a page that an earlier run has written.
        storage.pages: ("BatchGetItem", "BatchWriteItem"),
        storage.hosts: ("BatchGetItem", "PutItem", "UpdateItem"),
        storage.crawls: (
            "GetItem",
            "BatchGetItem",
            "PutItem",
            "UpdateItem",
            "ConditionCheckItem",
        ),
        # Backlogs (waiting packs of hosts) are written by PartiQL, read and removed.
        storage.packs: (
            *("GetItem", "BatchGetItem", "Query", "PartiQLInsert"),
            *("PutItem", "UpdateItem", "DeleteItem"),
        ),
    }
    secrets, parameters = login_arns(scope, config)
    return [
        allow(["secretsmanager:GetSecretValue"], secrets),
        allow(["ssm:GetParameter"], parameters),
        allow(receive, *(queue.queue_arn for queue in taken)),
        allow(sending(config), *(queue.queue_arn for queue in sent)),
        *(
            allow([f"dynamodb:{operation}" for operation in operations], table.table_arn)
            for table, operations in tables.items()
        ),
        allow(["events:PutEvents"], event_bus_arn(scope)),
        # There is no permission to read or list segments: their names never repeat, so no name is
        # looked up before writing.
        allow(["s3:PutObject"], f"{storage.bucket.bucket_arn}/{BODIES}*"),
        # There is no permission to list, so S3 answers 403 for a missing file.
        allow(["s3:GetObject", "s3:PutObject"], f"{storage.bucket.bucket_arn}/{CLAIMED}*"),
        *(
            allow(["secretsmanager:GetSecretValue"], secret_arn(scope, secret))
            for secret in filter(None, [config.proxy_secret])
        ),
    ]


def batches_of(config: Config, *, at_once: int, size: int) -> Batches:
    """Return how a crawling function receives packs. `worker_enabled` applies to all its queues."""
    return Batches(
        at_once=at_once,
        size=size,
        window_s=config.batch_window_s,
        enabled=config.worker_enabled == "yes",
    )


def settings_of(config: Config) -> dict[str, str]:
    """Return those settings of the worker that depend on the deployment."""
    found = {"EVENT_BUS": EVENT_BUS}
    secret = {"PROXY_SECRET": config.proxy_secret} if config.proxy_secret else {}
    # On an emulator, messages cost nothing. Short rounds allow other hosts to be crawled sooner.
    if config.local:
        return found | {"WAITS_BILLED": "no", "ROUND_S": LOCAL_ROUND_S} | secret
    return found | {"WAITS_BILLED": "yes"} | secret


def accept_crawling(program: Program, site: Site) -> None:
    for folder in (BODIES, CLAIMED):
        accept_files(program.role, f"<{site.storage.bucket_id}.Arn>/{folder}")
    here, prefix = "<AWS::Region>:<AWS::AccountId>", login_prefix(site.config.stack_name)
    for kind in (f"secretsmanager:{here}:secret:", f"ssm:{here}:parameter/"):
        rule = f"AwsSolutions-IAM5[Resource::arn:<AWS::Partition>:{kind}{prefix}*]"
        accept(program.role, rule, "Users add secrets of sites below the stack's own prefix.")
    accept(
        program.function,
        "Serverless-LambdaDLQ",
        "Invoked by queues only; failures go to their dead-letter queue.",
    )
