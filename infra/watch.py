"""The alarms: metric, threshold, meaning, and the first command to run.

An alarm has one cause and requires an operator to act. Its description is the text of the e-mail.
Ten alarms on one metric each are free; each further metric costs $0.10 a month, idle or not. So ten
alarms are the default, and all others are optional (`alarms`, or deliveries).

Source: aws.amazon.com/cloudwatch/pricing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

from infra.config import DAY_S
from orbweaver.model.metrics import NAMESPACE, SERVICE, STACK, Metric, Service

if TYPE_CHECKING:
    from aws_cdk import aws_sqs as sqs

    from infra.config import Config
    from infra.stack import OrbweaverStack

PERIOD = Duration.minutes(5)
EXPRESS_AGE_S_MAX = 15 * 60
# Share of the timeout that a run may take. Lambda might stop a longer run before its end, and its
# messages would be delivered again.
DURATION_SHARE_MAX = 0.95
# Percentages need at least this many URLs, pages or items. Otherwise a single one would be a large
# percentage.
SHARED_MIN = 20
ERROR_PERCENT_MAX = 10
UNREADABLE_PERCENT_MAX = 1
NEEDS_RENDERING_PERCENT_MAX = 30
INVALID_PERCENT_MAX = 5
# Hours without an export that raise the alarm: a day, and two hours because an export can be late.
EXPORT_MISSING_H = 26
# Percentage by which the number of pages is lower than in the previous run.
YIELD_DROP_PERCENT = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """An alarm. It is raised if `periods` in a row are above the limit `above`.

    If `above` is None, it is raised if `periods` in a row have no data. `command` is the first
    command that an operator runs.
    """

    name: str
    metric: cloudwatch.IMetric
    above: float | None = 0
    periods: int = 1
    meaning: str
    command: str


def our_metric(
    stack: str,
    metric: Metric,
    statistic: str = "Sum",
    *,
    of: Service = Service.WORKER,
    period: Duration = PERIOD,
    label: str | None = None,
) -> cloudwatch.Metric:
    """Return a metric that Orbweaver itself sends to CloudWatch.

    `of` is the function that sends it.
    """
    return cloudwatch.Metric(
        namespace=NAMESPACE,
        metric_name=str(metric),
        dimensions_map={STACK: stack, SERVICE: str(of)},
        statistic=statistic,
        period=period,
        label=label,
    )


def visible(queue: sqs.Queue, label: str | None = None) -> cloudwatch.Metric:
    return queue.metric_approximate_number_of_messages_visible(
        period=Duration.minutes(1), statistic="Maximum", label=label
    )


def age(queue: sqs.Queue, label: str | None = None) -> cloudwatch.Metric:
    return queue.metric_approximate_age_of_oldest_message(
        period=PERIOD, statistic="Maximum", label=label
    )


def failed_share(stack: str) -> cloudwatch.MathExpression:
    named = {"failed": Metric.FAILED, "ended": Metric.URLS_ENDED}
    return _share(stack, "failed", named, of=["ended"])


def unreadable_share(stack: str) -> cloudwatch.MathExpression:
    """Return the percentage of finished URLs whose pages Orbweaver could not read."""
    named = {"unreadable": Metric.PAGES_UNREADABLE, "ended": Metric.URLS_ENDED}
    return _share(stack, "unreadable", named, of=["ended"])


def invalid_share(stack: str) -> cloudwatch.MathExpression:
    found = {"valid": Metric.ITEMS_VALID, "invalid": Metric.ITEMS_INVALID}
    return _share(stack, "invalid", found, of=[*found])


def needing_share(stack: str) -> cloudwatch.MathExpression:
    """Return the percentage of an hour's pages that have no content without their scripts."""
    pages = {"fetched": Metric.FETCHED, "unchanged": Metric.UNCHANGED}
    named = {"needing": Metric.NEEDS_RENDERING, **pages}
    return _share(stack, "needing", named, of=[*pages], period=Duration.hours(1))


def _share(
    stack: str,
    part: str,
    named: dict[str, Metric],
    of: list[str],
    *,
    period: Duration = PERIOD,
) -> cloudwatch.MathExpression:
    whole = " + ".join(f"FILL({name}, 0)" for name in of)
    whole = f"({whole})" if len(of) > 1 else whole
    return cloudwatch.MathExpression(
        expression=f"IF({whole} >= {SHARED_MIN}, 100 * FILL({part}, 0) / {whole}, 0)",
        using_metrics={
            name: our_metric(stack, metric, period=period) for name, metric in named.items()
        },
        period=period,
        label=f"{part} (%)",
    )


def watches(config: Config, parts: OrbweaverStack) -> list[Watch]:
    worker = parts.worker.function
    late_s = config.queue_retention_d * DAY_S // 4
    return [
        # The metric of visible messages is used, because the metric of sent messages does not count
        # a redrive.
        Watch(
            name="DeadLetters",
            metric=visible(parts.frontier.dead_letters),
            meaning="Some messages could not be processed; their attribute `reason` has the cause",
            command="orbweaver dlq list",
        ),
        Watch(
            name="ExportFailures",
            metric=visible(parts.exporter.failures),
            meaning="A day could not be exported; the message contains the date",
            command="aws sqs receive-message --queue-url $ExporterFailuresQueueUrl",
        ),
        Watch(
            name="ExportDeadLetters",
            metric=visible(parts.exporter.dead_letters),
            meaning="Part of a day could not be exported; read the log, then redrive the messages",
            command=_errors_of(config, "exporter"),
        ),
        Watch(
            name="FailedCalls",
            metric=visible(parts.failed_calls.queue),
            meaning="A scheduled crawl did not start, or a webhook failed; the message names it",
            command="aws sqs receive-message --queue-url $FailedCallsQueueUrl",
        ),
        # In a healthy crawl with more hosts than workers, messages become old. The alarm is raised
        # after a quarter of the retention, so three quarters are left to act.
        Watch(
            name="CrawlAge",
            metric=age(parts.frontier.crawl),
            above=late_s,
            periods=3,
            meaning="Messages have waited a quarter of their retention; add workers or stop crawls",
            command=_deploy_command("worker_concurrency_max", config.worker_concurrency_max, 1_000),
        ),
        Watch(
            name="ExpressAge",
            metric=age(parts.frontier.express),
            above=EXPRESS_AGE_S_MAX,
            periods=3,
            meaning="Express messages have waited for 15 minutes; add express workers",
            command=_deploy_command(
                "express_concurrency_max", config.express_concurrency_max, 1_000
            ),
        ),
        Watch(
            name="WorkerErrors",
            metric=worker.metric_errors(period=PERIOD),
            periods=3,
            meaning="Whole batches fail repeatedly; read the worker's log."
            " `orbweaver workers off` stops all workers meanwhile",
            command=_errors_of(config, "worker"),
        ),
        Watch(
            name="WorkerThrottles",
            metric=worker.metric_throttles(period=PERIOD),
            periods=3,
            meaning="The account's Lambda concurrency is used up, so messages are received without"
            " being processed. `orbweaver workers off` stops that meanwhile",
            command="aws lambda get-account-settings --query AccountLimit",
        ),
        Watch(
            name="WorkerDuration",
            metric=worker.metric_duration(period=PERIOD, statistic="Maximum"),
            above=DURATION_SHARE_MAX * config.worker_timeout_s * 1_000,
            periods=3,
            meaning="Workers almost reach their timeout; more memory gives them more CPU",
            command=_deploy_command("worker_memory_mb", config.worker_memory_mb, 10_240),
        ),
        Watch(
            name="ApiErrors",
            metric=parts.api.rest.metric_server_error(period=PERIOD, statistic="Sum"),
            periods=3,
            meaning="The API answers with server errors; read its log",
            command=_errors_of(config, "api"),
        ),
    ]


def watches_paid(config: Config) -> list[Watch]:
    """Return the optional alarms (`alarms=all`): eleven metrics, $1.10 a month."""
    return [
        Watch(
            name="ErrorRate",
            metric=failed_share(config.stack_name),
            above=ERROR_PERCENT_MAX,
            meaning=f"More than {ERROR_PERCENT_MAX} % of URLs failed within five minutes",
            command="orbweaver report",
        ),
        Watch(
            name="Unreadable",
            metric=unreadable_share(config.stack_name),
            above=UNREADABLE_PERCENT_MAX,
            meaning=f"More than {UNREADABLE_PERCENT_MAX} % of URLs ended within five minutes with"
            " an error of Orbweaver; page.unreadable in the worker's log has the traceback",
            command=_logged_of(config, "worker", "page.unreadable"),
        ),
        Watch(
            name="ExportMissing",
            metric=our_metric(
                config.stack_name,
                Metric.EXPORTS_SEALED,
                of=Service.EXPORTER,
                period=Duration.hours(1),
            ),
            above=None,
            periods=EXPORT_MISSING_H,
            meaning=f"No export was finished for {EXPORT_MISSING_H} hours; read the log",
            command=_errors_of(config, "exporter"),
        ),
        Watch(
            name="YieldDrop",
            metric=our_metric(config.stack_name, Metric.YIELD_DROP_PERCENT, "Maximum"),
            above=YIELD_DROP_PERCENT,
            meaning="A run fetched fewer pages than the previous run of its name; the event"
            " crawl.fell_short in the worker's log names it",
            command="orbweaver report",
        ),
        Watch(
            name="NeedsRendering",
            metric=needing_share(config.stack_name),
            above=NEEDS_RENDERING_PERCENT_MAX,
            meaning=f"More than {NEEDS_RENDERING_PERCENT_MAX} % of an hour's pages are empty"
            " without their scripts, so crawls miss their content",
            command="orbweaver report",
        ),
        # The cause is a changed page template, or a wrong rule.
        Watch(
            name="InvalidItems",
            metric=invalid_share(config.stack_name),
            above=INVALID_PERCENT_MAX,
            meaning="Items are invalid; `problems` in the table invalid_items has the causes",
            command="orbweaver query 'SELECT problems FROM invalid_items'",
        ),
    ]


def watches_of_renderer(config: Config, parts: OrbweaverStack) -> list[Watch]:
    """Return the additional alarms of a stack with a renderer, $0.30 a month."""
    renderer, queue = parts.renderer, parts.frontier.render
    if renderer is None or queue is None:
        return []
    return [
        Watch(
            name="RenderAge",
            metric=age(queue),
            above=config.queue_retention_d * DAY_S // 4,
            periods=3,
            meaning="Pages have waited for a browser for a quarter of their retention;"
            " add renderers, or render fewer pages",
            command=_deploy_command(
                "renderer_concurrency_max",
                config.renderer_concurrency_max,
                1_000,
                "-c rendering=yes ",
            ),
        ),
        Watch(
            name="RendererErrors",
            metric=renderer.function.metric_errors(period=PERIOD),
            periods=3,
            meaning="Renderers fail or time out repeatedly; read their log",
            command=_errors_of(config, "renderer"),
        ),
        Watch(
            name="RenderStarts",
            metric=our_metric(config.stack_name, Metric.RENDER_STARTS_FAILED),
            meaning="The browser does not start, and pages are stored without rendering;"
            " page.not_rendered in the renderer's log has the cause",
            command=_logged_of(config, "renderer", "page.not_rendered"),
        ),
    ]


def watches_of(config: Config, stack: OrbweaverStack) -> list[Watch]:
    """Return the alarms of a stack."""
    found = watches(config, stack)
    if config.is_frugal:
        # A frugal stack has only this alarm, because only this alarm shows messages that would be
        # lost.
        found = [watch for watch in found if watch.name == "DeadLetters"]
    if config.alarms == "all" and not config.local:  # emulators have no metric math
        found += [*watches_paid(config), *watches_of_renderer(config, stack)]
    if stack.delivery is not None:
        found.append(
            Watch(
                name="Deliveries",
                metric=visible(stack.delivery.dead_letters),
                meaning="An export could not be delivered; the attribute `reason` has the cause",
                command="aws sqs receive-message --queue-url $DeliveryDeadLetterQueueUrl"
                " --message-attribute-names reason",
            )
        )
    return found


def _errors_of(config: Config, program: str) -> str:
    group = f"/aws/lambda/{config.stack_name}-{program}"
    return f"aws logs filter-log-events --log-group-name {group} --filter-pattern ERROR"


def _logged_of(config: Config, program: str, event: str) -> str:
    group = f"/aws/lambda/{config.stack_name}-{program}"
    return f"aws logs filter-log-events --log-group-name {group} --filter-pattern '\"{event}\"'"


def _deploy_command(key: str, value: int, most: int, needed: str = "") -> str:
    return f"orbweaver deploy {needed}-c {key}={min(2 * value, most)}"
