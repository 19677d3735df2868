"""Tables and bucket."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.infra.template import denies_plain_http

if TYPE_CHECKING:
    from tests.infra.template import Synthesize, Synthesized

pytestmark = pytest.mark.infra

TABLES = {
    "StorageUrls": ["k"],
    "StoragePages": ["day", "k"],
    "StorageHosts": ["host"],
    "StorageCrawls": ["k"],
    "StoragePacks": ["k", "part"],
}
KIND = "AWS::DynamoDB::Table"


def test_tables_have_text_keys(aws: Synthesized) -> None:
    tables = aws.properties(KIND)
    keys = {
        name: [key["AttributeName"] for key in table["KeySchema"]] for name, table in tables.items()
    }
    assert keys == TABLES
    for table in tables.values():
        assert {attribute["AttributeType"] for attribute in table["AttributeDefinitions"]} == {"S"}


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_on_demand_and_expire_items(aws: Synthesized, name: str) -> None:
    table = aws.properties(KIND)[name]
    assert table["BillingMode"] == "PAY_PER_REQUEST"
    assert "ProvisionedThroughput" not in table
    assert table["TimeToLiveSpecification"] == {"AttributeName": "expires_at", "Enabled": True}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize(("target", "kept"), [("aws", True), ("local", False)])
def test_data_is_retained_and_restorable(
    request: pytest.FixtureRequest, target: str, name: str, *, kept: bool
) -> None:
    resource = request.getfixturevalue(target).resources(KIND)[name]
    assert resource["DeletionPolicy"] == ("RetainExceptOnCreate" if kept else "Delete")
    assert resource["UpdateReplacePolicy"] == ("Retain" if kept else "Delete")
    table = resource["Properties"]
    recovery = table["PointInTimeRecoverySpecification"]
    assert recovery["PointInTimeRecoveryEnabled"] is kept
    # CloudFormation could not undo a first create of a protected table: test_protection.py.
    assert "DeletionProtectionEnabled" not in table


def test_bucket_is_private_encrypted_and_requires_tls(aws: Synthesized) -> None:
    bucket = aws.only("AWS::S3::Bucket")
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    assert len(bucket["PublicAccessBlockConfiguration"]) == 4
    (rule,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert rule["ServerSideEncryptionByDefault"]["SSEAlgorithm"] == "AES256"
    assert bucket["OwnershipControls"]["Rules"] == [{"ObjectOwnership": "BucketOwnerEnforced"}]
    statements = aws.only("AWS::S3::BucketPolicy")["PolicyDocument"]["Statement"]
    assert denies_plain_http(statements, "s3:*")


def expiring(stack: Synthesized) -> dict[str, tuple[str, int]]:
    """Return the bucket's expiry rules: name to prefix and days."""
    rules = stack.only("AWS::S3::Bucket")["LifecycleConfiguration"]["Rules"]
    assert {rule["Status"] for rule in rules} == {"Enabled"}
    return {
        rule["Id"]: (rule["Prefix"], rule["ExpirationInDays"])
        for rule in rules
        if "ExpirationInDays" in rule
    }


def test_bucket_prefixes_expire(aws: Synthesized) -> None:
    assert expiring(aws) == {
        "bodies": ("bodies/", 30),
        "claimed": ("claimed/", 14),
        "work": ("exports/_work/", 7),
        "snapshots": ("exports/_snapshots/", 365),
        "athena-results": ("athena-results/", 7),
    }
    (uploads,) = (
        rule
        for rule in aws.only("AWS::S3::Bucket")["LifecycleConfiguration"]["Rules"]
        if "ExpirationInDays" not in rule
    )
    assert uploads["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 1}


def test_retention_days_are_settings(synthesize: Synthesize) -> None:
    stack = synthesize(
        body_retention_d="3",
        export_retention_d="400",
        page_retention_d="5",
    )
    assert expiring(stack) == {
        "bodies": ("bodies/", 3),
        "claimed": ("claimed/", 14),
        "exports": ("exports/", 400),
        "work": ("exports/_work/", 7),
        "snapshots": ("exports/_snapshots/", 365),
        "athena-results": ("athena-results/", 7),
    }
    worker = stack.properties("AWS::Lambda::Function")["WorkerProgramFunction"]
    variables = worker["Environment"]["Variables"]
    assert variables["ORBWEAVER_PAGE_RETENTION_S"] == str(5 * 86_400)


def test_bucket_is_retained_on_aws_only(aws: Synthesized, local: Synthesized) -> None:
    (kept,) = aws.resources("AWS::S3::Bucket").values()
    (dropped,) = local.resources("AWS::S3::Bucket").values()
    assert (kept["DeletionPolicy"], dropped["DeletionPolicy"]) == ("RetainExceptOnCreate", "Delete")
