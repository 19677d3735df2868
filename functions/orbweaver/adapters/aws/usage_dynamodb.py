"""Billed units of a DynamoDB request, from its parameters and its response.

The size of an item is unknown if it is not sent or returned, so some results are lower bounds (for
example of deletes). Sources: Amazon DynamoDB developer guide, "Read and write operations",
"Transactions: capacity". API reference, ConsumedCapacity.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from orbweaver.budget.billing_units import (
    Term,
    item_bytes,
    read_halves,
    text_bytes,
    values_bytes,
    write_units,
)

Fields: TypeAlias = "Mapping[str, Any]"
Used: TypeAlias = "dict[tuple[str, Term], int]"
"""Number of units by table and billing unit."""

# Requests that a condition refused are billed. Throttled requests are free.
BILLED_ERRORS = frozenset({"ConditionalCheckFailedException", "TransactionCanceledException"})
# Result codes of single statements in a batch that are billed.
BILLED_CODES = frozenset({"None", "ConditionalCheckFailed", "DuplicateItem"})
NAMES = re.compile(r"'([^']*)'\s*:")
TABLE = re.compile(r"INTO\s+\"?([\w.-]+)", re.IGNORECASE)


def used(operation: str, asked: Fields, answer: Fields, *, final: bool) -> Used:
    """Return the billed units of a request. `final`: the response's consumed capacity is exact."""
    rule = RULES.get(operation)
    error = answer.get("Error", {}).get("Code")
    if rule is None or (error is not None and error not in BILLED_ERRORS):
        return {}
    told = _reported_units(operation, answer)
    if told and final:
        return told
    # Emulators report some operations by other rules, never too high.
    found = rule(asked, answer)
    for key, number in told.items():
        found[key] = max(found.get(key, 0), number)
    return found


def _reported_units(operation: str, answer: Fields) -> Used:
    capacities = answer.get("ConsumedCapacity") or ()
    if isinstance(capacities, dict):
        capacities = (capacities,)
    found: Used = {}
    for capacity in capacities:
        table = table_name(capacity.get("TableName", ""))
        read, write = capacity.get("ReadCapacityUnits"), capacity.get("WriteCapacityUnits")
        if read is None and write is None:
            both = capacity.get("CapacityUnits", 0)
            read, write = (0, both) if operation in WRITES else (both, 0)
        for term, number in ((Term.READ_HALVES, 2 * (read or 0)), (Term.WRITE, write or 0)):
            if number:
                found[table, term] = found.get((table, term), 0) + round(number)
    return found


def table_name(name: str) -> str:
    return name.rpartition("table/")[2]


# --- one item -----------------------------------------------------------------------------------


def _size(fields: Fields, answer: Fields) -> int:
    """Return the known size of the item that a write changes."""
    sent = item_bytes(fields.get("Item") or fields.get("Key") or {})
    if "UpdateExpression" in fields:
        sent += _set_bytes(fields["UpdateExpression"], fields)
    came = item_bytes(answer.get("Item") or answer.get("Attributes") or {})
    return max(sent, came)


def _set_bytes(expression: str, fields: Fields) -> int:
    names = fields.get("ExpressionAttributeNames") or {}
    values = fields.get("ExpressionAttributeValues") or {}
    size = values_bytes(value for name, value in values.items() if name in expression)
    return size + sum(text_bytes(name) for short, name in names.items() if short in expression)


def _write(asked: Fields, answer: Fields) -> Used:
    units = write_units(_size(asked, answer))
    return {(table_name(asked["TableName"]), Term.WRITE): units}


# --- several items ------------------------------------------------------------------------------


def _read(asked: Fields, answer: Fields) -> Used:
    size = sum(map(item_bytes, answer.get("Items") or [answer.get("Item") or {}]))
    found, seen = answer.get("Count") or 0, answer.get("ScannedCount") or 0
    # Items that a filter skipped are assumed to have the same size.
    if found:
        size = size * max(found, seen) // found
    halves = read_halves(size, consistent=bool(asked.get("ConsistentRead")))
    return {(table_name(asked["TableName"]), Term.READ_HALVES): halves}


def _batch_get(asked: Fields, answer: Fields) -> Used:
    units: Used = defaultdict(int)
    left_over = answer.get("UnprocessedKeys") or {}
    for table, request in asked["RequestItems"].items():
        consistent = bool(request.get("ConsistentRead"))
        items = (answer.get("Responses") or {}).get(table) or ()
        left = len((left_over.get(table) or {}).get("Keys") or ())
        absent = max(0, len(request["Keys"]) - left - len(items))
        halves = absent * read_halves(0, consistent=consistent)
        halves += sum(read_halves(item_bytes(item), consistent=consistent) for item in items)
        units[table_name(table), Term.READ_HALVES] += halves
    return units


def _batch_write(asked: Fields, answer: Fields) -> Used:
    units: Used = defaultdict(int)
    for sign, batch in ((1, asked["RequestItems"]), (-1, answer.get("UnprocessedItems") or {})):
        for table, requests in batch.items():
            number = sum(_batched(request) for request in requests)
            units[table_name(table), Term.WRITE] += sign * number
    return units


def _batched(request: Fields) -> int:
    (one,) = request.values()
    return write_units(_size(one, {}))


def _transact_write(asked: Fields, answer: Fields) -> Used:
    units: Used = defaultdict(int)
    actions = asked["TransactItems"]
    # A cancelled transaction, or one without a response, counts as if it had succeeded.
    reasons = answer.get("CancellationReasons") or [{}] * len(actions)
    for action, reason in zip(actions, reasons, strict=False):
        (one,) = action.values()
        size = _size(one, reason)
        units[table_name(one["TableName"]), Term.WRITE] += write_units(size, transacted=True)
    return units


def _batch_insert(asked: Fields, answer: Fields) -> Used:
    units: Used = defaultdict(int)
    statements = asked["Statements"]
    results = answer.get("Responses") or [{}] * len(statements)
    for statement, result in zip(statements, results, strict=False):
        error = result.get("Error", {})
        if error.get("Code", "None") in BILLED_CODES:
            table, names_bytes = _parsed(statement["Statement"])
            sent = names_bytes + values_bytes(statement.get("Parameters") or ())
            units[table, Term.WRITE] += write_units(max(sent, item_bytes(error.get("Item") or {})))
    return units


@lru_cache(maxsize=256)
def _parsed(statement: str) -> tuple[str, int]:
    """Return a statement's table, and the size of the names in it."""
    found = TABLE.search(statement)
    names_bytes = sum(map(text_bytes, NAMES.findall(statement)))
    return found[1] if found else "", names_bytes


RULES: dict[str, Callable[[Fields, Fields], Used]] = {
    "PutItem": _write,
    "UpdateItem": _write,
    "DeleteItem": _write,
    "BatchWriteItem": _batch_write,
    "TransactWriteItems": _transact_write,
    "BatchExecuteStatement": _batch_insert,
    "GetItem": _read,
    "Query": _read,
    "Scan": _read,
    "BatchGetItem": _batch_get,
}
WRITES = RULES.keys() - {"GetItem", "Query", "Scan", "BatchGetItem"}
