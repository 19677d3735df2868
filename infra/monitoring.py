"""Alarms (watch.py), their topic, and the dashboard: all data for operating a crawl, on one page.

The dashboard shows, from top to bottom: alarms, speed, backlog, outcomes of URLs, load on sites,
internal failures, cost. Three dashboards with up to 50 metrics each are free, and this dashboard
stays below that limit.

Source: docs.aws.amazon.com/sns/latest/dg/sns-key-management.html,
aws.amazon.com/cloudwatch/pricing.
"""

from __future__ import annotations

from functools import partial
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
    from collections.abc import Sequence

    from infra.config import Config
    from infra.stack import OrbweaverStack
    from infra.worker import Renderer, Worker

SHOWN = Duration.hours(3)
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
    headline = HEADLINE.format(stack=parts.stack_name)
    groups = (speed_graphs, site_graphs, failure_graphs, cost_graphs)
    graphs = [graph for group in groups for graph in group(parts)]
    return [
        [cloudwatch.TextWidget(markdown=headline, width=24, height=2)],
        [cloudwatch.AlarmStatusWidget(alarms=[*alarms], title="Alarms", width=24, height=3)],
        *([left, right] for left, right in zip(graphs[::2], graphs[1::2], strict=True)),
    ]


def speed_graphs(parts: OrbweaverStack) -> list[cloudwatch.IWidget]:
    frontier = parts.frontier
    crawl, express = frontier.crawl, frontier.express
    rendering = [] if frontier.render is None else [frontier.render]
    ours = partial(our_metric, parts.stack_name, period=MINUTE)

    def per_second(metric: Metric, name: str, label: str) -> cloudwatch.MathExpression:
        return _math(f"{name} / PERIOD({name})", label, **{name: ours(metric, label=name)})

    return [
        _graph(
            "Throughput",
            per_second(Metric.FETCHED, "pages", "pages fetched"),
            per_second(Metric.URLS_ENDED, "ended", "URLs ended"),
            right=[per_second(Metric.BYTES, "bytes", "bytes")],
            unit="per second",
            other="bytes per second",
        ),
        _graph(
            "Outcomes",
            *(
                ours(Metric(outcome), label=str(outcome)).with_(color=COLORS[outcome])
                for outcome in Outcome
            ),
            unit="URLs per minute",
            stacked=True,
        ),
        _graph(
            "Backlog",
            visible(crawl, "waiting"),
            crawl.metric_approximate_number_of_messages_not_visible(
                label="in flight", period=MINUTE, statistic="Maximum"
            ),
            crawl.metric_approximate_number_of_messages_delayed(
                label="delayed", period=MINUTE, statistic="Maximum"
            ),
            visible(express, "waiting (express)"),
            *(visible(queue, "render") for queue in rendering),
            unit="messages of up to 25 URLs",
        ),
        _graph(
            "Oldest message",
            age(crawl, "crawl"),
            age(express, "express"),
            age(frontier.seeds, "seeds"),
            *(age(queue, "render") for queue in rendering),
            unit="seconds",
        ),
    ]


def site_graphs(parts: OrbweaverStack) -> list[cloudwatch.IWidget]:
    ours = partial(our_metric, parts.stack_name, period=MINUTE)
    sums = ", ".join(f"sum({field_of(reason)}) as {reason}" for reason in FAILURES)
    return [
        _graph(
            "Response time of sites",
            *(ours(Metric.FETCH_MS, share, label=share) for share in ("p50", "p90", "p99")),
            unit="ms",
        ),
        # The reasons of failed URLs are read from the log. Each view costs $0.005 per GB of log.
        cloudwatch.LogQueryWidget(
            title="Failed URLs by reason",
            log_group_names=[one.logs.log_group_name for one in _crawling(parts).values()],
            query_lines=[f"filter ispresent({Metric.FAILED})", f"stats {sums} by bin(5m)"],
            view=cloudwatch.LogQueryVisualizationType.STACKEDAREA,
            width=WIDTH,
            height=HEIGHT,
        ),
        _graph(
            "Held back",
            ours(Metric.ROBOTS_REFUSED, label="forbidden by robots.txt"),
            ours(Metric.RETRIES, label="retries"),
            ours(Metric.DEFERRALS, label="deferred"),
            ours(Metric.LOGINS_FAILED, label="failed logins"),
            right=[ours(Metric.PACKS_PUT_OFF, label="packs deferred")],
            unit="per minute",
            other="packs per minute",
        ),
    ]


def failure_graphs(parts: OrbweaverStack) -> list[cloudwatch.IWidget]:
    exporter, worker = parts.exporter, parts.worker.function
    ours = partial(our_metric, parts.stack_name, period=MINUTE)
    return [
        _graph(
            "Failed",
            failed_share(parts.stack_name),
            right=[
                ours(Metric.MESSAGES_FAILED, label="failed messages"),
                worker.metric_errors(label="failed batches", period=MINUTE),
            ],
            unit="% of URLs",
            other="per minute",
            line=ERROR_PERCENT_MAX,
        ),
        _graph(
            "Dead letters",
            visible(parts.frontier.dead_letters, "crawls"),
            visible(exporter.dead_letters, "exports"),
            visible(exporter.failures, "exports not started"),
            visible(parts.failed_calls.queue, "schedules and webhooks"),
            right=[ours(Metric.MESSAGES_BURIED, label="sent by workers")],
            unit="messages",
            other="per minute",
        ),
        _graph(
            "Lambda concurrency",
            *(
                program.function.metric(
                    "ConcurrentExecutions", statistic="Maximum", period=MINUTE, label=name
                )
                for name, program in {**_crawling(parts), "exporters": exporter}.items()
            ),
            right=[
                worker.metric_throttles(label="throttled", period=MINUTE),
                worker.metric_invocations(label="worker runs", period=MINUTE),
            ],
            unit="concurrent",
            other="per minute",
        ),
    ]


def cost_graphs(parts: OrbweaverStack) -> list[cloudwatch.IWidget]:
    exporter, worker_ms = (
        parts.exporter,
        partial(parts.worker.function.metric_duration, period=PERIOD),
    )
    ours = partial(our_metric, parts.stack_name, period=MINUTE)
    spent = ours(Metric.COST_DOLLARS, label="crawling")
    spent_exporting = ours(Metric.COST_DOLLARS, of=Service.EXPORTER, label="exporting")
    return [
        _graph(
            "Duration of workers",
            *(worker_ms(statistic=share, label=share) for share in ("p99", "Maximum")),
            unit="ms",
        ),
        _graph(
            "Exports and API",
            ours(Metric.EXPORTS_SEALED, of=Service.EXPORTER, label="exports finished"),
            exporter.function.metric_errors(label="exporter errors", period=MINUTE),
            parts.api.rest.metric_server_error(label="API errors", period=MINUTE, statistic="Sum"),
            right=[visible(exporter.queue, "waiting export orders")],
        ),
        _graph(
            "Cost",
            _math("3600 * crawling / PERIOD(crawling)", "crawling", crawling=spent),
            _math("3600 * exporting / PERIOD(exporting)", "exporting", exporting=spent_exporting),
            right=[
                _math(
                    "1000000 * crawling / pages",
                    "per million pages",
                    pages=ours(Metric.FETCHED, label="pages"),
                    crawling=spent,
                )
            ],
            unit="$ per hour",
            other="$ per million pages",
        ),
        _graph(
            "Items and yield",
            ours(Metric.ITEMS_VALID, label="valid items"),
            ours(Metric.ITEMS_INVALID, label="invalid items"),
            right=[
                invalid_share(parts.stack_name),
                ours(
                    Metric.YIELD_DROP_PERCENT,
                    "Maximum",
                    label="fewer pages than the previous run (%)",
                ),
            ],
            unit="per minute",
            other="%",
        ),
    ]


def _crawling(parts: OrbweaverStack) -> dict[str, Worker | Renderer]:
    """Return the functions that send requests to sites, by label."""
    renderer = {} if parts.renderer is None else {"renderers": parts.renderer}
    return {"workers": parts.worker, **renderer}


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


def _math(expression: str, label: str, **metrics: cloudwatch.IMetric) -> cloudwatch.MathExpression:
    return cloudwatch.MathExpression(
        expression=expression, label=label, using_metrics=metrics, period=MINUTE
    )
