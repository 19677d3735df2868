"""Checks of DynamoDB's single items and transactions, on the tables of the doctor's own stack."""

from __future__ import annotations

import secrets
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

from botocore.exceptions import ClientError

from localstack.doctor.ground import (
    Finding,
    Ground,
    Seen,
    code_of,
    expect,
    failed,
    judged,
    passed,
    probe,
    refused,
    word,
)

TABLE = "UrlsTable"
FREE = "attribute_not_exists(k)"
RIVALS = 8
ITEM_BYTES_MAX, ACTIONS_MAX = 409_600, 100
CONDITION, CANCELLED = "ConditionalCheckFailedException", "TransactionCanceledException"
REASONS = ("None", "ConditionalCheckFailed", "TransactionConflict", "ThrottlingError")


def key() -> str:
    return f"doctor-{secrets.token_hex(8)}"


def put(ground: Ground, name: str, **options: Any) -> dict[str, Any]:
    item = {"k": {"S": name}, **options.pop("Item", {})}
    answer: dict[str, Any] = ground.client("dynamodb").put_item(
        TableName=ground.outputs[TABLE], Item=item, **options
    )
    return answer


def get(ground: Ground, name: str) -> dict[str, Any]:
    """Read an item consistently. Returns {} if it does not exist."""
    found: dict[str, Any] = (
        ground.client("dynamodb")
        .get_item(TableName=ground.outputs[TABLE], Key={"k": {"S": name}}, ConsistentRead=True)
        .get("Item", {})
    )
    return found


def insertion(ground: Ground, name: str, **item: Any) -> dict[str, Any]:
    """Return an action of a transaction: put an item if its key is free."""
    return {
        "Put": {
            "TableName": ground.outputs[TABLE],
            "Item": {"k": {"S": name}, **item},
            "ConditionExpression": FREE,
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
    }


def addition(ground: Ground, name: str) -> dict[str, Any]:
    """Return an action of a transaction: add 1 to a counter."""
    return {
        "Update": {
            "TableName": ground.outputs[TABLE],
            "Key": {"k": {"S": name}},
            "UpdateExpression": "ADD n :one",
            "ExpressionAttributeValues": {":one": {"N": "1"}},
        }
    }


def _response(error: ClientError) -> dict[str, Any]:
    return cast("dict[str, Any]", error.response)


def conditions(ground: Ground) -> Finding:
    name = key()
    ground.client("dynamodb")  # create the shared client before threads use it

    def one(rival: int) -> str:
        try:
            put(ground, name, Item={"by": {"N": str(rival)}}, ConditionExpression=FREE)
        except ClientError as error:
            return code_of(error)
        return ""

    with ThreadPoolExecutor(RIVALS) as threads:
        codes = list(threads.map(one, range(RIVALS)))
    won, lost = codes.count(""), codes.count(CONDITION)
    right = (won, lost) == (1, RIVALS - 1)
    return expect(right, "not exactly one won", won=won, lost=lost, rivals=RIVALS)


def returned(ground: Ground) -> Finding:
    """Check that a failed condition returns the existing item."""
    name = key()
    put(ground, name, Item={"n": {"N": "7"}})
    try:
        put(
            ground,
            name,
            ConditionExpression=FREE,
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
    except ClientError as error:
        item = _response(error).get("Item", {})
        right = code_of(error) == CONDITION and item.get("n") == {"N": "7"}
        return expect(right, "the item is not told", code=code_of(error), told=bool(item))
    return failed("the condition did not hold anything back")


def reasons(ground: Ground) -> Finding:
    """Check that a cancelled transaction writes nothing, and returns its reasons in order."""
    first, free, third = key(), key(), key()
    put(ground, first, Item={"n": {"N": "1"}})
    put(ground, third, Item={"n": {"N": "3"}})
    actions = [
        insertion(ground, first),
        insertion(ground, free),
        insertion(ground, third),
    ]
    try:
        ground.client("dynamodb").transact_write_items(TransactItems=actions)
    except ClientError as error:
        told = _response(error).get("CancellationReasons", [])
        codes = [word(one.get("Code", "None"), *REASONS) for one in told]
        items = [one.get("Item", {}).get("n", {}).get("N", "") for one in told]
        problems = [] if codes[1:2] == ["None"] else ["the reasons are in another order"]
        problems += [] if codes[:1] == ["ConditionalCheckFailed"] else ["the first is not told"]
        problems += [] if items[:1] == ["1"] else ["the item is not told"]
        problems += ["a part was written"] if get(ground, free) else []
        seen: dict[str, Seen] = {"code": code_of(error), "items": sum(map(bool, items))}
        return judged(problems, reasons=codes, **seen)
    return failed("the transaction went through")


def token(ground: Ground) -> Finding:
    name, mark = key(), secrets.token_hex(16)
    for _ in range(2):
        ground.client("dynamodb").transact_write_items(
            TransactItems=[addition(ground, name)], ClientRequestToken=mark
        )
    counted = int(get(ground, name)["n"]["N"])
    return expect(counted == 1, "it was counted again", counted=counted)


def actions_max(ground: Ground) -> Finding:
    client, names = ground.client("dynamodb"), [key() for _ in range(ACTIONS_MAX + 1)]
    actions = [addition(ground, name) for name in names]
    client.transact_write_items(TransactItems=actions[:ACTIONS_MAX])
    return refused(client.transact_write_items, "a transaction of 101", TransactItems=actions)


def conflict(ground: Ground) -> Finding:
    """Check that concurrent transactions on one item succeed one by one, or report a conflict."""
    name, client = key(), ground.client("dynamodb")

    def one(_rival: int) -> str:
        try:
            client.transact_write_items(TransactItems=[addition(ground, name)])
        except ClientError as error:
            told = _response(error).get("CancellationReasons", [{}])
            return word(told[0].get("Code"), *REASONS) if told else code_of(error)
        return ""

    with ThreadPoolExecutor(RIVALS) as threads:
        codes = list(threads.map(one, range(RIVALS)))
    through = codes.count("")
    counted = int(get(ground, name)["n"]["N"])
    conflicts = codes.count("TransactionConflict")
    problems = [] if counted == through else ["one that was refused was counted"]
    problems += [] if through + conflicts == RIVALS else ["some were refused for another reason"]
    return judged(problems, through=through, conflicts=conflicts, counted=counted)


def expired(ground: Ground) -> Finding:
    """Check that an expired item stays readable until DynamoDB deletes it."""
    name = key()
    put(ground, name, Item={"expires_at": {"N": str(int(time.time()) - 3600)}})
    there = bool(get(ground, name))
    return expect(there, "it is gone at once: reads need no comparison", there=there)


def item_max(ground: Ground) -> Finding:
    """Check that an item has at most 400 KB, including attribute names."""
    name = key()
    room = ITEM_BYTES_MAX - len("k") - len(name) - len("b")
    put(ground, name, Item={"b": {"B": b"x" * room}})
    over = {"b": {"B": b"x" * (room + 1)}}
    found = refused(put, "an item of 409,601 bytes", ground=ground, name=name, Item=over)
    return found if found.why else passed(bytes=ITEM_BYTES_MAX, **found.seen)


def consistent(ground: Ground) -> Finding:
    name, missed = key(), 0
    for turn in range(20):
        put(ground, name, Item={"n": {"N": str(turn)}})
        missed += get(ground, name).get("n") != {"N": str(turn)}
    return expect(not missed, "some reads were older", reads=20, missed=missed)


CHECKS = (
    probe("dynamodb.conditions", "one of competing writers wins", conditions, "A30"),
    probe("dynamodb.returned", "a failed condition tells what stood there", returned, "A31"),
    probe("dynamodb.reasons", "a cancelled transaction tells why, in order", reasons, "A32", "A33"),
    probe("dynamodb.token", "a transaction of the same token counts once", token, "A32"),
    probe("dynamodb.actions", "a transaction has 100 actions", actions_max, "A32"),
    probe("dynamodb.conflict", "transactions on one item conflict", conflict, "A34"),
    probe("dynamodb.expired", "what has expired is read until it is deleted", expired, "A35"),
    probe("dynamodb.item", "an item has 400 KB", item_max, "A36"),
    probe("dynamodb.consistent", "a consistent read sees every write before it", consistent, "A39"),
)
