"""The user's own key: what it encrypts, and who may use it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.infra.template import HASH, listed, text
from tests.infra.test_findings import found_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.infra.template import Synthesized

pytestmark = pytest.mark.infra

ARN = "arn:aws:kms:eu-central-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
OWN = {"generate": "<EncryptionKey.Arn>", ARN: ARN}


@pytest.fixture(params=OWN)
def keyed(request: pytest.FixtureRequest, synthesize: Callable[..., Synthesized]) -> Any:
    """Return a stack with a key, and what its template calls that key."""
    context = {"kms_key": request.param, "webhook_secret": "generate", "alarm_key": "yes"}
    return synthesize(**context), OWN[request.param]


def test_everything_is_encrypted_with_it(keyed: tuple[Synthesized, str]) -> None:
    """Tables, bucket, queues, log groups and topics are all encrypted with the key."""
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


def test_without_it_nothing_changes(aws: Synthesized) -> None:
    """By default there is no key, nothing names one, and no role may use one."""
    assert aws.resources("AWS::KMS::Key") == {}
    assert "kms:" not in str(aws.template)
    assert "KmsMasterKeyId" not in str(aws.template)


def uses(stack: Synthesized, arn: str) -> dict[str, set[str]]:
    """Say what each role may do with the key: and that it is this one, and nothing else of KMS."""
    found: dict[str, set[str]] = {}
    for name, role in stack.properties("AWS::IAM::Role").items():
        for policy in role.get("Policies", ()):
            for statement in policy["PolicyDocument"]["Statement"]:
                actions = {one for one in listed(statement["Action"]) if one.startswith("kms:")}
                if actions:
                    assert text(statement["Resource"]) == arn, name
                    found[name] = actions
    return found


def test_roles_may_do_what_they_need(keyed: tuple[Synthesized, str]) -> None:
    """Who reads may decrypt, who sends or writes files may have data keys, nobody else anything."""
    stack, arn = keyed
    both = {"kms:Decrypt", "kms:GenerateDataKey"}
    found = uses(stack, arn)
    for role in ("WorkerProgramRole", "ExporterProgramRole", "ApiProgramRole"):
        assert found[role] == both, role
    # They put on a queue what they could not deliver.
    for role in ("ExporterScheduleRole", "StarterFiringRole", "NotifierProgramRole"):
        assert found[role] == both, role
    assert "ApiLogsRole" not in found


def test_services_may_use_a_key_of_the_stack(synthesize: Callable[..., Synthesized]) -> None:
    """Logs of this account, alarms and rules may use the key; it is rotated, and kept."""
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


def test_rules_reach_encrypted_queues(synthesize: Callable[..., Synthesized]) -> None:
    """EventBridge names no source to the key, so none is asked for; each queue names its rule."""
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
    assert len(senders) == 3  # the delivery's queue, and what takes its and the notifier's failures


def test_one_key_is_enough(keyed: tuple[Synthesized, str]) -> None:
    """The topic has no key of its own beside it; somebody else's key is not made anew."""
    stack, arn = keyed
    made = [HASH.sub("", name) for name in stack.resources("AWS::KMS::Key")]
    assert made == (["EncryptionKey"] if arn == "<EncryptionKey.Arn>" else [])


def test_nothing_is_found(keyed: tuple[Synthesized, str]) -> None:
    """Neither rule pack finds anything that is not accepted."""
    stack, _ = keyed
    assert found_in(stack.stack) == set()
