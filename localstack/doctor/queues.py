"""Read-only checks of the queues and of the worker's event sources."""

from __future__ import annotations

import json
from typing import Any

from localstack.doctor.ground import Check, Finding, Ground, judged, number, passed, skipped, word

WORKERS = ("CrawlQueueUrl", "PackQueueUrl", "ExpressQueueUrl")
RENDER, EXPORT = "RenderQueueUrl", "ExportQueueUrl"
FACTOR, DAY_S, BYTES_MAX = 6, 86_400, 1_048_576
CONCURRENCY = (2, 1_000)
BATCH_FREE, WINDOW_S_MAX = 10, 300
STATES = ("Enabled", "Disabled", "Enabling", "Disabling", "Creating", "Updating")
REPORTS = "ReportBatchItemFailures"


def attributes(ground: Ground, *keys: str) -> dict[str, dict[str, str]]:
    """Return the queues' attributes by output name."""
    sqs = ground.client("sqs")
    return {
        key: sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        for key, url in ground.named(*keys).items()
    }


def lanes(ground: Ground) -> tuple[str, ...]:
    """Return the output names of the queues that carry crawls."""
    return (*WORKERS, *([RENDER] if ground.config.renders else []))


def visibility(ground: Ground) -> Finding:
    """Check that visibility timeouts are at least six times the function's timeout."""
    least = dict.fromkeys(WORKERS, FACTOR * ground.config.worker_timeout_s)
    least[RENDER] = FACTOR * ground.config.renderer_timeout_s
    found = {
        key: number(one.get("VisibilityTimeout"))
        for key, one in attributes(ground, *lanes(ground)).items()
    }
    short = [
        f"{key} hides for less than {least[key]} s" for key, s in found.items() if s < least[key]
    ]
    return judged(short, **found)


def redrive(ground: Ground) -> Finding:
    problems, seen = [], {}
    for key, one in attributes(ground, *lanes(ground), EXPORT).items():
        policy = json.loads(one.get("RedrivePolicy") or "{}")
        seen[key] = number(policy.get("maxReceiveCount", -1))
        if seen[key] != ground.config.receive_max:
            problems.append(f"{key} has no dead-letter queue after the configured deliveries")
    return judged(problems, **seen)


def retention(ground: Ground) -> Finding:
    wanted = dict.fromkeys(lanes(ground), ground.config.queue_retention_d)
    wanted["DeadLetterQueueUrl"] = ground.config.dead_letter_retention_d
    found = {
        key: number(one.get("MessageRetentionPeriod")) // DAY_S
        for key, one in attributes(ground, *wanted).items()
    }
    wrong = [f"{key} keeps for another time" for key, d in found.items() if d != wanted[key]]
    return judged(wrong, **found)


def size(ground: Ground) -> Finding:
    found = {
        key: number(one.get("MaximumMessageSize"))
        for key, one in attributes(ground, *lanes(ground), "DeadLetterQueueUrl").items()
    }
    short = [f"{key} takes less than 1 MiB" for key, taken in found.items() if taken < BYTES_MAX]
    return judged(short, **found)


def sources(ground: Ground) -> Finding:
    """Check that batches, windows, limits and states of event sources are as configured."""
    limits = {"CrawlEventSource": "worker_concurrency_max"}
    if not ground.config.is_frugal:
        limits["ExpressEventSource"] = "express_concurrency_max"
    if ground.config.renders:
        limits["RenderEventSource"] = "renderer_concurrency_max"
    problems: list[str] = []
    seen: dict[str, Any] = {}
    for key, uuid in ground.named(*limits, "SeedEventSource").items():
        found = ground.client("lambda").get_event_source_mapping(UUID=uuid)
        at_once = number(found.get("ScalingConfig", {}).get("MaximumConcurrency", -1))
        batch, window = (
            number(found.get("BatchSize")),
            number(found.get("MaximumBatchingWindowInSeconds", 0)),
        )
        reports = REPORTS in (found.get("FunctionResponseTypes") or ())
        state = word(found.get("State"), *STATES)
        seen[key] = {"at_once": at_once, "batch": batch, "window_s": window, "state": state}
        # Each deployment chooses the limits that are not given.
        lane = limits.get(key, "")
        wanted = getattr(ground.config, lane) if lane in ground.given else at_once
        if at_once != wanted or not CONCURRENCY[0] <= at_once <= CONCURRENCY[1]:
            problems.append(f"{key} has another limit of concurrency")
        if (batch > BATCH_FREE and window < 1) or window > WINDOW_S_MAX:
            problems.append(f"{key} has a batch that Lambda does not take")
        if not reports:
            problems.append(f"{key} takes whole batches back")
        if state != "Enabled" and ground.config.worker_enabled == "yes":
            problems.append(f"{key} is not enabled")
    return judged(problems, **seen)


def idle(ground: Ground) -> Finding:
    """Measure how often Lambda polled an idle queue in the last hour."""
    from datetime import UTC, datetime, timedelta

    now = datetime.now(UTC)
    found = ground.client("cloudwatch").get_metric_statistics(
        Namespace="AWS/SQS",
        MetricName="NumberOfEmptyReceives",
        Dimensions=[{"Name": "QueueName", "Value": f"{ground.config.stack_name}-crawl"}],
        StartTime=now - timedelta(hours=1),
        EndTime=now,
        Period=3600,
        Statistics=["Sum"],
    )["Datapoints"]
    if not found:
        return skipped("CloudWatch has no hour of the queue yet")
    return passed(empty_receives=round(sum(float(one["Sum"]) for one in found)))


DEPLOY = "run `orbweaver deploy`: the stack is not as its configuration says"
CHECKS = (
    Check(
        id="queues.visibility",
        title="messages are hidden for six times a worker's timeout",
        run=visibility,
        assumptions=("A02", "A03"),
        do=DEPLOY,
    ),
    Check(
        id="queues.redrive",
        title="queues have a dead-letter queue",
        run=redrive,
        assumptions=("A09",),
        do=DEPLOY,
    ),
    Check(
        id="queues.retention",
        title="messages are kept for as long as configured",
        run=retention,
        assumptions=("A08",),
        do=DEPLOY,
    ),
    Check(
        id="queues.size",
        title="queues take messages of 1 MiB",
        run=size,
        assumptions=("A05",),
        do=DEPLOY,
    ),
    Check(
        id="sources.settings",
        title="event sources have their batches, limits and partial answers",
        run=sources,
        assumptions=("A14", "A15", "A16"),
        do="run `orbweaver workers status`; on again by `orbweaver workers on`, else deploy",
    ),
    Check(
        id="queues.idle",
        title="how often an idle queue is polled",
        run=idle,
        assumptions=("A19",),
        do="look at docs/cost.md: polls are what an idle stack costs",
        not_on_emulator="it has no metrics of its queues",
    ),
)
