"""The stack's names, outputs and policies, as clients use them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from orbweaver.cli.stack import NAMES
from tests.infra.template import text

if TYPE_CHECKING:
    from tests.infra.template import Synthesize, Synthesized

pytestmark = pytest.mark.infra

OUTPUTS = {
    "CrawlQueueUrl": "<FrontierSeeds>",
    "PackQueueUrl": "<FrontierCrawl>",
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
    "SeedEventSource": "<WorkerSeeds>",
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


def test_outputs_name_their_resources(aws: Synthesized) -> None:
    outputs = {key: text(output["Value"]) for key, output in aws.template["Outputs"].items()}
    assert outputs == OUTPUTS
    assert outputs.keys() >= NAMES.keys()


def test_resource_names_start_with_stack_name(synthesize: Synthesize) -> None:
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
    assert len(names) == 20
    assert all(name.rsplit("/", maxsplit=1)[-1].startswith("Second") for name in names)


def test_emulator_policies_do_not_require_tls(local: Synthesized) -> None:
    """Emulators do not support TLS."""
    assert "aws:SecureTransport" not in json.dumps(local.template)
    assert "s3:TlsVersion" not in json.dumps(local.template)


BOUNDARY = "arn:aws:iam::123456789012:policy/boundaries/developers"


@pytest.mark.parametrize(
    ("policy", "named"),
    [
        (BOUNDARY, BOUNDARY),
        ("developers", "arn:<AWS::Partition>:iam::<AWS::AccountId>:policy/developers"),
        ("", None),
    ],
)
def test_every_role_has_permissions_boundary(
    synthesize: Synthesize, policy: str, named: str | None
) -> None:
    context = {"webhook_secret": "generate", "copy_bucket": "their-exports"}
    made = synthesize(**context, **({"permissions_boundary": policy} if policy else {}))
    roles = made.properties("AWS::IAM::Role")
    assert len(roles) >= 9
    assert {
        text(role["PermissionsBoundary"]) if "PermissionsBoundary" in role else None
        for role in roles.values()
    } == {named}


@pytest.mark.parametrize(
    ("context", "qualifier"), [({}, "hnb659fds"), ({"qualifier": "team-a"}, "team-a")]
)
def test_bootstrap_qualifier_is_used_everywhere(
    synthesize: Synthesize, context: dict[str, str], qualifier: str
) -> None:
    made = synthesize(**context)
    version = made.template["Parameters"]["BootstrapVersion"]["Default"]
    assert version == f"/cdk-bootstrap/{qualifier}/version"
    worker = made.properties("AWS::Lambda::Function")["WorkerProgramFunction"]
    bucket = worker["Code"]["S3Bucket"]
    assert bucket == {"Fn::Sub": f"cdk-{qualifier}-assets-${{AWS::AccountId}}-${{AWS::Region}}"}


RESOURCES_MAX, OUTPUTS_MAX, TEMPLATE_BYTES_MAX = 500, 200, 1_000_000
ENVIRONMENT_BYTES_MAX = 4_096


def test_full_stack_is_within_cloudformation_limits(synthesize: Synthesize) -> None:
    made = synthesize(
        stack_name="A" * 40,
        contact="u" * 256,
        proxy_secret="p" * 512,
        webhook_secret="w" * 512,
        kms_key="generate",
        copy_bucket="b" * 63,
        alarms="all",
        alarm_email="someone@example.org",
        permissions_boundary=BOUNDARY,
    )
    assert len(made.template["Resources"]) < RESOURCES_MAX / 2
    assert len(made.template["Outputs"]) < OUTPUTS_MAX / 2
    assert len(json.dumps(made.template)) < TEMPLATE_BYTES_MAX / 2
    for name, function in made.properties("AWS::Lambda::Function").items():
        variables = function.get("Environment", {}).get("Variables", {}).items()
        # On an emulator a reference becomes a URL or a generated name.
        sizes = [len(key) + max(len(text(value)), 128) for key, value in variables]
        assert sum(sizes) < ENVIRONMENT_BYTES_MAX, name
