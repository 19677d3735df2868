"""IAM permissions that an AWS request needs: actions on resources.

A resource is the last part of its ARN. A file is represented by its top folder, because roles name
no deeper folders. Source: docs.aws.amazon.com/service-authorization/latest/reference/.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import Any, NamedTuple

ASKED = "orbweaver.recorded"
# A batch needs the permission of its entries: SendMessageBatch needs `sqs:SendMessage`.
ONE_OF_BATCH = re.compile("Batch$")
STATEMENT = re.compile(r"\s*(\w+)\s+(?:INTO\s+|FROM\s+|.*\sFROM\s+)?\"?([\w.-]+)", re.IGNORECASE)
TRANSACTED = {
    "Put": "PutItem",
    "Update": "UpdateItem",
    "Delete": "DeleteItem",
    "ConditionCheck": "ConditionCheckItem",
    "Get": "GetItem",
}
# Secrets Manager appends a hyphen and six characters to a secret's name.
SUFFIX = "-??????"


class Permission(NamedTuple):
    """One action on one resource, for example `dynamodb:GetItem` on `table/crawls`."""

    action: str
    resource: str


def needed(service: str, operation: str, params: Mapping[str, Any]) -> Iterator[Permission]:
    """Yield the permissions that a request needs, perhaps with duplicates."""
    match service:
        case "dynamodb":
            yield from _table_permissions(operation, params)
        case "sqs":
            queue = str(params.get("QueueUrl", "*")).rpartition("/")[2]
            yield Permission(f"sqs:{ONE_OF_BATCH.sub('', operation)}", queue)
        case "s3":
            yield from _file_permissions(operation, params)
        case "events":
            for entry in params.get("Entries", ()):
                bus = str(entry.get("EventBusName", "default")).rpartition("/")[2]
                yield Permission(f"events:{operation}", f"event-bus/{bus}")
        case "glue":
            yield from _catalogue_permissions(operation, params)
        case "secretsmanager":
            yield Permission(
                f"secretsmanager:{operation}", _secret_resource(str(params["SecretId"]))
            )
        case "ssm":
            name = str(params["Name"]).lstrip("/")
            yield Permission(f"ssm:{operation}", f"parameter/{name}")
        case _:
            yield Permission(f"{service}:{operation}", "*")


def absent(service: str, params: Mapping[str, Any]) -> Iterator[Permission]:
    """Yield the permission that makes AWS answer 404 instead of 403 for a missing resource."""
    if service == "s3":
        yield Permission("s3:ListBucket", str(params["Bucket"]))


def _table_permissions(operation: str, params: Mapping[str, Any]) -> Iterator[Permission]:
    match operation:
        case "TransactWriteItems" | "TransactGetItems":
            for action in params["TransactItems"]:
                ((kind, item),) = action.items()
                yield _table_permission(TRANSACTED[kind], item["TableName"])
        case "BatchGetItem" | "BatchWriteItem":
            for table in params["RequestItems"]:
                yield _table_permission(operation, table)
        case "BatchExecuteStatement":
            for statement in params["Statements"]:
                yield _statement_permission(statement["Statement"])
        case "ExecuteStatement":
            yield _statement_permission(params["Statement"])
        case _:
            yield _table_permission(operation, str(params.get("TableName", "*")))


def _statement_permission(statement: str) -> Permission:
    found = STATEMENT.match(statement)
    if found is None:
        message = f"not a PartiQL statement: {statement!r}"
        raise ValueError(message)
    return _table_permission(f"PartiQL{found[1].capitalize()}", found[2])


def _table_permission(operation: str, table: str) -> Permission:
    return Permission(f"dynamodb:{operation}", f"table/{table.rpartition('/')[2]}")


def _file_permissions(operation: str, params: Mapping[str, Any]) -> Iterator[Permission]:
    bucket = str(params.get("Bucket", "*"))
    match operation:
        case "ListObjectsV2":
            yield Permission("s3:ListBucket", bucket)
        case "GetObject" | "HeadObject":
            yield Permission("s3:GetObject", _file_resource(bucket, params["Key"]))
        case "DeleteObjects":
            for one in params["Delete"]["Objects"]:
                yield Permission("s3:DeleteObject", _file_resource(bucket, one["Key"]))
        case "CopyObject":
            source = params["CopySource"]  # a copy also reads its source
            yield Permission("s3:GetObject", _file_resource(source["Bucket"], source["Key"]))
            yield Permission("s3:PutObject", _file_resource(bucket, params["Key"]))
        case _:
            yield Permission(f"s3:{operation}", _file_resource(bucket, params.get("Key", "")))
    if "ACL" in params:
        yield Permission("s3:PutObjectAcl", _file_resource(bucket, params["Key"]))


def _file_resource(bucket: str, key: str) -> str:
    folder, slash, _ = key.partition("/")
    return f"{bucket}/{folder}{slash}"


def _catalogue_permissions(operation: str, params: Mapping[str, Any]) -> Iterator[Permission]:
    database = params["DatabaseName"]
    table = params.get("Name") or params["TableInput"]["Name"]
    # Glue checks the catalogue and the database as well as the table.
    for resource in ("catalog", f"database/{database}", f"table/{database}/{table}"):
        yield Permission(f"glue:{operation}", resource)


def _secret_resource(secret: str) -> str:
    if secret.startswith("arn:"):
        return secret.split(":", 5)[5]
    return f"secret:{secret}{SUFFIX}"


# --- recorder, for tests --------------------------------------------------------------------------


class Recorder:
    """Appends the permissions that a client needs to a file. Several processes can share it.

    Each permission is one JSON line with function, action and resource, without keys and URLs. It
    is written before the request is sent, so denied requests are included.
    """

    def __init__(self, path: str, function: str) -> None:
        self._path = path
        self._function = function
        self._written: set[Permission] = set()

    def watch(self, client: Any) -> None:
        service = client.meta.service_model.service_id.hyphenize()
        events = client.meta.events
        events.register_last(f"provide-client-params.{service}", self._before_call)
        events.register_last(f"after-call.{service}", self._after_call)

    def _before_call(
        self, params: dict[str, Any], model: Any, context: dict[str, Any], **_: Any
    ) -> None:
        service = model.service_model.service_name
        context[ASKED] = service, params
        self._write(needed(service, model.name, params))

    def _after_call(self, http_response: Any, context: dict[str, Any], **_: Any) -> None:
        if http_response.status_code == HTTPStatus.NOT_FOUND:
            self._write(absent(*context[ASKED]))

    def _write(self, found: Iterable[Permission]) -> None:
        fresh = set(found) - self._written
        self._written |= fresh
        lines = "".join(
            json.dumps({"function": self._function, **one._asdict()}) + "\n"
            for one in sorted(fresh)
        )
        if lines:
            file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            try:
                os.write(file, lines.encode())
            finally:
                os.close(file)
