"""Alarms, the topic they go to, and a dashboard.

Rules
- An alarm means that someone must act, and stands for one cause; ten alarms are free of charge.
- Dead letters are counted by what is visible: the metric of sent messages misses a redrive.
- Messages grow old in a healthy crawl that is bigger than its concurrency. They are late when a
  quarter of their retention is over, which leaves three to act; express ones after minutes.
- The topic holds names and numbers of this stack, no crawled data. A key of its own costs $1 a
  month, which an idle stack must not; `alarm_key` adds one, where there is no `kms_key`. AWS's own
  key for topics is none of the choices: alarms cannot publish with it.

Source: docs.aws.amazon.com/sns/latest/dg/sns-key-management.html.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Aws, Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as cloudwatch_actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from infra.config import DAY_S
from infra.findings import accept
from infra.watch import NAMESPACE, PERIOD, Watch, watch_of_items

if TYPE_CHECKING:
    from aws_cdk import aws_sqs as sqs

    from infra.api import Api
    from infra.config import Config
    from infra.exporter import Exporter
    from infra.failures import FailedCalls
    from infra.frontier import Frontier
    from infra.worker import Worker

EXPRESS_AGE_S_MAX = 15 * 60
# Of the timeout: what takes longer is about to be cut off and delivered again.
DURATION_SHARE_MAX = 0.95


class Monitoring(Construct):
    """Who watches."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        config: Config,
        frontier: Frontier,
        worker: Worker,
        exporter: Exporter,
        api: Api,
        failed_calls: FailedCalls,
    ) -> None:
        super().__init__(scope, construct_id)
        self.topic = self._topic(config)
        watched = watches(config, frontier, worker, exporter, api, failed_calls)
        self.alarms = [self._alarm(watch) for watch in watched]
        self._dashboard(config, frontier, worker, exporter)

    def watch_deliveries(self, dead_letters: sqs.Queue) -> None:
        """Raise an alarm for what could not be delivered: one more than are free of charge."""
        self.alarms += [self._alarm(watch) for watch in watches_of_deliveries(dead_letters)]

    def watch_items(self, percent: int) -> None:
        """Raise an alarm for what does not fit: two metrics more than are free of charge."""
        self.alarms.append(self._alarm(watch_of_items(percent)))

    def _topic(self, config: Config) -> sns.Topic:
        key = None
        if config.alarm_key == "yes" and not config.kms_key:
            key = kms.Key(self, "Key", enable_key_rotation=True)
            key.add_to_resource_policy(_alarms_may(["kms:Decrypt", "kms:GenerateDataKey*"], "*"))
        topic = sns.Topic(self, "Alarms", enforce_ssl=config.tls_only, master_key=key)
        # A topic with a policy loses the default one, by which the account's alarms may publish.
        topic.add_to_resource_policy(_alarms_may(["sns:Publish"], topic.topic_arn))
        if config.alarm_email:
            mailed = topic.add_subscription(subscriptions.EmailSubscription(config.alarm_email))
            accept(
                mailed,
                "Serverless-SNSRedrivePolicy",
                "An alarm whose mail is lost still stands in CloudWatch; a queue nobody reads"
                " would add nothing.",
            )
        return topic

    def _alarm(self, watch: Watch) -> cloudwatch.Alarm:
        alarm = cloudwatch.Alarm(
            self,
            watch.name,
            metric=watch.metric,
            threshold=watch.above,
            evaluation_periods=watch.periods,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
            # No data: nothing ran, which is what an idle stack does.
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
            alarm_description=watch.meaning,
        )
        alarm.add_alarm_action(cloudwatch_actions.SnsAction(self.topic))
        return alarm

    def _dashboard(
        self, config: Config, frontier: Frontier, worker: Worker, exporter: Exporter
    ) -> None:
        def graph(title: str, *metrics: cloudwatch.IMetric) -> cloudwatch.GraphWidget:
            return cloudwatch.GraphWidget(title=title, left=[*metrics], width=12, height=6)

        waiting = [
            queue.metric_approximate_number_of_messages_visible(label=label)
            for label, queue in (
                ("crawl", frontier.crawl),
                ("express", frontier.express),
                ("dead letters", frontier.dead_letters),
                ("exports", exporter.queue),
            )
        ]
        later = frontier.crawl.metric_approximate_number_of_messages_delayed(label="delayed")
        function = worker.function
        crawled = cloudwatch.MathExpression(
            expression=f"SEARCH('Namespace=\"{NAMESPACE}\"', 'Sum', 300)",
            using_metrics={},
            label="",
            period=PERIOD,
        )
        cloudwatch.Dashboard(
            self,
            "Dashboard",
            dashboard_name=config.stack_name,
            widgets=[
                [graph("Crawled", crawled), graph("Waiting", *waiting, later)],
                [
                    graph("Worker runs", function.metric_invocations(), function.metric_errors()),
                    graph("Worker duration", *_durations(worker)),
                ],
                [
                    graph("Oldest message", _age(frontier.crawl), _age(frontier.express)),
                    graph(
                        "Exporter runs",
                        exporter.function.metric_invocations(),
                        exporter.function.metric_errors(),
                    ),
                ],
            ],
        )


def watches(
    config: Config,
    frontier: Frontier,
    worker: Worker,
    exporter: Exporter,
    api: Api,
    failed_calls: FailedCalls,
) -> list[Watch]:
    """List the alarms: what is watched, where the line is, and what it means to a person."""
    _, slowest = _durations(worker)
    late_s = config.queue_retention_d * DAY_S // 4
    timeout_ms = config.worker_timeout_s * 1_000
    return [
        Watch(
            name="DeadLetters",
            metric=_visible(frontier.dead_letters),
            above=0,
            periods=1,
            meaning="Messages could not be processed: their attribute `reason` says why",
        ),
        Watch(
            name="ExportFailures",
            metric=_visible(exporter.failures),
            above=0,
            periods=1,
            meaning="A day could not be exported: the message names it",
        ),
        Watch(
            name="ExportDeadLetters",
            metric=_visible(exporter.dead_letters),
            above=0,
            periods=1,
            meaning="A part of a day could not be exported: see the log, then move messages back",
        ),
        Watch(
            name="FailedCalls",
            metric=_visible(failed_calls.queue),
            above=0,
            periods=1,
            meaning="A crawl did not recur, or a webhook was not told: the message says which",
        ),
        Watch(
            name="CrawlAge",
            metric=_age(frontier.crawl),
            above=late_s,
            periods=3,
            meaning="Messages wait for a quarter of their retention: raise worker_concurrency_max",
        ),
        Watch(
            name="ExpressAge",
            metric=_age(frontier.express),
            above=EXPRESS_AGE_S_MAX,
            periods=3,
            meaning="Urgent messages wait: raise express_concurrency_max",
        ),
        Watch(
            name="WorkerErrors",
            metric=worker.function.metric_errors(period=PERIOD),
            above=0,
            periods=3,
            meaning="Whole batches fail, over and over: see the worker's log",
        ),
        Watch(
            name="WorkerThrottles",
            metric=worker.function.metric_throttles(period=PERIOD),
            above=0,
            periods=3,
            meaning="The account's concurrency is used up: deliveries count and nothing is done",
        ),
        Watch(
            name="WorkerDuration",
            metric=slowest,
            above=DURATION_SHARE_MAX * timeout_ms,
            periods=3,
            meaning="Workers are about to be cut off: raise worker_timeout_s or lower batch_size",
        ),
        Watch(
            name="ApiErrors",
            metric=api.rest.metric_server_error(period=PERIOD, statistic="Sum"),
            above=0,
            periods=3,
            meaning="The API fails for reasons of its own: see its log",
        ),
    ]


def watches_of_deliveries(dead_letters: sqs.Queue) -> list[Watch]:
    """List the alarm of a stack that delivers."""
    return [
        Watch(
            name="Deliveries",
            metric=_visible(dead_letters),
            above=0,
            periods=1,
            meaning="An export could not be delivered: the message's attribute `reason` says why",
        )
    ]


def _alarms_may(actions: list[str], resource: str) -> iam.PolicyStatement:
    """Let CloudWatch act for this account; in a key's own policy `*` is that key."""
    return iam.PolicyStatement(
        principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
        actions=actions,
        resources=[resource],
        conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}},
    )


def _visible(queue: sqs.Queue) -> cloudwatch.Metric:
    return queue.metric_approximate_number_of_messages_visible(
        period=Duration.minutes(1), statistic="Maximum"
    )


def _age(queue: sqs.Queue) -> cloudwatch.Metric:
    return queue.metric_approximate_age_of_oldest_message(period=PERIOD, statistic="Maximum")


def _durations(worker: Worker) -> list[cloudwatch.Metric]:
    return [
        worker.function.metric_duration(period=PERIOD, statistic=statistic)
        for statistic in ("p50", "Maximum")
    ]
