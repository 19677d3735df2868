"""Alarms (watch.py), their topic, and the dashboard (dashboard.py).

Source: docs.aws.amazon.com/sns/latest/dg/sns-key-management.html.
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

from infra.dashboard import rows_of
from infra.findings import accept
from infra.watch import (
    Watch,
    watches,
    watches_of_deliveries,
    watches_of_renderer,
    watches_paid,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aws_cdk import aws_sqs as sqs

    from infra.config import Config
    from infra.watch import Parts


SHOWN = Duration.hours(3)
# The only alarm of a frugal stack, because nothing else shows its cause.
FRUGAL = ("DeadLetters",)


class Monitoring(Construct):
    """Alarms, their topic, and the dashboard."""

    def __init__(
        self, scope: Construct, construct_id: str, *, config: Config, parts: Parts
    ) -> None:
        super().__init__(scope, construct_id)
        self._name, self._thrifty = config.stack_name, config.is_frugal
        self._parts = parts
        self.topic = self._topic(config)
        self.alarms: list[cloudwatch.Alarm] = []
        watched = watches(config, self._parts)
        self._raise([one for one in watched if one.name in FRUGAL] if config.is_frugal else watched)
        if config.alarms == "all" and not config.local:  # emulators have no metric math
            self._raise(watches_paid(config))
            self._raise(watches_of_renderer(config, self._parts))

    def watch_deliveries(self, dead_letters: sqs.Queue) -> None:
        self._raise(watches_of_deliveries(dead_letters))

    def show(self) -> None:
        """Add the dashboard, after all alarms. A frugal stack has no dashboard."""
        if self._thrifty:
            return
        cloudwatch.Dashboard(
            self,
            "Dashboard",
            dashboard_name=self._name,
            default_interval=SHOWN,
            widgets=rows_of(self._parts, self.alarms),
        )

    def _topic(self, config: Config) -> sns.Topic:
        # The topic contains names and numbers of the stack, no crawled data, so it has no own key,
        # which costs $1 a month. `kms_key` also encrypts the topic. With AWS's key for topics,
        # alarms cannot publish.
        topic = sns.Topic(self, "Alarms", enforce_ssl=config.tls_only)
        # An explicit policy replaces the default, which lets the account's alarms publish.
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

    def _raise(self, watched: Sequence[Watch]) -> None:
        self.alarms += [self._alarm(watch) for watch in watched]

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
            # Missing data means that nothing ran, as in an idle stack. Only an alarm about silence
            # treats it as a problem. A new stack starts without data and raises no alarm.
            treat_missing_data=missing.MISSING if silence else missing.NOT_BREACHING,
            alarm_description=f"{watch.meaning}. Run: {watch.command}",
        )
        action = cloudwatch_actions.SnsAction(self.topic)
        alarm.add_alarm_action(action)
        if silence:
            alarm.add_insufficient_data_action(action)
        return alarm
