"""Billed units of a request to DynamoDB, from its parameters and its answer.

- An answer says what was consumed if that was asked for. AWS's word is final. Emulators say it of
  some operations by other rules, never more than is right, so of theirs the larger number counts.
- There are rules of the operations that the stack asks for, and of no others.
- By our own rules (budget/billing_units.py) the size of an item that was not sent and did not come
  back is not known. So these are lower bounds: an update whose answer has no attributes; a put in
  the place of a larger item; a delete; a condition that failed on an item that did not come back;
  a query or a read of some attributes only. Of a query that filters, what it read is taken to be
  like what it found.
- A refused request is billed if a condition refused it. A transaction that was cancelled counts as
  if it had gone through, an upper bound where it was in conflict with another one. So does a
  request whose answer was lost. What was throttled costs nothing.

Source: Amazon DynamoDB developer guide, "Read and write operations", "Transactions: capacity";
API reference, ConsumedCapacity.
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
"""By table and term."""

BILLED_ERRORS = frozenset({"ConditionalCheckFailedException", "TransactionCanceledException"})
# Of single statements in a batch.
BILLED_CODES = frozenset({"None", "ConditionalCheckFailed", "DuplicateItem"})
NAMES = re.compile(r"'([^']*)'\s*:")
TABLE = re.compile(r"INTO\s+\"?([\w.-]+)", re.IGNORECASE)


def used(operation: str, asked: Fields, answer: Fields, *, final: bool) -> Used:
    """Say what a request was billed; `final`: the answer's own word holds where it has one."""
    rule = RULES.get(operation)
    error = answer.get("Error", {}).get("Code")
    if rule is None or (error is not None and error not in BILLED_ERRORS):
        return {}
    told = _told(operation, answer)
    if told and final:
        return told
    found = rule(asked, answer)
    for key, number in told.items():
        found[key] = max(found.get(key, 0), number)
    return found


def _told(operation: str, answer: Fields) -> Used:
    """Read what the answer says was consumed."""
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
    """Take the name out of a table's name or ARN."""
    return name.rpartition("table/")[2]


# --- one item -----------------------------------------------------------------------------------


def _size(fields: Fields, answer: Fields) -> int:
    """Size of the item that a write is about, as large as it is known to be."""
    sent = item_bytes(fields.get("Item") or fields.get("Key") or {})
    if "UpdateExpression" in fields:
        sent += _set_bytes(fields["UpdateExpression"], fields)
    came = item_bytes(answer.get("Item") or answer.get("Attributes") or {})
    return max(sent, came)


def _set_bytes(expression: str, fields: Fields) -> int:
    """Size of the values and names that an update sets, with those of its condition left out."""
    names = fields.get("ExpressionAttributeNames") or {}
    values = fields.get("ExpressionAttributeValues") or {}
    size = values_bytes(value for name, value in values.items() if name in expression)
    return size + sum(text_bytes(name) for short, name in names.items() if short in expression)


def _write(asked: Fields, answer: Fields) -> Used:
    units = write_units(_size(asked, answer))
    return {(table_name(asked["TableName"]), Term.WRITE): units}


# --- many ---------------------------------------------------------------------------------------


def _read(asked: Fields, answer: Fields) -> Used:
    """Read an item, or all that a query or a scan finds."""
    size = sum(map(item_bytes, answer.get("Items") or [answer.get("Item") or {}]))
    found, seen = answer.get("Count") or 0, answer.get("ScannedCount") or 0
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
    reasons = answer.get("CancellationReasons") or [{}] * len(actions)
    for action, reason in zip(actions, reasons, strict=False):
        (one,) = action.values()
        size = _size(one, reason)
        units[table_name(one["TableName"]), Term.WRITE] += write_units(size, transacted=True)
    return units


def _insert(asked: Fields, answer: Fields) -> Used:
    """Price a batch of PartiQL's INSERT: the names stand in the statement, the values beside it."""
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
    """Read a statement's table, and the bytes of the names it writes."""
    found = TABLE.search(statement)
    names_bytes = sum(map(text_bytes, NAMES.findall(statement)))
    return found[1] if found else "", names_bytes


RULES: dict[str, Callable[[Fields, Fields], Used]] = {
    "PutItem": _write,
    "UpdateItem": _write,
    "DeleteItem": _write,
    "BatchWriteItem": _batch_write,
    "TransactWriteItems": _transact_write,
    "BatchExecuteStatement": _insert,
    "GetItem": _read,
    "Query": _read,
    "Scan": _read,
    "BatchGetItem": _batch_get,
}
WRITES = RULES.keys() - {"GetItem", "Query", "Scan", "BatchGetItem"}
