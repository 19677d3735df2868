"""The tables and the bucket."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.infra.template import denies_plain_http

if TYPE_CHECKING:
    from tests.infra.template import Synthesized

pytestmark = pytest.mark.infra

TABLES = {
    "StorageUrls": ["k"],
    "StoragePages": ["day", "k"],
    "StorageHosts": ["host"],
    "StorageCrawls": ["k"],
    "StoragePacks": ["k", "part"],
}
KIND = "AWS::DynamoDB::Table"


def test_keys(aws: Synthesized) -> None:
    """There are five tables, with these keys, all of them text."""
    tables = aws.properties(KIND)
    keys = {
        name: [key["AttributeName"] for key in table["KeySchema"]] for name, table in tables.items()
    }
    assert keys == TABLES
    for table in tables.values():
        assert {attribute["AttributeType"] for attribute in table["AttributeDefinitions"]} == {"S"}


@pytest.mark.parametrize("name", TABLES)
def test_nothing_is_paid_while_idle(aws: Synthesized, name: str) -> None:
    """Tables are on-demand, and forget items by the time in `expires_at`."""
    table = aws.properties(KIND)[name]
    assert table["BillingMode"] == "PAY_PER_REQUEST"
    assert "ProvisionedThroughput" not in table
    assert table["TimeToLiveSpecification"] == {"AttributeName": "expires_at", "Enabled": True}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize(("target", "kept"), [("aws", True), ("local", False)])
def test_retention(request: pytest.FixtureRequest, target: str, name: str, *, kept: bool) -> None:
    """What an account holds is kept, guarded and restorable; what an emulator holds is not."""
    resource = request.getfixturevalue(target).resources(KIND)[name]
    assert resource["DeletionPolicy"] == ("Retain" if kept else "Delete")
    table = resource["Properties"]
    recovery = table["PointInTimeRecoverySpecification"]
    assert recovery["PointInTimeRecoveryEnabled"] is kept
    assert table["DeletionProtectionEnabled"] is kept


def test_bucket_is_closed(aws: Synthesized) -> None:
    """The bucket is private, encrypted, owned by its account, and refuses plain HTTP."""
    bucket = aws.only("AWS::S3::Bucket")
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    assert len(bucket["PublicAccessBlockConfiguration"]) == 4
    (rule,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert rule["ServerSideEncryptionByDefault"]["SSEAlgorithm"] == "AES256"
    assert bucket["OwnershipControls"]["Rules"] == [{"ObjectOwnership": "BucketOwnerEnforced"}]
    statements = aws.only("AWS::S3::BucketPolicy")["PolicyDocument"]["Statement"]
    assert denies_plain_http(statements, "s3:*")


def test_bucket_forgets(aws: Synthesized) -> None:
    """Bodies expire after their days and unfinished uploads after one; exports stay."""
    rules: dict[str, dict[str, Any]] = {
        rule.pop("Id"): rule
        for rule in map(dict, aws.only("AWS::S3::Bucket")["LifecycleConfiguration"]["Rules"])
    }
    assert rules == {
        "bodies": {"ExpirationInDays": 30, "Prefix": "bodies/", "Status": "Enabled"},
        "unfinished-uploads": {
            "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1},
            "Status": "Enabled",
        },
    }


def test_bucket_is_kept(aws: Synthesized, local: Synthesized) -> None:
    """The bucket outlives the stack on AWS and goes with it on an emulator."""
    (kept,) = aws.resources("AWS::S3::Bucket").values()
    (dropped,) = local.resources("AWS::S3::Bucket").values()
    assert (kept["DeletionPolicy"], dropped["DeletionPolicy"]) == ("Retain", "Delete")
