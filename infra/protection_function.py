"""Protects tables against deletion, or releases them: the code of a custom resource.

It is deployed as it stands here, in the template, with the boto3 that Lambda brings.
"""

from __future__ import annotations

import json
import time
import urllib.request
from typing import Any

import boto3
from botocore.exceptions import ClientError

TRIES, PAUSE_S, ANSWER_S = 12, 2.0, 10
NAME = "table-protection"


def handler(event: dict[str, Any], _context: object) -> None:
    """Answer CloudFormation; a removal of this resource leaves the tables as they are."""
    status, reason = "SUCCESS", ""
    wanted = event["ResourceProperties"]
    if event["RequestType"] != "Delete":
        try:
            for table in wanted["Tables"]:
                protect(table, wanted["Protected"] == "true")
        except Exception as error:  # CloudFormation must hear of it, or waits for an hour
            status, reason = "FAILED", f"{type(error).__name__}: {error}"
            print(reason)
            if event["RequestType"] == "Create":
                release(wanted["Tables"])
    respond(event, status, reason)


def protect(table: str, wanted: bool) -> None:
    """Switch the protection of a table, unless it is so already; a busy table is asked again."""
    dynamodb = boto3.client("dynamodb")
    found = dynamodb.describe_table(TableName=table)["Table"]
    if bool(found.get("DeletionProtectionEnabled")) == wanted:
        return
    for left in reversed(range(TRIES)):
        try:
            dynamodb.update_table(TableName=table, DeletionProtectionEnabled=wanted)
        except ClientError as error:
            if error.response["Error"]["Code"] != "ResourceInUseException" or not left:
                raise
            time.sleep(PAUSE_S)
        else:
            return


def release(tables: list[str]) -> None:
    """Let CloudFormation take the tables of a failed first create away."""
    for table in tables:
        try:
            protect(table, False)
        except Exception as error:
            print(f"{table} stays protected: {error}")


def respond(event: dict[str, Any], status: str, reason: str) -> None:
    """Send the result to the address that CloudFormation waits at."""
    named = {key: event[key] for key in ("StackId", "RequestId", "LogicalResourceId")}
    answer = {**named, "Status": status, "Reason": reason, "PhysicalResourceId": NAME}
    body = json.dumps(answer).encode()
    # S3 signed the address without a content type.
    request = urllib.request.Request(
        event["ResponseURL"], data=body, headers={"content-type": ""}, method="PUT"
    )
    urllib.request.urlopen(request, timeout=ANSWER_S).close()
