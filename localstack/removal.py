"""Data that outlives a stack: buckets to empty, resources that are kept, commands that remove them.

- A resource whose `DeletionPolicy` in the deployed template begins with Retain is kept. It is
  reported with commands that remove it, and recorded in a file for `cdk import`. The next
  deployment of the same stack, account and region imports it. New tables would lack the claims of
  earlier crawls (URLs already queued) and their counts.
- A bucket that is removed with its stack is emptied first, because CloudFormation deletes only
  empty ones: objects, versions and incomplete uploads, 1,000 per request.
- A part of a resource is also identified by its parent: a group by its user pool. A kind without
  identifiers is a setting of the account, which the next stack sets again.

Source: docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-attribute-deletionpolicy.html,
…/resource-import-supported-resources.html, …/AmazonS3/latest/API/API_DeleteObjects.html,
…/AWSSimpleQueueService/latest/APIReference/API_DeleteQueue.html.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from localstack import layout
from localstack.errors import LocalStackError, aws_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    Say = Callable[[str], None]
    Lend = Callable[[str], AbstractContextManager[Any]]


API = "AWS::ApiGateway::RestApi"
DROP_GROUP = "aws logs delete-log-group --log-group-name {name}"
PAGE = 1_000
PAGES_SAID = 10
TABLE, BUCKET, KEY = "AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::KMS::Key"
POOL, GROUP = "AWS::Cognito::UserPool", "AWS::Cognito::UserPoolGroup"
ROLE, ACCOUNT = "AWS::IAM::Role", "AWS::ApiGateway::Account"
# SQS's minute, and an allowance for a wrong clock and for the time between the deletion of the
# queues and the deletion of the stack.
QUEUE_NAME_S = 65.0
LISTS_MAX = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A resource of a deployed stack. `name` is its physical name.

    `kept` resources outlive the stack, `stuck` ones could not be deleted. `parent` is the name of
    the resource that contains this one.
    """

    logical: str
    kind: str
    name: str
    kept: bool
    stuck: bool = False
    parent: str = ""

    @property
    def identifier(self) -> dict[str, str]:
        """Return the identifiers for a CloudFormation import, or {} if that is not possible."""
        names = KINDS[self.kind].identifiers if self.kind in KINDS else ()
        return dict(zip(names, (self.name, self.parent), strict=False))


def resources_of(stack: str, lend: Lend) -> list[Resource]:
    """Return the resources of a deployed stack, or [] if the stack does not exist."""
    deed = f"ask what the stack {stack} holds"
    with aws_errors(deed), lend("cloudformation") as cloudformation:
        try:
            template = cloudformation.get_template(StackName=stack)["TemplateBody"]
        except ClientError as error:
            if error.response["Error"]["Code"] == "ValidationError":  # "Stack … does not exist"
                return []
            raise
        pages = cloudformation.get_paginator("list_stack_resources").paginate(StackName=stack)
        deployed = [item for page in pages for item in page["StackResourceSummaries"]]
    declared = (json.loads(template) if isinstance(template, str) else template)["Resources"]
    there = [
        item
        for item in deployed
        if item.get("PhysicalResourceId") and item["ResourceStatus"] != "DELETE_COMPLETE"
    ]
    names = {item["LogicalResourceId"]: item["PhysicalResourceId"] for item in there}
    return [_resource(item, declared.get(item["LogicalResourceId"], {}), names) for item in there]


def _resource(
    item: Mapping[str, str], declared: Mapping[str, Any], names: Mapping[str, str]
) -> Resource:
    name, parent = item["PhysicalResourceId"], ""
    if (part := PARTS.get(item["ResourceType"])) is not None and "Properties" in declared:
        own, parent_of = (declared["Properties"][key] for key in part)
        name, parent = own, names[parent_of["Ref"]]
    return Resource(
        logical=item["LogicalResourceId"],
        kind=item["ResourceType"],
        name=name,
        kept=_policy(declared).startswith("Retain"),
        stuck=item["ResourceStatus"] == "DELETE_FAILED",
        parent=parent,
    )


def _policy(declared: Mapping[str, Any]) -> str:
    return str(declared.get("DeletionPolicy", "Delete"))


# --- removed resources --------------------------------------------------------------------------


def empty(resources: list[Resource], lend: Lend, say: Say = lambda _: None) -> int:
    """Empty the buckets that are removed with their stack.

    Returns the number of removed objects and uploads.
    """
    removed = 0
    for resource in resources:
        if resource.kind == BUCKET and not resource.kept:
            with aws_errors(f"empty the bucket {resource.name}"), lend("s3") as s3:
                removed += _empty(resource.name, s3, say)
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
    """Yield the versions and delete markers of a bucket, in pages.

    The caller must delete each page before it takes the next one.
    """
    while True:
        page = s3.list_object_versions(Bucket=bucket, MaxKeys=PAGE)
        found = [*page.get("Versions", ()), *page.get("DeleteMarkers", ())]
        if not found:
            return
        yield [{"Key": item["Key"], "VersionId": item["VersionId"]} for item in found[:PAGE]]


def drop_logs(resources: list[Resource], lend: Lend) -> None:
    """Delete the log groups that API Gateway created for the stack's API.

    If the stack has resources that are kept after its removal, the log groups are kept, too.
    """
    if any(one.kept and not KINDS[one.kind].shared for one in resources if one.kind in KINDS):
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


def pause_s(stack: str, lend: Lend, now: datetime) -> float:
    """Return for how many seconds SQS still refuses the names of a removed stack's queues."""
    states = ["DELETE_COMPLETE", "ROLLBACK_COMPLETE"]
    with lend("cloudformation") as cloudformation:
        pages = cloudformation.get_paginator("list_stacks").paginate(StackStatusFilter=states)
        ages_s = [
            (now - one["DeletionTime"]).total_seconds()
            for page in islice(pages, LISTS_MAX)
            for one in page["StackSummaries"]
            if one["StackName"] == stack and one.get("DeletionTime")
        ]
    return max(0.0, QUEUE_NAME_S - min(ages_s, default=QUEUE_NAME_S))


def wait(stack: str, lend: Lend, say: Say) -> None:
    """Wait until SQS accepts the queue names of the stack: up to 60 s after their deletion."""
    if seconds := pause_s(stack, lend, datetime.now(tz=UTC)):
        say(f"waiting {seconds:.0f} s: SQS holds names of queues back for a minute after removal")
        time.sleep(seconds)


# --- kept resources -----------------------------------------------------------------------------


def left_file(stack: str, lend: Lend) -> Path:
    """Return the path of the file that lists the resources left by a stack.

    The name of the stack, the account and the region determine the path.
    """
    with lend("sts") as sts:
        account, region = sts.get_caller_identity()["Account"], sts.meta.region_name
    return layout.LEFT / f"{stack}-{account}-{region}.json"


def forget_imported(file: Path, declared: Collection[str]) -> None:
    """Remove the resources that the template declares from the file of a removed stack."""
    # Example of another resource: a user pool, until a deployment hosts the console again.
    left = {name: one for name, one in json.loads(file.read_text()).items() if name not in declared}
    if left:
        file.write_text(json.dumps(left, indent=2) + "\n")
    else:
        file.unlink()


def remember(resources: list[Resource], lend: Lend, file: Path, say: Say) -> None:
    """Report kept resources with commands that remove them. Record them in `file` for an import."""
    kept = [resource for resource in resources if resource.kept and resource.kind in KINDS]
    own = [one for one in kept if not KINDS[one.kind].shared]
    if own:
        say("these stay, and may be billed; remove them by")
        names = {one.name for one in own}
        for one in own:
            if one.parent not in names:  # otherwise the commands for its parent remove it
                _say_commands(one, say)
        for group in _groups(resources, lend):
            say(f"  {DROP_GROUP.format(name=group)}")
    if shared := [one for one in kept if KINDS[one.kind].shared]:
        say("these stay for all APIs of the account and region, and cost nothing; remove them by")
        # Roles come last, because settings use them.
        for one in sorted(shared, key=lambda one: bool(one.identifier)):
            _say_commands(one, say)
    if mapping := {one.logical: one.identifier for one in kept if one.identifier}:
        file.parent.mkdir(parents=True, exist_ok=True)
        before = json.loads(file.read_text()) if file.exists() else {}
        file.write_text(json.dumps({**before, **mapping}, indent=2) + "\n")
        say(f"`orbweaver deploy` takes up again what is there then: {file}")


def _say_commands(one: Resource, say: Say) -> None:
    for command in KINDS[one.kind].commands:
        say(f"  {command.format(name=one.name, parent=one.parent)}")


def dropped(before: list[Resource], after: list[Resource]) -> list[Resource]:
    """Return the resources that an update removed from the stack without deleting them."""
    names = {one.logical for one in after}
    return [one for one in before if one.kept and one.logical not in names]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of resource. CloudFormation imports it by `identifiers`.

    `commands` remove the resource. `shared` means that the whole account uses it.
    """

    identifiers: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    shared: bool = False


KINDS: Mapping[str, Kind] = {
    TABLE: Kind(
        identifiers=("TableName",),
        commands=(
            "aws dynamodb update-table --no-deletion-protection-enabled --table-name {name}",
            "aws dynamodb delete-table --table-name {name}",
        ),
    ),
    BUCKET: Kind(
        identifiers=("BucketName",),
        commands=("aws s3 rb --force s3://{name}",),
    ),
    KEY: Kind(
        identifiers=("KeyId",),
        commands=("aws kms schedule-key-deletion --key-id {name}",),
    ),
    POOL: Kind(
        identifiers=("UserPoolId",),
        commands=(
            "aws cognito-idp update-user-pool --deletion-protection INACTIVE --user-pool-id {name}",
            "aws cognito-idp delete-user-pool --user-pool-id {name}",
        ),
    ),
    GROUP: Kind(
        identifiers=("GroupName", "UserPoolId"),
        commands=("aws cognito-idp delete-group --group-name {name} --user-pool-id {parent}",),
    ),
    ROLE: Kind(
        identifiers=("RoleName",),
        commands=(
            (
                "aws iam detach-role-policy --role-name {name} --policy-arn"
                " arn:aws:iam::aws:policy/service-role/AmazonAPIGatewayPushToCloudWatchLogs"
            ),
            "aws iam delete-role --role-name {name}",
        ),
        shared=True,
    ),
    ACCOUNT: Kind(
        commands=(
            (
                "aws apigateway update-account"
                " --patch-operations op=replace,path=/cloudwatchRoleArn,value=''"
            ),
        ),
        shared=True,
    ),
}


# Properties of the template with a resource's own name and with its parent. They are the
# identifiers of such a resource, because its physical name does not identify it.
PARTS: Mapping[str, tuple[str, str]] = {GROUP: ("GroupName", "UserPoolId")}
