"""Kinds of resources that can outlive a stack: how to import, find and remove each of them.

A part of a resource is also identified by its parent: a group by its user pool. A kind without
identifiers is a setting of the account, which the next stack sets again.

Source:
docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/resource-import-supported-resources.html.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from localstack.errors import aws_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    Lend = Callable[[str], AbstractContextManager[Any]]  # returns a client of an AWS service

TABLE, BUCKET, KEY = "AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::KMS::Key"
POOL, GROUP = "AWS::Cognito::UserPool", "AWS::Cognito::UserPoolGroup"
ROLE, ACCOUNT = "AWS::IAM::Role", "AWS::ApiGateway::Account"
ABSENT = ("ResourceNotFoundException", "404", "NoSuchBucket", "NotFoundException", "NoSuchEntity")
# State of a KMS key. A key that is scheduled for deletion can be read, but not imported.
USABLE = "Enabled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of resource. CloudFormation imports it by `identifiers`.

    `operation` of `service` reads such a resource. `parameters` are the names that this operation
    gives to the identifiers, in the same order. `commands` remove the resource. `shared` means that
    the whole account uses it.
    """

    identifiers: tuple[str, ...] = ()
    service: str = ""
    operation: str = ""
    parameters: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    shared: bool = False


KINDS: Mapping[str, Kind] = {
    TABLE: Kind(
        identifiers=("TableName",),
        service="dynamodb",
        operation="describe_table",
        parameters=("TableName",),
        commands=(
            "aws dynamodb update-table --no-deletion-protection-enabled --table-name {name}",
            "aws dynamodb delete-table --table-name {name}",
        ),
    ),
    BUCKET: Kind(
        identifiers=("BucketName",),
        service="s3",
        operation="head_bucket",
        parameters=("Bucket",),
        commands=("aws s3 rb --force s3://{name}",),
    ),
    KEY: Kind(
        identifiers=("KeyId",),
        service="kms",
        operation="describe_key",
        parameters=("KeyId",),
        commands=("aws kms schedule-key-deletion --key-id {name}",),
    ),
    POOL: Kind(
        identifiers=("UserPoolId",),
        service="cognito-idp",
        operation="describe_user_pool",
        parameters=("UserPoolId",),
        commands=(
            "aws cognito-idp update-user-pool --deletion-protection INACTIVE --user-pool-id {name}",
            "aws cognito-idp delete-user-pool --user-pool-id {name}",
        ),
    ),
    GROUP: Kind(
        identifiers=("GroupName", "UserPoolId"),
        service="cognito-idp",
        operation="get_group",
        parameters=("GroupName", "UserPoolId"),
        commands=("aws cognito-idp delete-group --group-name {name} --user-pool-id {parent}",),
    ),
    ROLE: Kind(
        identifiers=("RoleName",),
        service="iam",
        operation="get_role",
        parameters=("RoleName",),
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


def resource_exists(identifier: Mapping[str, str], lend: Lend) -> bool:
    """Return whether a resource with these identifiers exists and can be imported."""
    kind = next(one for one in KINDS.values() if {*one.identifiers} == {*identifier})
    values = [identifier[name] for name in kind.identifiers]
    asked = dict(zip(kind.parameters, values, strict=True))
    with aws_errors(f"ask for {values[0]}"), lend(kind.service) as client:
        try:
            answer = getattr(client, kind.operation)(**asked)
        except ClientError as error:
            if error.response["Error"]["Code"] in ABSENT:
                return False
            raise
    state: str = answer.get("KeyMetadata", {}).get("KeyState", USABLE)
    return state == USABLE
