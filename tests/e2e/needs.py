"""Permissions that each deed (piece of work in deeds.py) needs, and permissions that AWS uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.e2e import deeds

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.e2e.deeds import Act, Bench

    Deed = Callable[[Bench], Act]

LOGS = ("logs:CreateLogStream", "logs:PutLogEvents")
GLUE = ("GetTable", "CreateTable", "UpdateTable")

# Deeds that fail without each grant.
NEEDED: dict[Deed, tuple[str, ...]] = {
    deeds.seeds_taken_in: (
        "worker sqs:SendMessage crawl",
        "worker dynamodb:BatchGetItem table/urls",
        "worker dynamodb:PartiQLInsert table/urls",
        "worker dynamodb:GetItem table/crawls",
        "worker dynamodb:UpdateItem table/crawls",
        "worker dynamodb:BatchGetItem table/packs",
        "worker dynamodb:PutItem table/packs",
        "worker dynamodb:UpdateItem table/packs",
    ),
    deeds.express_seeds_taken_in: ("worker sqs:SendMessage express",),
    deeds.seeds_of_a_slow_crawl_taken_in: (
        "worker dynamodb:PartiQLInsert table/packs",
        "worker dynamodb:Query table/packs",
    ),
    deeds.page_that_waited_crawled: (
        "worker dynamodb:UpdateItem table/hosts",
        "worker dynamodb:DeleteItem table/packs",
    ),
    deeds.last_page_crawled: (
        "worker dynamodb:BatchGetItem table/hosts",
        "worker dynamodb:PutItem table/hosts",
        "worker dynamodb:BatchWriteItem table/pages",
        "worker s3:PutObject bucket/bodies/*",
        "worker dynamodb:BatchGetItem table/crawls",
        "worker events:PutEvents event-bus/default",
    ),
    deeds.page_behind_login_crawled: (
        "worker secretsmanager:GetSecretValue secret:Orbweaver/logins/*",
        "worker ssm:GetParameter parameter/Orbweaver/logins/*",
    ),
    deeds.lapsed_url_claimed: ("worker dynamodb:PutItem table/urls",),
    deeds.page_crawled_again: ("worker dynamodb:BatchGetItem table/pages",),
    deeds.cancelled_pack_abandoned: ("worker dynamodb:UpdateItem table/urls",),
    deeds.budget_overrun: (
        "worker dynamodb:DeleteItem table/urls",
        "worker dynamodb:GetItem table/packs",
    ),
    deeds.bare_url_taken_in: ("worker dynamodb:PutItem table/crawls",),
    deeds.malformed_message_buried: ("worker sqs:SendMessage dead-letters",),
    deeds.paused_pack_parked: ("worker dynamodb:ConditionCheckItem table/crawls",),
    deeds.day_exported: (
        "exporter dynamodb:Query table/pages",
        "exporter dynamodb:GetItem table/crawls",
        "exporter dynamodb:Scan table/crawls",
        "exporter s3:GetObject bucket/exports/*",
        "exporter s3:PutObject bucket/exports/*",
        "exporter s3:DeleteObject bucket/exports/*",
        "exporter s3:ListBucket bucket",
        "exporter sqs:SendMessage exports",
        "exporter events:PutEvents event-bus/default",
    ),
    deeds.texts_exported: ("exporter s3:GetObject bucket/bodies/*",),
    deeds.items_exported: tuple(f"exporter glue:{action} database/orbweaver" for action in GLUE),
    deeds.seeds_posted: (
        "api sqs:SendMessage crawl",
        "api dynamodb:GetItem table/crawls",
    ),
    deeds.express_seeds_posted: ("api sqs:SendMessage express",),
    deeds.seeds_posted_for_nobody: ("api dynamodb:PutItem table/crawls",),
    deeds.seeds_read_from_a_file: ("api s3:GetObject bucket/seeds/*",),
    deeds.crawls_listed: ("api dynamodb:Scan table/crawls",),
    deeds.crawl_shown: ("api dynamodb:BatchGetItem table/crawls",),
    deeds.crawl_resumed: (
        "api dynamodb:UpdateItem table/crawls",
        "api dynamodb:Query table/packs",
        "api dynamodb:BatchWriteItem table/packs",
    ),
    deeds.records_listed: ("api dynamodb:Query table/pages",),
    deeds.texts_listed: ("api s3:GetObject bucket/bodies/*",),
    deeds.exports_listed: ("api s3:GetObject bucket/exports/*",),
    deeds.url_explained: (
        "api dynamodb:BatchGetItem table/urls",
        "api dynamodb:BatchGetItem table/hosts",
        "api dynamodb:BatchGetItem table/packs",
        "api dynamodb:BatchGetItem table/pages",
    ),
    deeds.recurring_crawl_started: (
        "starter dynamodb:Scan table/crawls",
        "starter dynamodb:PutItem table/crawls",
        "starter sqs:SendMessage crawl",
    ),
    deeds.express_recurring_crawl_started: ("starter sqs:SendMessage express",),
    deeds.recurring_crawl_started_twice: (
        "starter dynamodb:GetItem table/crawls",
        "starter dynamodb:BatchGetItem table/crawls",
    ),
    deeds.webhook_told: (
        "notifier dynamodb:GetItem table/crawls",
        "notifier dynamodb:BatchGetItem table/crawls",
        "notifier secretsmanager:GetSecretValue secret:webhook-key",
    ),
    deeds.webhook_refused: ("notifier sqs:SendMessage failed-calls",),
}

# Requests that the emulator makes itself without a role, and the service that makes them on AWS.
NOT_ENFORCED = {
    # Lambda polls queues with the function's role, and needs these to create an event source.
    # docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
    "event sources": tuple(
        f"worker sqs:{action} {queue}"
        for action in ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes")
        for queue in ("seeds", "crawl", "express")
    )
    + tuple(
        f"exporter sqs:{action} exports"
        for action in ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes")
    ),
    # Glue checks the catalogue, the table and the database.
    # docs.aws.amazon.com/glue/latest/dg/glue-specifying-resource-arns.html
    "tables of items": tuple(
        f"exporter glue:{action} {part}"
        for action in GLUE
        for part in ("catalog", "table/orbweaver/items_*")
    ),
    # Lambda writes a function's output with the function's role.
    # docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs.html
    "logs": tuple(
        f"{role} {action} log-group:/aws/lambda/Orbweaver-{role}:*"
        for role in ("worker", "exporter", "api", "starter", "notifier")
        for action in LOGS
    ),
    # Lambda sends permanently failed events to their destination with the function's role.
    # docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html
    "on-failure destination": (
        "exporter sqs:SendMessage failures",
        "starter sqs:SendMessage failed-calls",
    ),
    # For an absent file, S3 answers access denied to callers that may not list the bucket.
    # docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html
    "files that are not there": ("api s3:ListBucket bucket",),
    # EventBridge Scheduler invokes targets and sends failed events with the schedule's role.
    # docs.aws.amazon.com/scheduler/latest/UserGuide/setting-up.html
    "schedule": (
        "schedule lambda:InvokeFunction function:Orbweaver-exporter",
        "schedule sqs:SendMessage failures",
        "firing lambda:InvokeFunction function:Orbweaver-starter",
        "firing sqs:SendMessage failed-calls",
    ),
}

# Permissions that AWS itself uses under a role, so no client requests them; deliveries too.
USED_BY_AWS = frozenset(
    grant
    for why in ("event sources", "logs", "on-failure destination", "schedule")
    for grant in NOT_ENFORCED[why]
) | {
    *(
        f"delivery sqs:{action} delivery"
        for action in ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes")
    ),
    # The queue has the function's name, hence this word.
    *(f"delivery {action} log-group:/aws/lambda/delivery:*" for action in LOGS),
}
# Work continues without these: links are looked up instead (tests/unit/worker/test_host_claims.py).
# Only large pages with a delay, where waits are billed, cause such requests.
ADVISORY = frozenset(
    f"{role} s3:{action} bucket/claimed/*"
    for role in ("worker", "renderer")
    for action in ("GetObject", "PutObject")
)
# Only tests/contract/test_roles.py causes these requests, not the end-to-end tests: an export
# deleted before its delivery, a deferred delivery, and a failed message.
ONLY_IN_CONTRACT = frozenset(
    {
        "delivery s3:ListBucket bucket",
        "delivery sqs:ChangeMessageVisibility delivery",
        *(f"worker sqs:ChangeMessageVisibility {queue}" for queue in ("seeds", "crawl", "express")),
    }
)
# Grants of a rendering stack that no end-to-end test uses: AWS itself needs some, and the API needs
# one to resume a crawl whose pages wait for a browser (tests/unit/adapters/test_sqs_lanes.py sends
# such a pack).
ONLY_RENDERING = frozenset(
    {
        *(
            f"renderer sqs:{action} render"
            for action in ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes")
        ),
        *(f"renderer {action} log-group:/aws/lambda/Orbweaver-renderer:*" for action in LOGS),
        "api sqs:SendMessage render",
        "renderer sqs:ChangeMessageVisibility render",
    }
)

# Permissions that a function uses but the emulator does not check, with their deeds.
# tests/contract/test_roles.py removes each of them. For tables of items (not their
# database) it only observes the use.
ONLY_GUARDED: dict[Deed, tuple[str, ...]] = {
    deeds.absent_file_named: NOT_ENFORCED["files that are not there"],
}
