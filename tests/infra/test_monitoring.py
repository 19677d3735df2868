"""Alarms, their topic, and the cost of an idle stack."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from orbweaver.cli.arguments import parse
from orbweaver.model.metrics import DIMENSIONS, NAMESPACE, SERVICE, STACK, field_of
from orbweaver.model.outcome import FAILURES
from tests.infra.template import denies_plain_http, text
from tests.unit.emission import crawl_everything, export_a_day, functions

if TYPE_CHECKING:
    from tests.infra.template import Synthesize, Synthesized

pytestmark = pytest.mark.infra

# Metric, dimension, threshold.
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
    "WorkerDuration": ("Duration", "<WorkerProgramFunction>", 114_000),
    "ApiErrors": ("5XXError", "Orbweaver", 0),
}
ALARMS_FREE_MAX = 10
# Settings, and the paid metrics of each.
PAID = {
    "ErrorRate": 2,
    "Unreadable": 2,
    "ExportMissing": 1,
    "YieldDrop": 1,
    "NeedsRendering": 3,
    "InvalidItems": 2,
}
# A key costs $1 a month. The rest are priced by the hour.
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
    policy: dict[str, Any] = made.only("AWS::SNS::TopicPolicy")["PolicyDocument"]
    found: list[dict[str, Any]] = policy["Statement"]
    return found


def dashboard(made: Synthesized) -> list[dict[str, Any]]:
    body: dict[str, Any] = json.loads(
        text(made.only("AWS::CloudWatch::Dashboard")["DashboardBody"])
    )
    widgets: list[dict[str, Any]] = body["widgets"]
    return widgets


def test_alarms_are_silent_while_idle(aws: Synthesized) -> None:
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


def test_topic_accepts_own_alarms_over_tls_only(aws: Synthesized) -> None:
    assert denies_plain_http(iter(statements(aws)), "sns:Publish")
    (allowed,) = (found for found in statements(aws) if found["Effect"] == "Allow")
    assert allowed["Action"] == "sns:Publish"
    assert allowed["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    (condition,) = allowed["Condition"]["StringEquals"].items()
    assert (condition[0], text(condition[1])) == ("aws:SourceAccount", "<AWS::AccountId>")


def test_alarms_are_mailed(synthesize: Synthesize) -> None:
    made = synthesize(alarm_email="someone@example.org")
    subscription = made.only("AWS::SNS::Subscription")
    assert (subscription["Protocol"], subscription["Endpoint"]) == ("email", "someone@example.org")


def test_idle_stack_costs_nothing(aws: Synthesized) -> None:
    kinds = {resource["Type"] for resource in aws.template["Resources"].values()}
    assert not {kind for kind in kinds if kind.startswith(PAID_WHILE_IDLE)}


def texts(made: Synthesized) -> dict[str, str]:
    found = made.properties("AWS::CloudWatch::Alarm").items()
    return {
        name.removeprefix("Monitoring"): text(alarm["AlarmDescription"]) for name, alarm in found
    }


def test_alarm_descriptions_name_command(synthesize: Synthesize) -> None:
    guide = (Path(__file__).parents[2] / "docs/operations.md").read_text()
    made = synthesize(alarms="all", copy_bucket="their-exports")
    said = texts(made)
    assert said.keys() == ALARMS.keys() | PAID.keys() | {"Deliveries"}
    for name, description in said.items():
        meaning, _, command = description.partition(". Run: ")
        assert meaning, name
        first, *rest = shlex.split(command)
        assert first in ("orbweaver", "aws"), name
        if first == "orbweaver":
            assert parse(rest).command
        row = next(line for line in guide.splitlines() if line.startswith(f"| `{name}` |"))
        assert f"`{command}`" in row, name


def test_paid_alarms_are_optional(synthesize: Synthesize) -> None:
    made = synthesize(alarms="all", worker_concurrency_max="600")
    found = made.properties("AWS::CloudWatch::Alarm")
    late = text(found["MonitoringCrawlAge"]["AlarmDescription"])
    assert "worker_concurrency_max=1000" in late
    paid = {
        name.removeprefix("Monitoring"): alarm
        for name, alarm in found.items()
        if name.removeprefix("Monitoring") not in ALARMS
    }
    assert paid.keys() == PAID.keys()
    assert sum(PAID.values()) == 11
    for name, alarm in paid.items():
        stats = [one for one in alarm.get("Metrics", []) if "MetricStat" in one]
        assert (len(stats) or 1) == PAID[name]
        assert [text(action) for action in alarm["AlarmActions"]] == ["<MonitoringAlarms>"]
    pages = "(FILL(fetched, 0) + FILL(unchanged, 0))"
    for name, threshold, share, period_s in (
        ("ErrorRate", 10, "FILL(failed, 0) / FILL(ended, 0)", 300),
        ("NeedsRendering", 30, f"FILL(needing, 0) / {pages}", 3600),
    ):
        alarm = paid[name]
        assert (alarm["Threshold"], alarm["EvaluationPeriods"]) == (threshold, 1)
        (found_share,) = (one["Expression"] for one in alarm["Metrics"] if "Expression" in one)
        whole = share.partition(" / ")[2]
        assert found_share == f"IF({whole} >= 20, 100 * {share}, 0)"
        stats = [one["MetricStat"] for one in alarm["Metrics"] if "MetricStat" in one]
        assert {stat["Period"] for stat in stats} == {period_s}
        if name == "NeedsRendering":
            names = {stat["Metric"]["MetricName"] for stat in stats}
            assert names == {name, "fetched", "unchanged"}
    drop = paid["YieldDrop"]
    assert (drop["MetricName"], drop["Statistic"], drop["Threshold"]) == (
        "YieldDropPercent",
        "Maximum",
        30,
    )
    local = synthesize(target="local", alarms="all").properties("AWS::CloudWatch::Alarm")
    assert len(local) == len(ALARMS)


def test_missing_export_raises_alarm_after_first_export(synthesize: Synthesize) -> None:
    made = synthesize(alarms="all")
    alarm = made.properties("AWS::CloudWatch::Alarm")["MonitoringExportMissing"]
    assert (alarm["MetricName"], alarm["Dimensions"]) == (
        "ExportsSealed",
        [{"Name": "service", "Value": "exporter"}, {"Name": "stack", "Value": "Orbweaver"}],
    )
    assert (alarm["Period"], alarm["EvaluationPeriods"]) == (3600, 26)
    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("LessThanThreshold", 1)
    assert alarm["TreatMissingData"] == "missing"
    for actions in (alarm["AlarmActions"], alarm["InsufficientDataActions"]):
        assert [text(action) for action in actions] == ["<MonitoringAlarms>"]


PANELS = [
    *("Throughput", "Outcomes", "Backlog", "Oldest message", "Response time of sites"),
    *("Failed URLs by reason", "Held back", "Failed", "Dead letters", "Lambda concurrency"),
    *("Duration of workers", "Exports and API", "Cost", "Items and yield"),
]


# A dashboard with up to 50 metrics is free: aws.amazon.com/cloudwatch/pricing.
METRICS_FREE_MAX = 50


def test_dashboard_shows_all_operations_free_of_charge(aws: Synthesized) -> None:
    body = dashboard(aws)
    assert [widget["properties"]["title"] for widget in body if widget["type"] != "text"] == [
        "Alarms",
        *PANELS,
    ]
    (alarms,) = (widget["properties"]["alarms"] for widget in body if widget["type"] == "alarm")
    assert len(alarms) == len(ALARMS)
    graphs = [widget["properties"] for widget in body if widget["type"] == "metric"]
    lines = {graph["title"]: graph.get("annotations", {}).get("horizontal") for graph in graphs}
    assert [line["value"] for line in lines.pop("Failed")] == [10]
    assert not any(lines.values())
    shown = json.dumps([graph["metrics"] for graph in graphs])
    for part in ("FrontierDeadLetters.QueueName", "FrontierCrawl.QueueName"):
        assert f"<{part}>" in shown
    for part in ("Worker", "Exporter"):
        assert f"<{part}ProgramFunction>" in shown
    metrics = [line for graph in graphs for line in graph["metrics"] if len(line) > 1]
    assert len(metrics) <= METRICS_FREE_MAX
    # No widget overlaps another or exceeds the grid.
    places = [(one["x"], one["y"], one["width"], one["height"]) for one in body]
    taken = [
        (x, y)
        for left, top, width, height in places
        for x in range(left, left + width)
        for y in range(top, top + height)
    ]
    assert len(taken) == len({*taken})
    assert max(x for x, _ in taken) < 24


def test_delivery_alarms_are_on_dashboard(synthesize: Synthesize) -> None:
    body = dashboard(synthesize(copy_bucket="their-exports"))
    (alarms,) = (widget["properties"]["alarms"] for widget in body if widget["type"] == "alarm")
    assert any("Deliveries" in alarm for alarm in alarms)


def test_invalid_items_alarm_needs_share_and_20_items(synthesize: Synthesize) -> None:
    made = synthesize(alarms="all")
    alarms = made.properties("AWS::CloudWatch::Alarm")
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
    } == {("stack", "Orbweaver"), ("service", "worker")}


def own_metrics(made: Synthesized) -> list[tuple[str, dict[str, str]]]:
    """Return the product's own metrics in alarms and graphs, with their dimensions."""
    found = []
    for alarm in made.properties("AWS::CloudWatch::Alarm").values():
        stats = [
            one["MetricStat"]["Metric"] for one in alarm.get("Metrics", []) if "MetricStat" in one
        ]
        found += [
            (metric["MetricName"], {one["Name"]: one["Value"] for one in metric["Dimensions"]})
            for metric in stats or [alarm]
            if metric["Namespace"] == NAMESPACE
        ]
    for widget in dashboard(made):
        for line in widget["properties"].get("metrics", ()):
            if line[0] == NAMESPACE:
                found.append((line[1], dict(zip(line[2:6:2], line[3:6:2], strict=True))))
    return found


def test_two_stacks_share_no_metrics_or_rules(synthesize: Synthesize) -> None:
    rules = []
    for name in ("Orbweaver", "Second"):
        made = synthesize(stack_name=name, alarms="all", webhook_secret="generate")
        metrics = own_metrics(made)
        assert len(metrics) > 15
        assert {dimensions[STACK] for _, dimensions in metrics} == {name}
        for function in made.functions().values():
            assert function["Environment"]["Variables"]["ORBWEAVER_STACK"] == name
        rules.append(made.properties("AWS::Events::Rule")["NotifierRule"]["EventPattern"])
    assert [rule["detail"] for rule in rules] == [
        {"stack": ["Orbweaver"], "webhook": [True]},
        {"stack": ["Second"], "webhook": [True]},
    ]


def test_named_metrics_are_emitted_by_code(
    synthesize: Synthesize, monkeypatch: pytest.MonkeyPatch
) -> None:
    with functions(monkeypatch) as (function, container):
        crawl_everything(function, container)
        export_a_day(function, container)
    emitted = function.metrics
    made = synthesize(alarms="all", copy_bucket="their-exports")
    named = own_metrics(made)
    assert len(named) > 15
    for metric, dimensions in named:
        assert dimensions.keys() == {*DIMENSIONS}
        assert metric in emitted[dimensions[SERVICE]], (dimensions, metric)
    (query,) = (one["properties"]["query"] for one in dashboard(made) if one["type"] == "log")
    assert re.findall(r"sum\((\w+)\)", query) == [field_of(reason) for reason in FAILURES]
    assert any(field_of(reason) in line for line in function.lines for reason in FAILURES)


def test_frugal_stack_has_one_alarm_and_no_metrics(
    synthesize: Synthesize, aws: Synthesized
) -> None:
    made = synthesize(frugal="yes")
    assert [*made.resources("AWS::CloudWatch::Alarm")] == ["MonitoringDeadLetters"]
    assert made.resources("AWS::CloudWatch::Dashboard") == {}
    for function in made.functions().values():
        assert function["Environment"]["Variables"]["ORBWEAVER_CUSTOM_METRICS"] == "no"
    for table in made.properties("AWS::DynamoDB::Table").values():
        recovery = table["PointInTimeRecoverySpecification"]
        assert recovery["PointInTimeRecoveryEnabled"] is False
    sources = [
        {text(source["EventSourceArn"]) for source in one.values()}
        for one in (
            made.properties("AWS::Lambda::EventSourceMapping"),
            aws.properties("AWS::Lambda::EventSourceMapping"),
        )
    ]
    assert sources[1] - sources[0] == {"<FrontierExpress.Arn>"}
    assert len(sources[0]) == 3


def test_frugal_stack_has_one_queue_for_both_lanes(synthesize: Synthesize) -> None:
    made = synthesize(frugal="yes")
    assert "FrontierExpress" not in made.properties("AWS::SQS::Queue")
    outputs = made.template["Outputs"]
    assert outputs["ExpressQueueUrl"]["Value"] == outputs["PackQueueUrl"]["Value"]
    assert outputs["ExpressEventSource"]["Value"] == outputs["CrawlEventSource"]["Value"]
    for function in made.functions().values():
        variables = function["Environment"]["Variables"]
        if "ORBWEAVER_EXPRESS_QUEUE_URL" in variables:
            express = variables["ORBWEAVER_EXPRESS_QUEUE_URL"]
            assert text(express) == text(variables["ORBWEAVER_CRAWL_QUEUE_URL"])
    (letters,) = (
        queue["RedriveAllowPolicy"]["sourceQueueArns"]
        for queue in made.properties("AWS::SQS::Queue").values()
        if "sourceQueueArns" in queue.get("RedriveAllowPolicy", {})
    )
    assert [text(arn).rpartition(":")[2] for arn in letters] == [
        "Orbweaver-crawl",
        "Orbweaver-seeds",
    ]
