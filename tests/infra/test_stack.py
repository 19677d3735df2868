"""The stack as clients see it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.infra.template import text

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.infra.template import Synthesized

pytestmark = pytest.mark.infra

OUTPUTS = {
    "CrawlQueueUrl": "<FrontierCrawl>",
    "ExpressQueueUrl": "<FrontierExpress>",
    "DeadLetterQueueUrl": "<FrontierDeadLetters>",
    "UrlsTable": "<StorageUrls>",
    "PagesTable": "<StoragePages>",
    "HostsTable": "<StorageHosts>",
    "CrawlsTable": "<StorageCrawls>",
    "PacksTable": "<StoragePacks>",
    "Bucket": "<StorageBucket>",
    "WorkerFunction": "<WorkerProgramFunction>",
    "WorkerLogGroup": "<WorkerProgramLogs>",
    "CrawlEventSource": "<WorkerCrawl>",
    "ExpressEventSource": "<WorkerExpress>",
    "ExporterFunction": "<ExporterProgramFunction>",
    "ExporterFailuresQueueUrl": "<ExporterFailures>",
    "ExportEventSource": "<ExporterFromOrders>",
    "ExportQueueUrl": "<ExporterOrders>",
    "ExportDeadLetterQueueUrl": "<ExporterDeadLetters>",
    "StarterFunctionArn": "<StarterProgramFunction.Arn>",
    "ScheduleGroup": "<StarterGroup>",
    "ScheduleRoleArn": "<StarterFiringRole.Arn>",
    "FailedCallsQueueUrl": "<FailedCallsQueue>",
    "FailedCallsQueueArn": "<FailedCallsQueue.Arn>",
    "ApiUrl": "https://<ApiRest>.execute-api.<AWS::Region>.<AWS::URLSuffix>/<ApiRestDeploymentStagev1>/",
    "AlarmTopicArn": "<MonitoringAlarms>",
    "Database": "orbweaver",
    "Workgroup": "Orbweaver",
}


def test_outputs(aws: Synthesized) -> None:
    """Clients find these names, and each is the name of what it says."""
    outputs = {key: text(output["Value"]) for key, output in aws.template["Outputs"].items()}
    assert outputs == OUTPUTS


def test_names_start_with_the_stack(synthesize: Callable[..., Synthesized]) -> None:
    """Two stacks of one account have no name in common."""
    made = synthesize(stack_name="Second")
    assert made.stack.stack_name == "Second"
    names = {
        str(properties[key])
        for kind, key in (
            ("AWS::SQS::Queue", "QueueName"),
            ("AWS::Lambda::Function", "FunctionName"),
            ("AWS::Logs::LogGroup", "LogGroupName"),
            ("AWS::CloudWatch::Dashboard", "DashboardName"),
            ("AWS::Scheduler::ScheduleGroup", "Name"),
        )
        for properties in made.properties(kind).values()
    }
    assert len(names) == 17
    assert all(name.rsplit("/", maxsplit=1)[-1].startswith("Second") for name in names)


def test_an_emulator_is_asked_over_plain_http(local: Synthesized) -> None:
    """No policy of a stack on an emulator asks for TLS, which no emulator speaks by itself."""
    assert "aws:SecureTransport" not in json.dumps(local.template)
    assert "s3:TlsVersion" not in json.dumps(local.template)
