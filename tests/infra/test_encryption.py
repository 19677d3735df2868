"""Encryption with the user's own key: resources and permissions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.infra.template import HASH, listed, text
from tests.infra.test_findings import found_in

if TYPE_CHECKING:
    from tests.infra.template import Synthesize, Synthesized

pytestmark = pytest.mark.infra

ARN = "arn:aws:kms:eu-central-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
OWN = {"generate": "<EncryptionKey.Arn>", ARN: ARN}


@pytest.fixture(params=OWN)
def keyed(request: pytest.FixtureRequest, synthesize: Synthesize) -> Any:
    """Return a stack with a key, and the key's name in its template."""
    context = {"kms_key": request.param, "webhook_secret": "generate"}
    return synthesize(**context), OWN[request.param]


def test_all_resources_use_key(keyed: tuple[Synthesized, str]) -> None:
    stack, arn = keyed
    for name, table in stack.properties("AWS::DynamoDB::Table").items():
        sse = table["SSESpecification"]
        assert (sse["SSEEnabled"], sse["SSEType"], text(sse["KMSMasterKeyId"])) == (
            True,
            "KMS",
            arn,
        ), name
    for name, queue in stack.properties("AWS::SQS::Queue").items():
        assert text(queue["KmsMasterKeyId"]) == arn, name
        assert queue["KmsDataKeyReusePeriodSeconds"] == 3_600, name
        assert "SqsManagedSseEnabled" not in queue, name
    for name, group in stack.properties("AWS::Logs::LogGroup").items():
        assert text(group["KmsKeyId"]) == arn, name
    assert text(stack.only("AWS::SNS::Topic")["KmsMasterKeyId"]) == arn
    bucket = stack.only("AWS::S3::Bucket")
    (rule,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert rule["BucketKeyEnabled"] is True
    assert rule["ServerSideEncryptionByDefault"]["SSEAlgorithm"] == "aws:kms"
    assert text(rule["ServerSideEncryptionByDefault"]["KMSMasterKeyID"]) == arn


def test_stack_without_key_has_no_key_reference(aws: Synthesized) -> None:
    assert aws.resources("AWS::KMS::Key") == {}
    assert "kms:" not in str(aws.template)
    assert "KmsMasterKeyId" not in str(aws.template)


def uses(stack: Synthesized, arn: str) -> dict[str, set[str]]:
    """Return each role's KMS actions; fail for another key or resource."""
    found: dict[str, set[str]] = {}
    for name, role in stack.properties("AWS::IAM::Role").items():
        for policy in role.get("Policies", ()):
            for statement in policy["PolicyDocument"]["Statement"]:
                actions = {one for one in listed(statement["Action"]) if one.startswith("kms:")}
                if actions:
                    assert text(statement["Resource"]) == arn, name
                    found[name] = actions
    return found


def test_roles_have_needed_key_permissions_only(keyed: tuple[Synthesized, str]) -> None:
    stack, arn = keyed
    both = {"kms:Decrypt", "kms:GenerateDataKey"}
    found = uses(stack, arn)
    for role in ("WorkerProgramRole", "ExporterProgramRole", "ApiProgramRole"):
        assert found[role] == both, role
    # They send undeliverable events to a queue.
    for role in ("ExporterScheduleRole", "StarterFiringRole", "NotifierProgramRole"):
        assert found[role] == both, role
    assert "ApiLogsRole" not in found


def test_services_can_use_stacks_own_key(synthesize: Synthesize) -> None:
    stack = synthesize(kms_key="generate")
    ((name, resource),) = stack.resources("AWS::KMS::Key").items()
    assert name == "EncryptionKey"
    assert resource["DeletionPolicy"] == "RetainExceptOnCreate"
    assert resource["Properties"]["EnableKeyRotation"] is True
    statements = {
        statement["Sid"]: statement
        for statement in resource["Properties"]["KeyPolicy"]["Statement"]
        if "Sid" in statement
    }
    logs = statements["LogGroups"]
    assert "logs." in text(logs["Principal"]["Service"])
    assert "kms:EncryptionContext:aws:logs:arn" in logs["Condition"]["ArnLike"]
    alarms, rules = statements["Alarms"], statements["Rules"]
    assert alarms["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert "aws:SourceAccount" in alarms["Condition"]["StringEquals"]
    for statement in (alarms, rules):
        assert set(statement["Action"]) == {"kms:Decrypt", "kms:GenerateDataKey*"}


def test_rules_reach_encrypted_queues(synthesize: Synthesize) -> None:
    """EventBridge passes no source to the key, so its policy has no such condition."""
    stack = synthesize(kms_key="generate", webhook_secret="generate", copy_bucket="their-exports")
    (key,) = stack.resources("AWS::KMS::Key").values()
    (rules,) = (
        statement
        for statement in key["Properties"]["KeyPolicy"]["Statement"]
        if statement["Principal"] == {"Service": "events.amazonaws.com"}
    )
    assert "Condition" not in rules
    senders = [
        statement["Condition"]["ArnEquals"]["aws:SourceArn"]
        for policy in stack.properties("AWS::SQS::QueuePolicy").values()
        for statement in policy["PolicyDocument"]["Statement"]
        if statement.get("Principal") == {"Service": "events.amazonaws.com"}
    ]
    assert {text(arn) for arn in senders} == {"<DeliveryRule.Arn>", "<NotifierRule.Arn>"}
    assert len(senders) == 3  # The delivery queue, and the dead letters of deliveries and notifier.


def test_key_is_the_only_one(keyed: tuple[Synthesized, str]) -> None:
    stack, arn = keyed
    made = [HASH.sub("", name) for name in stack.resources("AWS::KMS::Key")]
    assert made == (["EncryptionKey"] if arn == "<EncryptionKey.Arn>" else [])


def test_encrypted_stack_has_no_findings(keyed: tuple[Synthesized, str]) -> None:
    stack, _ = keyed
    assert found_in(stack.stack) == set()
