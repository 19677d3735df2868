"""Data that outlives a stack: what is emptied, what is left with which command, what is adopted.

Rules
- The deployed template decides: a resource whose `DeletionPolicy` begins with Retain stays.
- A bucket that goes with its stack is emptied first, for CloudFormation deletes none that holds
  anything: objects, versions and unfinished uploads, 1,000 a request.
- What stays is named with the command that removes it, and written to a file. The next deployment
  of the same stack imports what is in the file and still there: new tables beside the old ones
  would begin without claims and counts.
- Tables that stay are protected against deletion, after the deployment instead of by the template:
  CloudFormation could not take a protected table away again when a first create fails.
- SQS refuses the name of a deleted queue for 60 s, so a deployment waits for as long.

Source: docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-attribute-deletionpolicy.html,
…/AWSCloudFormation/latest/UserGuide/import-resources-supported-resources.html,
…/AWSSimpleQueueService/latest/APIReference/API_DeleteQueue.html,
…/AmazonS3/latest/API/API_DeleteObjects.html.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from localstack.errors import LocalStackError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from datetime import datetime
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
QUEUE_NAME_S = 60.0
# What CloudFormation's own clock may be off, and what lies between a queue and the end of a stack.
MARGIN_S = 5.0
LISTS_MAX = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One resource of a deployed stack; `name` is its physical one."""

    logical: str
    kind: str
    name: str
    kept: bool


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


def place(stack: str, folder: Path, lend: Lend) -> Path:
    """Name the file for what a stack of this name leaves in an account and region."""
    with lend("sts") as sts:
        account, region = sts.get_caller_identity()["Account"], sts.meta.region_name
    return folder / f"{stack}-{account}-{region}.json"


def adoptable(file: Path, lend: Lend, say: Say) -> dict[str, dict[str, str]]:
    """Read what may be imported: what an earlier stack left, as far as it is there."""
    if not file.exists():
        return {}
    mapping: dict[str, dict[str, str]] = json.loads(file.read_text())
    found = {}
    for logical, identifier in mapping.items():
        ((kind, name),) = identifier.items()
        if _exists(kind, name, lend):
            found[logical] = identifier
        else:
            say(f"{name} is not there any more, and begins anew")
    return found


def _exists(kind: str, name: str, lend: Lend) -> bool:
    service, operation, word = {
        "TableName": ("dynamodb", "describe_table", "TableName"),
        "BucketName": ("s3", "head_bucket", "Bucket"),
        "KeyId": ("kms", "describe_key", "KeyId"),
    }[kind]
    try:
        with lend(service) as client:
            answer = getattr(client, operation)(**{word: name})
    except ClientError as error:
        code = error.response["Error"]["Code"]
        if code in ("ResourceNotFoundException", "404", "NoSuchBucket", "NotFoundException"):
            return False
        raise LocalStackError(f"Cannot ask for {name}: {error}") from error
    state: str = answer.get("KeyMetadata", {}).get("KeyState", "Enabled")
    return state == "Enabled"


def pause_s(stack: str, lend: Lend, now: datetime) -> float:
    """How long names of queues are not to be had, after a stack of this name has been removed."""
    states = ["DELETE_COMPLETE", "ROLLBACK_COMPLETE"]
    with lend("cloudformation") as cloudformation:
        pages = cloudformation.get_paginator("list_stacks").paginate(StackStatusFilter=states)
        removed = [
            one["DeletionTime"]
            for page in islice(pages, LISTS_MAX)
            for one in page["StackSummaries"]
            if one["StackName"] == stack and one.get("DeletionTime")
        ]
    if not removed:
        return 0.0
    past_s: float = (now - max(removed)).total_seconds()
    return max(0.0, QUEUE_NAME_S + MARGIN_S - past_s)
