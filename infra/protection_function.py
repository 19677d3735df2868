"""Protects tables against deletion or releases them: the code of a custom resource.

The template contains this file. It uses the boto3 of the Lambda runtime.
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
    """Answer CloudFormation. Removing this resource leaves the tables unchanged."""
    status, reason = "SUCCESS", ""
    wanted = event["ResourceProperties"]
    if event["RequestType"] != "Delete":
        try:
            for table in wanted["Tables"]:
                protect(table, wanted["Protected"] == "true")
        except Exception as error:  # without an answer, CloudFormation waits for an hour
            status, reason = "FAILED", f"{type(error).__name__}: {error}"
            print(reason)
            if event["RequestType"] == "Create":
                release(wanted["Tables"])
    respond(event, status, reason)


def protect(table: str, wanted: bool) -> None:
    """Set the protection of a table if it differs. A busy table is tried again."""
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
    """Let CloudFormation remove the tables of a failed first create."""
    for table in tables:
        try:
            protect(table, False)
        except Exception as error:
            print(f"{table} stays protected: {error}")


def respond(event: dict[str, Any], status: str, reason: str) -> None:
    """Send the result to CloudFormation's response URL."""
    named = {key: event[key] for key in ("StackId", "RequestId", "LogicalResourceId")}
    answer = {**named, "Status": status, "Reason": reason, "PhysicalResourceId": NAME}
    body = json.dumps(answer).encode()
    # S3 signed the address without a content type.
    request = urllib.request.Request(
        event["ResponseURL"], data=body, headers={"content-type": ""}, method="PUT"
    )
    urllib.request.urlopen(request, timeout=ANSWER_S).close()
