"""AWS's JSON protocols, as far as faults need them.

- The operation is the part of `X-Amz-Target` after the dot, the service the part before it.
- An error is a body with `__type`, and for SQS also the header `x-amzn-query-error`.
- A partial batch: SQS lists `Failed` entries; DynamoDB returns `UnprocessedItems` or
  `UnprocessedKeys`; a PartiQL batch has an error in place of the statement's result.

Source: Smithy, AWS JSON 1.0; API references of Amazon SQS and Amazon DynamoDB.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from random import Random
from typing import Any

SERVICES = {"DynamoDB_20120810": "dynamodb", "AmazonSQS": "sqs", "AWSEvents": "events"}
NAMESPACES = {"dynamodb": "com.amazonaws.dynamodb.v20120810#", "sqs": "com.amazonaws.sqs#"}
# Error codes of each service for throttling, and for its own faults.
THROTTLES = {
    "dynamodb": (
        "ProvisionedThroughputExceededException",
        "ThrottlingException",
        "RequestLimitExceeded",
    ),
    "sqs": ("RequestThrottled", "ThrottlingException"),
}
ERRORS = {"dynamodb": "InternalServerError", "sqs": "InternalFailure"}
BAD_REQUEST, SERVER_ERROR = 400, 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A faked answer."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)


def operation_of(target: str | None) -> tuple[str, str]:
    """Return service and operation from `X-Amz-Target`; empty for another protocol."""
    prefix, _, operation = (target or "").partition(".")
    return SERVICES.get(prefix, ""), operation


def throttled(service: str, chance: Random) -> Reply:
    return _error(service, chance.choice(THROTTLES[service]), BAD_REQUEST)


def failed(service: str) -> Reply:
    return _error(service, ERRORS[service], SERVER_ERROR)


def _error(service: str, code: str, status: int) -> Reply:
    body = {"__type": NAMESPACES[service] + code, "message": "chaos"}
    headers = {"Content-Type": "application/x-amz-json-1.0", "x-amzn-RequestId": "chaos"}
    if service == "sqs":
        fault = "Sender" if status < SERVER_ERROR else "Receiver"
        headers["x-amzn-query-error"] = f"{code};{fault}"
    return Reply(status=status, body=json.dumps(body).encode(), headers=headers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A split batch: the forwarded request, and the other entries."""

    operation: str
    request: bytes
    rest: dict[str, Any]

    def complete(self, answer: bytes) -> bytes:
        """Add the entries that were not forwarded to the answer."""
        body: dict[str, Any] = json.loads(answer)
        match self.operation:
            case "SendMessageBatch":
                body["Failed"] = [*body.get("Failed", ()), *map(_refused, self.rest["Entries"])]
            case "BatchWriteItem":
                body["UnprocessedItems"] = self.rest
            case "BatchGetItem":
                body["UnprocessedKeys"] = self.rest
            case _:
                error = {"Code": "ThrottlingError", "Message": "chaos"}
                body["Responses"] += [{"Error": error} for _ in self.rest["Statements"]]
        return json.dumps(body).encode()


def part(operation: str, request: bytes, chance: Random) -> Part | None:
    """Split a batch at a random place; None if it cannot be split."""
    body: dict[str, Any] = json.loads(request)
    match operation:
        case "SendMessageBatch":
            return _cut(operation, body, body, "Entries", chance)
        case "BatchExecuteStatement":
            return _cut(operation, body, body, "Statements", chance)
        case "BatchWriteItem" | "BatchGetItem":
            return _cut_table(operation, body, chance)
    return None


def _cut(
    operation: str, body: dict[str, Any], holder: dict[str, Any], key: str, chance: Random
) -> Part | None:
    entries = holder[key]
    if len(entries) < 2:  # At least one part is forwarded, and one is not.
        return None
    place = chance.randrange(1, len(entries))
    rest = {**holder, key: entries[place:]}
    holder[key] = entries[:place]
    return Part(operation=operation, request=json.dumps(body).encode(), rest=rest)


def _cut_table(operation: str, body: dict[str, Any], chance: Random) -> Part | None:
    """Split the entries of the first table; the product uses one table per batch."""
    tables = body["RequestItems"]
    table = next(iter(tables))
    holder, key = (tables[table], "Keys") if operation == "BatchGetItem" else (tables, table)
    cut = _cut(operation, body, holder, key, chance)
    if cut is None:
        return None
    rest = {table: cut.rest} if operation == "BatchGetItem" else cut.rest
    return Part(operation=operation, request=cut.request, rest=rest)


def _refused(entry: dict[str, Any]) -> dict[str, Any]:
    return {
        "Id": entry["Id"],
        "SenderFault": False,
        "Code": "InternalError",
        "Message": "chaos",
    }


def messages(operation: str, request: bytes) -> list[tuple[str, str]]:
    """Return the messages that a call sends: queue and body."""
    if operation not in ("SendMessage", "SendMessageBatch"):
        return []
    body: dict[str, Any] = json.loads(request)
    entries = body.get("Entries", [body])
    return [(body["QueueUrl"], entry["MessageBody"]) for entry in entries]
