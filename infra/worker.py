"""The worker: takes packs and seeds from their queues, crawls, and sends what follows.

Rules
- Only failed packs of a batch go back (partial batch response).
- Concurrency is bounded at the event sources: a reserved concurrency would throttle deliveries,
  which count as received, into the dead-letter queue.
- `RecursiveLoop: Allow`: a function that feeds its own queue is what Lambda halts after about 16
  hops. Depth, budget and the kill switch (`workers off`) are the brakes.

Source: docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html, …/invocation-recursion.html.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

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
    secret_arn,
    sending,
)
from infra.retention import BODIES, CLAIMED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aws_cdk import aws_iam as iam
    from aws_cdk import aws_sqs as sqs

    from infra.config import Config
    from infra.storage import Storage

# Seconds, as text.
LOCAL_ROUND_S = "10"
LOOPS = {
    "Allow": lambda_.RecursiveLoop.ALLOW,
    "Terminate": lambda_.RecursiveLoop.TERMINATE,
}
USES = (
    *("SEED_QUEUE_URL", "CRAWL_QUEUE_URL", "EXPRESS_QUEUE_URL", "RENDER_QUEUE_URL"),
    *("DEAD_LETTER_QUEUE_URL", "URLS_TABLE", "PAGES_TABLE", "HOSTS_TABLE"),
    *("CRAWLS_TABLE", "PACKS_TABLE", "BUCKET"),
)
# As few as SQS takes: a body of seeds is only cut into messages, even in a flood.
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
            recursive_loop=LOOPS[config.recursive_loop],
        )
        program = Program(self, site, needs)
        self.function, self.logs = program.function, program.logs
        at_once, size = config.worker_concurrency_max, config.batch_size
        batches = batches_of(config, at_once=at_once, size=size)
        express = replace(batches, at_once=config.express_concurrency_max)
        seeds = replace(batches, at_once=SEED_WORKERS, size=SEED_BODIES)
        self.crawl_source = feed(self, "Crawl", program, frontier.crawl, batches)
        self.express_source = self.crawl_source
        if frontier.express is not frontier.crawl:
            self.express_source = feed(self, "Express", program, frontier.express, express)
        self.seed_source = feed(self, "Seeds", program, frontier.seeds, seeds)
        accept_crawling(program, site.storage)


def crawling(scope: Construct, site: Site, taken: Sequence[sqs.Queue]) -> list[iam.PolicyStatement]:
    """Name what a function may do that takes packs from some queues, and crawls."""
    config, frontier, storage = site.config, site.frontier, site.storage
    sent = (*frontier.packs, frontier.dead_letters)
    receive = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"]
    # A message that failed need not wait for its whole visibility timeout.
    receive.append("sqs:ChangeMessageVisibility")
    # A transaction is authorised by what is in it: PutItem, UpdateItem, ConditionCheckItem.
    tables = {
        storage.urls: ("BatchGetItem", "PartiQLInsert", "PutItem", "UpdateItem", "DeleteItem"),
        # A later run reads what an earlier one has recorded of a page.
        storage.pages: ("BatchGetItem", "BatchWriteItem"),
        storage.hosts: ("BatchGetItem", "PutItem", "UpdateItem"),
        storage.crawls: (
            "GetItem",
            "BatchGetItem",
            "PutItem",
            "UpdateItem",
            "ConditionCheckItem",
        ),
        # Packs wait there for their hosts, too: put by PartiQL, looked at, and left.
        storage.packs: (
            *("GetItem", "BatchGetItem", "Query", "PartiQLInsert"),
            *("PutItem", "UpdateItem", "DeleteItem", "ConditionCheckItem"),
        ),
    }
    return [
        allow(receive, *(queue.queue_arn for queue in taken)),
        allow(sending(config), *(queue.queue_arn for queue in sent)),
        *(
            allow([f"dynamodb:{operation}" for operation in operations], table.table_arn)
            for table, operations in tables.items()
        ),
        allow(["events:PutEvents"], event_bus_arn(scope)),
        # Without reading or listing: a segment's name never repeats.
        allow(["s3:PutObject"], f"{storage.bucket.bucket_arn}/{BODIES}*"),
        # Without listing: for a file that is not there S3 answers that it may not be read.
        allow(["s3:GetObject", "s3:PutObject"], f"{storage.bucket.bucket_arn}/{CLAIMED}*"),
        *(
            allow(["secretsmanager:GetSecretValue"], secret_arn(scope, secret))
            for secret in filter(None, [config.proxy_secret])
        ),
    ]


def batches_of(config: Config, *, at_once: int, size: int) -> Batches:
    """Say how packs are brought to a function that crawls; one switch is for all of them."""
    return Batches(
        at_once=at_once,
        size=size,
        window_s=config.batch_window_s,
        enabled=config.worker_enabled == "yes",
    )


def settings_of(config: Config) -> dict[str, str]:
    """Settings that are the deployment's: where proxies are listed, whether waiting is paid for.

    Where it is not, rounds are short: trips cost nothing either, and others get their turn sooner.
    """
    found = {"EVENT_BUS": EVENT_BUS}
    if config.claims_travel != ("no" if config.local else "yes"):  # an environment has an end
        found["CLAIMS_TRAVEL"] = config.claims_travel
    secret = {"PROXY_SECRET": config.proxy_secret} if config.proxy_secret else {}
    if config.local:
        return found | {"WAITS_BILLED": "no", "ROUND_S": LOCAL_ROUND_S} | secret
    return found | {"WAITS_BILLED": "yes"} | secret


def accept_crawling(program: Program, storage: Storage) -> None:
    """Say why what remains of findings is as it should be."""
    for folder in (BODIES, CLAIMED):
        accept_files(program.role, f"<{storage.bucket_id}.Arn>/{folder}")
    accept(
        program.function,
        "Serverless-LambdaDLQ",
        "Invoked by queues only; their dead-letter queue takes what fails.",
    )
