"""Data that outlives a stack: removed, retained with its command, imported."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from localstack import cdk, layout, removal
from localstack.errors import LocalStackError
from localstack.removal import ACCOUNT as SETTING
from localstack.removal import BUCKET, GROUP, KEY, POOL, ROLE, TABLE, Resource

REGION = "us-east-1"
ACCOUNT = "123456789012"
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
KEYS: dict[str, Any] = {
    "KeySchema": [{"AttributeName": "k", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "k", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}


class Stacks:
    """CloudFormation with one stack and removed ones, because moto's needs a missing library."""

    def __init__(self, template: object = None, summaries: object = None) -> None:
        self.template = template
        self.pages = {
            "list_stack_resources": [{"StackResourceSummaries": summaries}],
            "list_stacks": summaries,
        }

    def get_template(self, *, StackName: str) -> dict[str, Any]:  # noqa: N803 - boto's own
        if StackName != "Mine":
            raise ClientError({"Error": {"Code": "ValidationError"}}, "GetTemplate")
        return {"TemplateBody": self.template}

    def get_paginator(self, name: str) -> Any:
        found = self.pages[name]
        return SimpleNamespace(paginate=lambda **_: found)


class Imports:
    """Runs of `cdk import` for a new stack on an emulator."""

    failing = False

    def __init__(self) -> None:
        self.ran = list[Any]()

    def run(self, words: list[str], *_: Any) -> None:
        self.ran.append(words)
        if self.failing:
            raise LocalStackError("no")

    def take(self, *declared: str) -> None:
        template: dict[str, Any] = {"Resources": {name: {} for name in declared}}
        environment = {layout.ENDPOINT: "http://127.0.0.1:1"}
        cdk._import_left("Mine", template, Path(), environment, say=lambda _: None)


@pytest.fixture
def imports(monkeypatch: pytest.MonkeyPatch) -> Imports:
    imports = Imports()
    monkeypatch.setattr(cdk, "stack_outputs", lambda *_: None)
    monkeypatch.setattr(cdk, "client", lambda service, _: client(service))
    monkeypatch.setattr(cdk, "_run", imports.run)
    return imports


@contextlib.contextmanager
def client(service: str) -> Iterator[Any]:
    with contextlib.closing(boto3.client(service, region_name=REGION)) as opened:
        yield opened


@pytest.fixture(autouse=True)
def account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setattr(layout, "LEFT", tmp_path)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    with mock_aws():
        yield


def stack(policy: str) -> list[Resource]:
    with client("dynamodb") as dynamodb, client("s3") as s3:
        dynamodb.create_table(TableName="urls", **KEYS)
        s3.create_bucket(Bucket="files")
    stacks = deployed(policy)
    return removal.resources_of("Mine", lambda _: contextlib.nullcontext(stacks))


def deployed(policy: str) -> Stacks:
    summaries = [
        {"LogicalResourceId": logical, "ResourceType": kind, "PhysicalResourceId": name} | status
        for logical, kind, name, status in (
            ("Urls", TABLE, "urls", {"ResourceStatus": "CREATE_COMPLETE"}),
            ("Files", BUCKET, "files", {"ResourceStatus": "DELETE_FAILED"}),
            ("Gone", BUCKET, "gone", {"ResourceStatus": "DELETE_COMPLETE"}),
            ("Never", BUCKET, "", {"ResourceStatus": "CREATE_FAILED"}),
        )
    ]
    declared = {name: {"DeletionPolicy": policy} for name in ("Urls", "Files", "Gone", "Never")}
    return Stacks({"Resources": declared}, summaries)


@pytest.mark.parametrize(
    ("policy", "kept"), [("Delete", False), ("Retain", True), ("RetainExceptOnCreate", True)]
)
def test_stack_lists_retained_resources(policy: str, *, kept: bool) -> None:
    stacks = deployed(policy)
    for template in (stacks.template, json.dumps(stacks.template)):
        stacks.template = template
        found = removal.resources_of("Mine", lambda _: contextlib.nullcontext(stacks))
        assert found == [
            Resource(logical="Urls", kind=TABLE, name="urls", kept=kept),
            Resource(logical="Files", kind=BUCKET, name="files", kept=kept, stuck=True),
        ]
    assert removal.resources_of("Other", lambda _: contextlib.nullcontext(stacks)) == []


def test_removed_bucket_is_emptied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "PAGE", 10)
    monkeypatch.setattr(removal, "PAGES_SAID", 2)
    resources, said = stack("Delete"), list[str]()
    (bucket,) = (resource.name for resource in resources if resource.kind == BUCKET)
    with client("s3") as s3:
        for number in range(25):
            s3.put_object(Bucket=bucket, Key=f"bodies/{number}", Body=b"x")
        s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
        s3.put_object(Bucket=bucket, Key="bodies/1", Body=b"y")
        s3.delete_object(Bucket=bucket, Key="bodies/2")
        s3.create_multipart_upload(Bucket=bucket, Key="exports/part")
        assert removal.empty(resources, client, said.append) == 25 + 2 + 1
        assert "Versions" not in s3.list_object_versions(Bucket=bucket)
        assert "DeleteMarkers" not in s3.list_object_versions(Bucket=bucket)
        assert "Uploads" not in s3.list_multipart_uploads(Bucket=bucket)
        s3.delete_bucket(Bucket=bucket)
    assert said == [
        "emptying the bucket: 20 objects removed",
        f"the bucket {bucket} is empty: 28 objects removed",
    ]
    assert removal.empty(resources, client, said.append) == 0  # The bucket is gone.


def test_drop_left_assets_of_killed_emulator_removes_bucket() -> None:
    """A new toolkit stack cannot create a bucket that exists."""
    name = f"cdk-{cdk.QUALIFIER}-assets-{layout.ACCOUNT}-{layout.REGION}"
    with client("s3") as s3:
        s3.create_bucket(Bucket=name)
        s3.put_object(Bucket=name, Key="asset.zip", Body=b"x")
        for _ in range(2):
            cdk._drop_left_assets(cdk.QUALIFIER, client)
        assert s3.list_buckets()["Buckets"] == []


def test_retained_bucket_is_left_alone() -> None:
    resources = stack("RetainExceptOnCreate")
    (bucket,) = (resource.name for resource in resources if resource.kind == BUCKET)
    with client("s3") as s3:
        s3.put_object(Bucket=bucket, Key="bodies/1", Body=b"x")
        assert removal.empty(resources, client) == 0
        assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 1


def test_undeletable_object_is_named_in_error() -> None:
    """S3 answers 200 to a denied deletion."""

    class Denied:
        def list_object_versions(self, **_: Any) -> dict[str, Any]:
            return {"Versions": [{"Key": "a", "VersionId": "null"}]}

        def delete_objects(self, **_: Any) -> dict[str, Any]:
            return {"Errors": [{"Key": "a", "Message": "Access Denied"}]}

    def lend(_service: str) -> AbstractContextManager[Any]:
        return contextlib.nullcontext(Denied())

    bucket = Resource(logical="Files", kind=BUCKET, name="b", kept=False)
    with pytest.raises(LocalStackError, match="bucket b: a: Access Denied"):
        removal.empty([bucket], lend)


def users() -> list[Resource]:
    return [
        Resource(logical="Users", kind=POOL, name="eu_1", kept=True),
        Resource(logical="Look", kind=GROUP, name="look", kept=True, parent="eu_1"),
        Resource(logical="Role", kind=ROLE, name="logs", kept=True),
        Resource(logical="Setting", kind=SETTING, name="setting", kept=True),
    ]


def test_retained_resources_are_named_and_recorded() -> None:
    resources, said = stack("Retain") + users(), list[str]()
    names = {resource.kind: resource.name for resource in resources}
    resources.append(Resource(logical="Made", kind=KEY, name="some-key", kept=True))
    file = removal.left_file("Mine", client)
    assert file.name == f"Mine-{ACCOUNT}-{REGION}.json"
    removal.remember(resources, client, file, said.append)
    words = "\n".join(said)
    assert f"aws dynamodb delete-table --table-name {names[TABLE]}" in words
    assert f"aws s3 rb --force s3://{names[BUCKET]}" in words
    assert "aws kms schedule-key-deletion --key-id some-key" in words
    assert f"aws cognito-idp delete-user-pool --user-pool-id {names[POOL]}" in words
    assert "delete-group" not in words  # The group is deleted with its pool.
    assert words.index("update-account") < words.index("aws iam delete-role --role-name logs")
    assert str(file) in words
    assert json.loads(file.read_text()) == {
        "Urls": {"TableName": names[TABLE]},
        "Files": {"BucketName": names[BUCKET]},
        "Users": {"UserPoolId": names[POOL]},
        "Look": {"GroupName": "look", "UserPoolId": names[POOL]},
        "Role": {"RoleName": "logs"},
        "Made": {"KeyId": "some-key"},
    }


def test_group_in_template_is_identified_with_its_pool() -> None:
    summaries = [
        {"LogicalResourceId": logical, "ResourceType": kind, "PhysicalResourceId": name}
        | {"ResourceStatus": "CREATE_COMPLETE"}
        for logical, kind, name in (("Users", POOL, "eu_1"), ("Look", GROUP, "eu_1|look"))
    ]
    group = {"GroupName": "look", "UserPoolId": {"Ref": "Users"}}
    template = {"Resources": {"Look": {"DeletionPolicy": "Retain", "Properties": group}}}
    stacks = Stacks(template, [*summaries])
    found = removal.resources_of("Mine", lambda _: contextlib.nullcontext(stacks))
    assert [one.identifier for one in found] == [
        {"UserPoolId": "eu_1"},
        {"GroupName": "look", "UserPoolId": "eu_1"},
    ]


def test_import_keeps_undeclared_resource_for_later(imports: Imports) -> None:
    """A user pool stays recorded until the console is hosted again, and is then imported."""
    file = removal.left_file("Mine", client)
    removal.remember(stack("Retain") + users()[:2], client, file, lambda _: None)
    imports.take("Urls", "Files")
    assert set(json.loads(file.read_text())) == {"Users", "Look"}
    imports.take("Urls", "Files")
    imports.take("Urls", "Files", "Users", "Look")
    assert [ran[:2] for ran in imports.ran] == [["import", "Mine"]] * 2
    assert not file.exists()


def test_failed_import_keeps_file_and_explains_fresh_start(imports: Imports) -> None:
    file = removal.left_file("Mine", client)
    removal.remember(stack("Retain"), client, file, lambda _: None)
    imports.failing = True
    with pytest.raises(LocalStackError, match=f"(?s)no.*from {file}"):
        imports.take("Urls", "Files")
    assert set(json.loads(file.read_text())) == {"Urls", "Files"}


def test_remember_dropped_resource_keeps_earlier_ones(tmp_path: Path) -> None:
    file = tmp_path / "left.json"
    before = stack("Retain") + users()[:2]
    left = removal.dropped(before, before[:2])
    assert [one.logical for one in left] == ["Users", "Look"]
    removal.remember(left, client, file, lambda _: None)
    removal.remember(before[:1], client, file, lambda _: None)
    assert set(json.loads(file.read_text())) == {"Users", "Look", "Urls"}


@pytest.mark.parametrize(
    ("removed", "waits_s"),
    [
        ([], 0.0),
        ([("Other", 1.0)], 0.0),
        ([("Mine", 3_600.0), ("Mine", 10.0), ("Mine", 500.0)], 55.0),
        ([("Mine", 65.0)], 0.0),
    ],
)
def test_reserved_queue_names_are_awaited(removed: list[tuple[str, float]], waits_s: float) -> None:
    """SQS reserves a removed stack's queue names for a while."""
    pages = [
        {"StackSummaries": [{"StackName": name, "DeletionTime": NOW - timedelta(seconds=ago_s)}]}
        for name, ago_s in removed
    ]
    stacks = Stacks(summaries=[*pages, {"StackSummaries": [{"StackName": "Mine"}]}])
    assert removal.pause_s("Mine", lambda _: contextlib.nullcontext(stacks), NOW) == waits_s
