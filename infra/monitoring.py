"""Alarms (watch.py), their topic, and the dashboard: all data for operating a crawl, on one page.

The dashboard shows, from top to bottom: alarms, speed, backlog, outcomes of URLs, load on sites,
internal failures, cost. Three dashboards with up to 50 metrics each are free, and this dashboard
stays below that limit.

Source: docs.aws.amazon.com/sns/latest/dg/sns-key-management.html,
aws.amazon.com/cloudwatch/pricing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Aws, Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as cloudwatch_actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from infra.findings import accept
from infra.watch import (
    ERROR_PERCENT_MAX,
    PERIOD,
    Watch,
    age,
    failed_share,
    invalid_share,
    our_metric,
    visible,
    watches_of,
)
from orbweaver.model.metrics import Metric, Service, field_of
from orbweaver.model.outcome import FAILURES, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from aws_cdk import aws_sqs as sqs

    from infra.config import Config
    from infra.stack import OrbweaverStack
    from infra.worker import Renderer, Worker

SHOWN = Duration.hours(3)
METRICS_FREE_MAX = 50
MINUTE = Duration.minutes(1)
HEADLINE = """\
**{stack}**: `orbweaver status --watch` shows one crawl, `orbweaver report` lists skipped and failed
URLs with reasons, `orbweaver dlq list` lists dead letters. Pause one crawl: `orbweaver pause ID`;
all crawls: `orbweaver workers off`. Each alarm's description names the first command to run.
"""
WIDTH, HEIGHT = 12, 6
COLORS = {
    Outcome.FETCHED: cloudwatch.Color.GREEN,
    Outcome.UNCHANGED: "#98df8a",
    Outcome.REDIRECTED: cloudwatch.Color.BLUE,
    Outcome.SKIPPED: cloudwatch.Color.ORANGE,
    Outcome.FAILED: cloudwatch.Color.RED,
}

Row = list[cloudwatch.IWidget]


class Monitoring(Construct):
    """Alarms, their topic, and the dashboard."""

    def __init__(self, stack: OrbweaverStack, construct_id: str, *, config: Config) -> None:
        super().__init__(stack, construct_id)
        self.topic = self._topic(config)
        self.alarms = [self._alarm(watch) for watch in watches_of(config, stack)]
        if not config.is_frugal:
            cloudwatch.Dashboard(
                self,
                "Dashboard",
                dashboard_name=config.stack_name,
                default_interval=SHOWN,
                widgets=rows_of(stack, self.alarms),
            )

    def _topic(self, config: Config) -> sns.Topic:
        # Messages of the topic contain names and numbers of the stack and no crawled data. So the
        # topic has no key of its own, which would cost $1 a month. `kms_key` also encrypts the
        # topic. With the key that AWS provides for topics, alarms cannot publish.
        topic = sns.Topic(self, "Alarms", enforce_ssl=config.tls_only)
        # This policy replaces the default policy, which allows all alarms of the account to
        # publish.
        topic.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                actions=["sns:Publish"],
                resources=[topic.topic_arn],
                conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}},
            )
        )
        if config.alarm_email:
            mailed = topic.add_subscription(subscriptions.EmailSubscription(config.alarm_email))
            accept(
                mailed,
                "Serverless-SNSRedrivePolicy",
                "If the e-mail of an alarm is lost, CloudWatch still shows the alarm; an unread"
                " queue would not help.",
            )
        return topic

    def _alarm(self, watch: Watch) -> cloudwatch.Alarm:
        operators, missing = cloudwatch.ComparisonOperator, cloudwatch.TreatMissingData
        silence = watch.above is None
        alarm = cloudwatch.Alarm(
            self,
            watch.name,
            metric=watch.metric,
            threshold=1 if watch.above is None else watch.above,
            evaluation_periods=watch.periods,
            comparison_operator=operators.LESS_THAN_THRESHOLD
            if silence
            else operators.GREATER_THAN_THRESHOLD,
            # Missing data means that nothing ran, as in an idle stack. So it raises no alarm,
            # except an alarm about missing data: its state changes to INSUFFICIENT_DATA. A new
            # stack begins in this state, so the state does not change and no alarm is raised.
            treat_missing_data=missing.MISSING if silence else missing.NOT_BREACHING,
            alarm_description=f"{watch.meaning}. Run: {watch.command}",
        )
        action = cloudwatch_actions.SnsAction(self.topic)
        alarm.add_alarm_action(action)
        if silence:
            alarm.add_insufficient_data_action(action)
        return alarm


def rows_of(parts: OrbweaverStack, alarms: Sequence[cloudwatch.IAlarm]) -> list[Row]:
    return [
        [
            cloudwatch.TextWidget(
                markdown=HEADLINE.format(stack=parts.stack_name), width=24, height=2
            )
        ],
        [cloudwatch.AlarmStatusWidget(alarms=[*alarms], title="Alarms", width=24, height=3)],
        [_throughput(parts), _outcomes(parts)],
        [_backlog(parts), _age(parts)],
        [_latency(parts), _failures(parts)],
        [_held_back(parts), _errors(parts)],
        [_dead_letters(parts), _concurrency(parts)],
        [_durations(parts), _trouble(parts)],
        [_cost(parts), _items(parts)],
    ]


def _graph(
    title: str,
    *left: cloudwatch.IMetric,
    right: Sequence[cloudwatch.IMetric] = (),
    unit: str = "",
    other: str = "",
    stacked: bool = False,
    line: float | None = None,
) -> cloudwatch.GraphWidget:
    return cloudwatch.GraphWidget(
        title=title,
        left=[*left],
        right=[*right],
        left_y_axis=cloudwatch.YAxisProps(label=unit, min=0, show_units=False),
        right_y_axis=cloudwatch.YAxisProps(label=other, min=0, show_units=False),
        stacked=stacked,
        left_annotations=[] if line is None else [_line(line)],
        period=MINUTE,
        width=WIDTH,
        height=HEIGHT,
    )


def _line(at: float) -> cloudwatch.HorizontalAnnotation:
    return cloudwatch.HorizontalAnnotation(value=at, color=cloudwatch.Color.RED, label="alarm")


def _sum(
    parts: OrbweaverStack, metric: Metric, label: str, of: Service = Service.WORKER
) -> cloudwatch.Metric:
    return our_metric(parts.stack_name, metric, of=of, period=MINUTE, label=label)


def _math(
    expression: str, label: str, metrics: Mapping[str, cloudwatch.IMetric]
) -> cloudwatch.MathExpression:
    return cloudwatch.MathExpression(
        expression=expression, label=label, using_metrics={**metrics}, period=MINUTE
    )


def _throughput(parts: OrbweaverStack) -> cloudwatch.GraphWidget:
    def per_second(metric: Metric, name: str, label: str) -> cloudwatch.MathExpression:
        return _math(f"{name} / PERIOD({name})", label, {name: _sum(parts, metric, name)})

    return _graph(
        "Throughput",
        per_second(Metric.FETCHED, "pages", "pages fetched"),
        per_second(Metric.URLS_ENDED, "ended", "URLs ended"),
        right=[per_second(Metric.BYTES, "bytes", "bytes")],
        unit="per second",
        other="bytes per second",
    )


def _outcomes(parts: OrbweaverStack) -> cloudwatch.GraphWidget:
    ended = [
        _sum(parts, Metric(outcome), str(outcome)).with_(color=COLORS[outcome])
        for outcome in Outcome
    ]
    return _graph("Outcomes", *ended, unit="URLs per minute", stacked=True)


def _backlog(parts: OrbweaverStack) -> cloudwatch.GraphWidget:
    crawl, express = parts.frontier.crawl, parts.frontier.express
    return _graph(
        "Backlog",
        visible(crawl, "waiting"),
        crawl.metric_approximate_number_of_messages_not_visible(
            label="in flight", period=MINUTE, statistic="Maximum"
        ),
        crawl.metric_approximate_number_of_messages_delayed(
            label="delayed", period=MINUTE, statistic="Maximum"
        ),
        visible(express, "waiting (express)"),
        *_render_metrics(parts, visible),
        unit="messages of up to 25 URLs",
    )


def _age(parts: OrbweaverStack) -> cloudwatch.GraphWidget:
    frontier = parts.frontier
    ages = (age(frontier.crawl, "crawl"), age(frontier.express, "express"))
    others = (age(frontier.seeds, "seeds"), *_render_metrics(parts, age))
    return _graph("Oldest message", *ages, *others, unit="seconds")


def _render_metrics(
    parts: OrbweaverStack, measure: Callable[[sqs.Queue, str], cloudwatch.Metric]
) -> list[cloudwatch.Metric]:
    queue = parts.frontier.render
    return [] if queue is None else [measure(queue, "render")]


def _latency(parts: OrbweaverStack) -> cloudwatch.GraphWidget:
    answers = [
        our_metric(parts.stack_name, Metric.FETCH_MS, statistic, period=MINUTE, label=statistic)
        for statistic in ("p50", "p90", "p99")
    ]
    return _graph("Response time of sites", *answers, unit="ms")


def _failures(parts: OrbweaverStack) -> cloudwatch.LogQueryWidget:
    """Show reasons of failed URLs, which are read from the log.

    Each view costs $0.005 per GB of log.
    """
    sums = ", ".join(f"sum({field_of(reason)}) as {reason}" for reason in FAILURES)
    return cloudwatch.LogQueryWidget(
        title="Failed URLs by reason",
        log_group_names=[one.logs.log_group_name for one in _crawling(parts).values()],
        query_lines=[f"filter ispresent({Metric.FAILED})", f"stats {sums} by bin(5m)"],
        view=cloudwatch.LogQueryVisualizationType.STACKEDAREA,
        width=WIDTH,
        height=HEIGHT,
    )


def _crawling(parts: OrbweaverStack) -> dict[str, Worker | Renderer]:
    """Return the functions that send requests to sites, by label."""
    renderer = {} if parts.renderer is None else {"renderers": parts.renderer}
    return {"workers": parts.worker, **renderer}


def _held_back(parts: OrbweaverStack) -> cloudwatch.GraphWidget:
    return _graph(
        "Held back",
        _sum(parts, Metric.ROBOTS_REFUSED, "forbidden by robots.txt"),
        _sum(parts, Metric.RETRIES, "retries"),
        _sum(parts, Metric.DEFERRALS, "deferred"),
        right=[_sum(parts, Metric.PACKS_PUT_OFF, "packs deferred")],
        unit="URLs per minute",
        other="packs per minute",
    )


def _errors(parts: OrbweaverStack) -> cloudwatch.GraphWidget:
    return _graph(
        "Failed",
        failed_share(parts.stack_name),
        right=[
            _sum(parts, Metric.MESSAGES_FAILED, "failed messages"),
            parts.worker.function.metric_errors(label="failed batches", period=MINUTE),
        ],
        unit="% of URLs",
        other="per minute",
        line=ERROR_PERCENT_MAX,
    )


def _dead_letters(parts: OrbweaverStack) -> cloudwatch.GraphWidget:
    return _graph(
        "Dead letters",
        visible(parts.frontier.dead_letters, "crawls"),
        visible(parts.exporter.dead_letters, "exports"),
        visible(parts.exporter.failures, "exports not started"),
        visible(parts.failed_calls.queue, "schedules and webhooks"),
        right=[_sum(parts, Metric.MESSAGES_BURIED, "sent by workers")],
        unit="messages",
        other="per minute",
    )


def _concurrency(parts: OrbweaverStack) -> cloudwatch.GraphWidget:
    at_once = [
        program.function.metric(
            "ConcurrentExecutions", statistic="Maximum", period=MINUTE, label=name
        )
        for name, program in {**_crawling(parts), "exporters": parts.exporter}.items()
    ]
    throttled = parts.worker.function.metric_throttles(label="throttled", period=MINUTE)
    invoked = parts.worker.function.metric_invocations(label="worker runs", period=MINUTE)
    return _graph(
        "Lambda concurrency",
        *at_once,
        right=[throttled, invoked],
        unit="concurrent",
        other="per minute",
    )


def _durations(parts: OrbweaverStack) -> cloudwatch.GraphWidget:
    durations = [
        parts.worker.function.metric_duration(period=PERIOD, statistic=statistic, label=statistic)
        for statistic in ("p50", "p99", "Maximum")
    ]
    return _graph("Duration of workers", *durations, unit="ms")


def _trouble(parts: OrbweaverStack) -> cloudwatch.GraphWidget:
    return _graph(
        "Exports and API",
        _sum(parts, Metric.EXPORTS_SEALED, "exports finished", Service.EXPORTER),
        parts.exporter.function.metric_errors(label="exporter errors", period=MINUTE),
        parts.api.rest.metric_server_error(label="API errors", period=MINUTE, statistic="Sum"),
        right=[visible(parts.exporter.queue, "waiting export orders")],
    )


def _cost(parts: OrbweaverStack) -> cloudwatch.GraphWidget:
    spent = {
        "crawling": _sum(parts, Metric.COST_DOLLARS, "crawling"),
        "exporting": _sum(parts, Metric.COST_DOLLARS, "exporting", Service.EXPORTER),
    }
    pages = {"pages": _sum(parts, Metric.FETCHED, "pages")}
    return _graph(
        "Cost",
        _math("3600 * crawling / PERIOD(crawling)", "crawling", {"crawling": spent["crawling"]}),
        _math(
            "3600 * exporting / PERIOD(exporting)", "exporting", {"exporting": spent["exporting"]}
        ),
        right=[
            _math(
                "1000000 * crawling / pages",
                "per million pages",
                {**pages, "crawling": spent["crawling"]},
            )
        ],
        unit="$ per hour",
        other="$ per million pages",
    )


def _items(parts: OrbweaverStack) -> cloudwatch.GraphWidget:
    return _graph(
        "Items and yield",
        _sum(parts, Metric.ITEMS_VALID, "valid items"),
        _sum(parts, Metric.ITEMS_INVALID, "invalid items"),
        right=[
            invalid_share(parts.stack_name),
            our_metric(
                parts.stack_name,
                Metric.YIELD_DROP_PERCENT,
                "Maximum",
                period=MINUTE,
                label="fewer pages than the previous run (%)",
            ),
        ],
        unit="per minute",
        other="%",
    )
