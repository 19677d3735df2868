"""Alarms, their topic, and what an idle stack costs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from orbweaver.adapters.metrics import NAMESPACE
from tests.infra.template import denies_plain_http, text

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.infra.template import Synthesized

pytestmark = pytest.mark.infra

# metric, dimension, threshold
ALARMS = {
    "DeadLetters": ("ApproximateNumberOfMessagesVisible", "<FrontierDeadLetters.QueueName>", 0),
    "ExportFailures": ("ApproximateNumberOfMessagesVisible", "<ExporterFailures.QueueName>", 0),
    "ExportDeadLetters": (
        "ApproximateNumberOfMessagesVisible",
        "<ExporterDeadLetters.QueueName>",
        0,
    ),
    "FailedCalls": ("ApproximateNumberOfMessagesVisible", "<FailedCallsQueue.QueueName>", 0),
    "CrawlAge": ("ApproximateAgeOfOldestMessage", "<FrontierCrawl.QueueName>", 86_400),
    "ExpressAge": ("ApproximateAgeOfOldestMessage", "<FrontierExpress.QueueName>", 900),
    "WorkerErrors": ("Errors", "<WorkerProgramFunction>", 0),
    "WorkerThrottles": ("Throttles", "<WorkerProgramFunction>", 0),
    "WorkerDuration": ("Duration", "<WorkerProgramFunction>", 57_000),
    "ApiErrors": ("5XXError", "Orbweaver", 0),
}
ALARMS_FREE_MAX = 10
# A key costs $1 a month; the rest are priced by the hour.
PAID_WHILE_IDLE = (
    "AWS::KMS::",
    "AWS::EC2::",
    "AWS::ECS::",
    "AWS::RDS::",
    "AWS::WAFv2::",
    "AWS::SecretsManager::",
    "AWS::Kinesis",
)


def statements(made: Synthesized) -> list[dict[str, Any]]:
    """Return the statements of the topic's policy."""
    policy: dict[str, Any] = made.only("AWS::SNS::TopicPolicy")["PolicyDocument"]
    found: list[dict[str, Any]] = policy["Statement"]
    return found


def test_alarms(aws: Synthesized) -> None:
    """These alarms stand, each on its metric, all of them silent while nothing runs."""
    found = {}
    for name, alarm in aws.properties("AWS::CloudWatch::Alarm").items():
        (dimension,) = alarm["Dimensions"]
        found[name.removeprefix("Monitoring")] = (
            alarm["MetricName"],
            text(dimension["Value"]),
            alarm["Threshold"],
        )
        assert alarm["ComparisonOperator"] == "GreaterThanThreshold"
        assert alarm["TreatMissingData"] == "notBreaching"
        assert [text(action) for action in alarm["AlarmActions"]] == ["<MonitoringAlarms>"]
        assert alarm["AlarmDescription"]
    assert found == ALARMS
    assert len(found) <= ALARMS_FREE_MAX


def test_topic(aws: Synthesized) -> None:
    """Only this account's alarms may publish, and nobody over plain HTTP."""
    assert denies_plain_http(iter(statements(aws)), "sns:Publish")
    (allowed,) = (found for found in statements(aws) if found["Effect"] == "Allow")
    assert allowed["Action"] == "sns:Publish"
    assert allowed["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    (condition,) = allowed["Condition"]["StringEquals"].items()
    assert (condition[0], text(condition[1])) == ("aws:SourceAccount", "<AWS::AccountId>")


def test_topic_key(synthesize: Callable[..., Synthesized]) -> None:
    """With a key of its own the topic is encrypted, the key rotates, and alarms may use it."""
    made = synthesize(alarm_key="yes", alarm_email="someone@example.org")
    assert text(made.only("AWS::SNS::Topic")["KmsMasterKeyId"]) == "<MonitoringKey.Arn>"
    key = made.only("AWS::KMS::Key")
    assert key["EnableKeyRotation"] is True
    used = [
        statement["Action"]
        for statement in key["KeyPolicy"]["Statement"]
        if statement["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    ]
    assert used == [["kms:Decrypt", "kms:GenerateDataKey*"]]
    subscription = made.only("AWS::SNS::Subscription")
    assert (subscription["Protocol"], subscription["Endpoint"]) == ("email", "someone@example.org")


def test_idle_costs_nothing(aws: Synthesized) -> None:
    """Nothing in the stack is paid for by the hour or by the month."""
    kinds = {resource["Type"] for resource in aws.template["Resources"].values()}
    assert not {kind for kind in kinds if kind.startswith(PAID_WHILE_IDLE)}


def test_dashboard(aws: Synthesized) -> None:
    """The dashboard shows the queues, the functions, and all of the functions' own metrics."""
    body = json.loads(text(aws.only("AWS::CloudWatch::Dashboard")["DashboardBody"]))
    shown = json.dumps([widget["properties"]["metrics"] for widget in body["widgets"]])
    assert f'Namespace=\\"{NAMESPACE}\\"' in shown
    assert "<FrontierDeadLetters.QueueName>" in shown
    assert "<WorkerProgramFunction>" in shown


def test_invalid_items(synthesize: Callable[..., Synthesized]) -> None:
    """Where a share is given, more invalid items of 20 or more raise one alarm more."""
    made = synthesize(invalid_items_percent="5")
    alarms = made.properties("AWS::CloudWatch::Alarm")
    assert len(alarms) == len(ALARMS) + 1
    alarm = alarms["MonitoringInvalidItems"]
    assert (alarm["Threshold"], alarm["TreatMissingData"]) == (5, "notBreaching")
    *metrics, share = sorted(alarm["Metrics"], key=lambda one: "Expression" in one)
    found = "(FILL(valid, 0) + FILL(invalid, 0))"
    assert share["Expression"] == f"IF({found} >= 20, 100 * FILL(invalid, 0) / {found}, 0)"
    assert {
        (one["Id"], stat["Metric"]["Namespace"], stat["Metric"]["MetricName"], stat["Stat"])
        for one in metrics
        for stat in (one["MetricStat"],)
    } == {("valid", NAMESPACE, "ItemsValid", "Sum"), ("invalid", NAMESPACE, "ItemsInvalid", "Sum")}
    assert {
        (dimension["Name"], dimension["Value"])
        for one in metrics
        for dimension in one["MetricStat"]["Metric"]["Dimensions"]
    } == {("service", "worker")}
