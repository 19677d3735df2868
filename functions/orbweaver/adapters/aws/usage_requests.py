"""Billed units of requests to DynamoDB, SQS, S3 and EventBridge.

DynamoDB reports the units that a request consumed, unless it refused the request or the response
was lost. Sources: Amazon DynamoDB API reference, ConsumedCapacity; developer guide, "Read and write
operations"; pricing pages of Amazon SQS, Amazon S3 and Amazon EventBridge.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from orbweaver.budget.billing_units import Term, chunks, text_bytes

Fields: TypeAlias = "Mapping[str, Any]"
Used: TypeAlias = "dict[tuple[str, Term], int]"
"""Number of units by table and billing unit."""

WRITES = frozenset({"PutItem", "UpdateItem", "DeleteItem"})
BATCHED_WRITES = frozenset({"BatchWriteItem", "TransactWriteItems", "BatchExecuteStatement"})
READS = frozenset({"GetItem", "Query", "Scan", "BatchGetItem"})
# Operations that report their units.
REPORTING = WRITES | BATCHED_WRITES | READS
# Errors of requests that are billed, because a condition refused them. Throttled requests are free.
BILLED_ERRORS = frozenset({"ConditionalCheckFailedException", "TransactionCanceledException"})
S3_FREE = frozenset({"DeleteObject", "DeleteObjects", "DeleteBucket", "AbortMultipartUpload"})
# Beginnings of S3 operations that cost as much as PUT. All others cost as much as GET.
S3_PUTS = ("Put", "Copy", "Post", "List", "Create", "Upload", "Complete")


def dynamodb(operation: str, asked: Fields, answer: Fields) -> Used:
    """Return the reported units of a request. Without a report, return the least possible units."""
    error = answer.get("Error", {}).get("Code")
    if operation not in REPORTING or (error is not None and error not in BILLED_ERRORS):
        return {}
    return _reported(operation, answer) or _least(operation, asked)


def _reported(operation: str, answer: Fields) -> Used:
    capacities = answer.get("ConsumedCapacity") or ()
    units: Used = {}
    for capacity in (capacities,) if isinstance(capacities, dict) else capacities:
        table = table_name(capacity.get("TableName", ""))
        read, write = capacity.get("ReadCapacityUnits"), capacity.get("WriteCapacityUnits")
        if read is None and write is None:
            both = capacity.get("CapacityUnits", 0)
            read, write = (both, 0) if operation in READS else (0, both)
        for term, number in ((Term.READ_HALVES, 2 * (read or 0)), (Term.WRITE, write or 0)):
            if number:
                units[table, term] = units.get((table, term), 0) + round(number)
    return units


def _least(operation: str, asked: Fields) -> Used:
    """Count a unit for each item, whose size is unknown: a lower bound."""
    term = Term.READ_HALVES if operation in READS else Term.WRITE
    units: Used = {}
    for name, number in _items(operation, asked):
        key = table_name(name), term
        units[key] = units.get(key, 0) + number
    return units


def _items(operation: str, asked: Fields) -> Iterator[tuple[str, int]]:
    match operation:
        case "BatchGetItem":
            for table, request in asked["RequestItems"].items():
                yield table, len(request["Keys"]) * _halves(request)
        case "BatchWriteItem":
            for table, requests in asked["RequestItems"].items():
                yield table, len(requests)
        case "TransactWriteItems":
            for action in asked["TransactItems"]:
                (one,) = action.values()
                yield one["TableName"], 2
        case "BatchExecuteStatement":
            for statement in asked["Statements"]:
                _, table, *_ = statement["Statement"].split('"')
                yield table, 1
        case _:
            yield asked["TableName"], _halves(asked) if operation in READS else 1


def _halves(request: Fields) -> int:
    return 2 if request.get("ConsistentRead") else 1


def table_name(name: str) -> str:
    return name.rpartition("table/")[2]


def sqs(asked: Fields, answer: Fields) -> int:
    messages: Iterable[Fields] = answer.get("Messages") or asked.get("Entries") or (asked,)
    return chunks(sum(map(_message_bytes, messages)))


def _message_bytes(message: Fields) -> int:
    size = text_bytes(message.get("MessageBody") or message.get("Body") or "")
    for name, attribute in (message.get("MessageAttributes") or {}).items():
        size += text_bytes(name) + sum(len(part) for part in attribute.values())
    return size


def s3(operation: str) -> tuple[Term, int]:
    if operation in S3_FREE:
        return Term.S3_GET, 0
    return (Term.S3_PUT if operation.startswith(S3_PUTS) else Term.S3_GET), 1


def events(asked: Fields) -> int:
    return sum(chunks(_event_bytes(entry)) for entry in asked.get("Entries") or ())


def _event_bytes(entry: Fields) -> int:
    texts = (entry.get("Source"), entry.get("DetailType"), entry.get("Detail"))
    return sum(text_bytes(text) for text in (*texts, *entry.get("Resources", ())) if text)
