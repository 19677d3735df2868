"""Data that outlives a stack: what is emptied, what is left, and by which command it goes.

Rules
- The deployed template decides: a resource whose `DeletionPolicy` begins with Retain stays.
- A bucket that goes with its stack is emptied first, for CloudFormation deletes none that holds
  anything: objects, versions and unfinished uploads, 1,000 a request.
- What stays is named with the command that removes it, and written to a file (adoption.py).
- Tables that stay are protected against deletion, after the deployment instead of by the template:
  CloudFormation could not take a protected table away again when a first create fails.

Source: docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-attribute-deletionpolicy.html,
…/AmazonS3/latest/API/API_DeleteObjects.html.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from localstack.errors import LocalStackError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    Lend = Callable[[str], AbstractContextManager[Any]]  # a service's name in, its client out
    Say = Callable[[str], None]

TABLE, BUCKET, KEY = "AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::KMS::Key"
API = "AWS::ApiGateway::RestApi"
# What CloudFormation knows a resource by when it is imported, and the command that removes it.
IDENTIFIERS = {TABLE: "TableName", BUCKET: "BucketName", KEY: "KeyId"}
COMMANDS = {
    TABLE: (
        "aws dynamodb update-table --no-deletion-protection-enabled --table-name {name}",
        "aws dynamodb delete-table --table-name {name}",
    ),
    BUCKET: ("aws s3 rb --force s3://{name}",),
    KEY: ("aws kms schedule-key-deletion --key-id {name}",),
    API: ("aws logs delete-log-group --log-group-name {name}",),
}
WORDS = {TABLE: "table", BUCKET: "bucket", KEY: "key", API: "log group"}
PAGE = 1_000
PAGES_SAID = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One resource of a deployed stack: its physical name; whether it stays, or could not go."""

    logical: str
    kind: str
    name: str
    kept: bool
    stuck: bool = False


def resources_of(stack: str, lend: Lend) -> list[Resource]:
    """List the resources of a stack as it is deployed; none where there is no stack."""
    try:
        with lend("cloudformation") as cloudformation:
            template = cloudformation.get_template(StackName=stack)["TemplateBody"]
            pages = cloudformation.get_paginator("list_stack_resources").paginate(StackName=stack)
            deployed = [item for page in pages for item in page["StackResourceSummaries"]]
    except ClientError as error:
        if error.response["Error"]["Code"] == "ValidationError":  # "Stack … does not exist"
            return []
        raise LocalStackError(f"Cannot ask what the stack {stack} holds: {error}") from error
    except BotoCoreError as error:
        raise LocalStackError(f"Cannot ask what the stack {stack} holds: {error}") from error
    declared = (json.loads(template) if isinstance(template, str) else template)["Resources"]
    return [
        Resource(
            logical=item["LogicalResourceId"],
            kind=item["ResourceType"],
            name=item["PhysicalResourceId"],
            kept=_policy(declared.get(item["LogicalResourceId"], {})).startswith("Retain"),
            stuck=item["ResourceStatus"] == "DELETE_FAILED",
        )
        for item in deployed
        if item.get("PhysicalResourceId") and item["ResourceStatus"] != "DELETE_COMPLETE"
    ]


def _policy(declared: Mapping[str, Any]) -> str:
    return str(declared.get("DeletionPolicy", "Delete"))


# --- what goes ----------------------------------------------------------------------------------


def empty(resources: list[Resource], lend: Lend, say: Say = lambda _: None) -> int:
    """Empty the buckets that go with their stack; how many objects and uploads that were."""
    removed = 0
    for resource in resources:
        if resource.kind == BUCKET and not resource.kept:
            try:
                with lend("s3") as s3:
                    removed += _empty(resource.name, s3, say)
            except (BotoCoreError, ClientError) as error:
                raise LocalStackError(
                    f"Cannot empty the bucket {resource.name}: {error}"
                ) from error
    return removed


def _empty(bucket: str, s3: Any, say: Say) -> int:
    removed = 0
    try:
        for number, keys in enumerate(_versions(bucket, s3), 1):
            wanted = {"Objects": keys, "Quiet": True}
            answer = s3.delete_objects(Bucket=bucket, Delete=wanted)
            if errors := answer.get("Errors"):
                raise LocalStackError(
                    f"Cannot empty the bucket {bucket}: {errors[0]['Key']}: {errors[0]['Message']}"
                )
            removed += len(keys)
            if number % PAGES_SAID == 0:
                say(f"emptying the bucket: {removed:,} objects removed")
        for page in s3.get_paginator("list_multipart_uploads").paginate(Bucket=bucket):
            for upload in page.get("Uploads", ()):
                named = {"Key": upload["Key"], "UploadId": upload["UploadId"]}
                s3.abort_multipart_upload(Bucket=bucket, **named)
                removed += 1
    except ClientError as error:
        if error.response["Error"]["Code"] == "NoSuchBucket":
            return removed
        raise
    if removed:
        say(f"the bucket {bucket} is empty: {removed:,} objects removed")
    return removed


def _versions(bucket: str, s3: Any) -> Iterator[list[dict[str, str]]]:
    """List what a bucket holds, versions and delete markers too, by the page, until it is empty.

    Always the first page, as what it lists is deleted before the next one is asked for.
    """
    while True:
        page = s3.list_object_versions(Bucket=bucket, MaxKeys=PAGE)
        found = [*page.get("Versions", ()), *page.get("DeleteMarkers", ())]
        if not found:
            return
        yield [{"Key": item["Key"], "VersionId": item["VersionId"]} for item in found[:PAGE]]


def drop_logs(resources: list[Resource], lend: Lend) -> None:
    """Delete the log groups that API Gateway made by itself, where nothing of the stack stays."""
    if any(resource.kept for resource in resources if resource.kind in IDENTIFIERS):
        return
    for group in _groups(resources, lend):
        with lend("logs") as logs:
            logs.delete_log_group(logGroupName=group)


def _groups(resources: list[Resource], lend: Lend) -> list[str]:
    apis = [resource.name for resource in resources if resource.kind == API]
    with lend("logs") as logs:
        return [
            group["logGroupName"]
            for api in apis
            for group in logs.describe_log_groups(
                logGroupNamePrefix=f"API-Gateway-Execution-Logs_{api}/"
            )["logGroups"]
        ]


# --- what stays ---------------------------------------------------------------------------------


def protect(resources: list[Resource], lend: Lend) -> None:
    """Protect the tables that stay against deletion, and no others."""
    with lend("dynamodb") as dynamodb:
        for resource in resources:
            if resource.kind == TABLE:
                table = dynamodb.describe_table(TableName=resource.name)["Table"]
                if bool(table.get("DeletionProtectionEnabled")) != resource.kept:
                    dynamodb.update_table(
                        TableName=resource.name, DeletionProtectionEnabled=resource.kept
                    )


def finish(resources: list[Resource], lend: Lend, file: Path, say: Say) -> None:
    """After a removal: drop what nothing of the stack needs any more, say and note what stays."""
    drop_logs(resources, lend)
    remember(resources, lend, file, say)


def remember(resources: list[Resource], lend: Lend, file: Path, say: Say) -> None:
    """Say what a stack has left, with the commands that remove it; write down how to adopt it."""
    kept = [resource for resource in resources if resource.kept and resource.kind in IDENTIFIERS]
    if not kept:
        return
    groups = [
        Resource(logical="", kind=API, name=group, kept=True) for group in _groups(resources, lend)
    ]
    say("these stay, and may be billed; remove them by")
    for resource in [*kept, *groups]:
        for command in COMMANDS[resource.kind]:
            say(f"  {command.format(name=resource.name)}")
    file.parent.mkdir(parents=True, exist_ok=True)
    mapping = {one.logical: {IDENTIFIERS[one.kind]: one.name} for one in kept}
    file.write_text(json.dumps(mapping, indent=2) + "\n")
    say(f"`orbweaver deploy` takes up again what is there then: {file}")
