"""Checks of DynamoDB's batches, statements, queries, and reported capacity."""

from __future__ import annotations

from typing import Any

from localstack.doctor.ground import Finding, Ground, expect, judged, probe, refused, word
from localstack.doctor.probe_tables import TABLE, insertion, key, put
from orbweaver.adapters.aws.usage_dynamodb import used

KEYS_MAX, WRITES_MAX = 100, 25
PAGE_BYTES = 1_048_576
BLOB = 380_000
# Sorted by UTF-8 bytes, which differs from UTF-16 and from the order of any language.
SORTED = ("A", "Z", "a", "zz", "é", "ﾭ", "\U0001f600")
CODES = ("DuplicateItem", "ConditionalCheckFailed")


def _keys(names: list[str]) -> list[dict[str, Any]]:
    return [{"k": {"S": name}} for name in names]


def batch(ground: Ground) -> Finding:
    """Check that batches read consistently, and report entries that were not processed."""
    client, table = ground.client("dynamodb"), ground.outputs[TABLE]
    names = [key() for _ in range(KEYS_MAX + 1)]
    writes = [{"PutRequest": {"Item": {"k": {"S": name}}}} for name in names[:WRITES_MAX]]
    wrote = client.batch_write_item(RequestItems={table: writes})
    wanted = {"Keys": _keys(names[:KEYS_MAX]), "ConsistentRead": True}
    read = client.batch_get_item(RequestItems={table: wanted})
    found = len(read["Responses"].get(table, ()))
    left = len(read.get("UnprocessedKeys", {}).get(table, {}).get("Keys", ()))
    unwritten = len(wrote.get("UnprocessedItems", {}).get(table, ()))
    problems = [] if found + left + unwritten >= WRITES_MAX else ["some keys are not read"]
    shaped = isinstance(read.get("UnprocessedKeys"), dict)
    problems += [] if shaped else ["what is left is not told"]
    return judged(problems, read=found, unprocessed_keys=left, unprocessed_items=unwritten)


def keys_max(ground: Ground) -> Finding:
    client, table = ground.client("dynamodb"), ground.outputs[TABLE]
    names = [key() for _ in range(KEYS_MAX + 1)]
    over = refused(
        client.batch_get_item, "a batch of 101 keys", RequestItems={table: {"Keys": _keys(names)}}
    )
    if over.why:
        return over
    writes = [{"PutRequest": {"Item": {"k": {"S": name}}}} for name in names[: WRITES_MAX + 1]]
    return refused(client.batch_write_item, "a batch of 26 writes", RequestItems={table: writes})


def statements(ground: Ground) -> Finding:
    """Check that an INSERT for an existing key fails without affecting others in its batch."""
    client, table, standing, free = ground.client("dynamodb"), ground.outputs[TABLE], key(), key()
    put(ground, standing)
    batch = [
        {
            "Statement": f"INSERT INTO \"{table}\" VALUE {{'k': ?}}",
            "Parameters": [{"S": name}],
        }
        for name in (standing, free)
    ]
    answer = client.batch_execute_statement(Statements=batch, ReturnConsumedCapacity="TOTAL")
    codes = [
        word(one["Error"].get("Code"), *CODES) if "Error" in one else "inserted"
        for one in answer["Responses"]
    ]
    units = sum(float(one.get("CapacityUnits", 0)) for one in answer.get("ConsumedCapacity", ()))
    right = codes == ["DuplicateItem", "inserted"]
    return expect(right, "it answers in another way", answers=codes, units=units)


def order(ground: Ground) -> Finding:
    """Check that a query returns items in the order of their keys' bytes."""
    client, table, day = ground.client("dynamodb"), ground.outputs["PagesTable"], key()
    for name in reversed(SORTED):
        client.put_item(TableName=table, Item={"day": {"S": day}, "k": {"S": name}})
    found = _query(ground, day)["Items"]
    places = [SORTED.index(one["k"]["S"]) for one in found]
    return expect(places == sorted(range(len(SORTED))), "in another order", places=places)


def page(ground: Ground) -> Finding:
    client, table, day = ground.client("dynamodb"), ground.outputs["PagesTable"], key()
    for place in range(4):
        item = {"day": {"S": day}, "k": {"S": str(place)}, "b": {"B": b"x" * BLOB}}
        client.put_item(TableName=table, Item=item)
    found = _query(ground, day)
    more = "LastEvaluatedKey" in found
    size = len(found["Items"]) * BLOB
    right = more and size <= PAGE_BYTES + BLOB
    return expect(right, "a page has another size", items=len(found["Items"]), more=more)


def _query(ground: Ground, day: str, **options: Any) -> dict[str, Any]:
    answer: dict[str, Any] = ground.client("dynamodb").query(
        TableName=ground.outputs["PagesTable"],
        KeyConditionExpression="#d = :d",
        ExpressionAttributeNames={"#d": "day"},
        ExpressionAttributeValues={":d": {"S": day}},
        **options,
    )
    return answer


def capacity(ground: Ground) -> Finding:
    """Check that DynamoDB reports the capacity that our cost rules compute for each operation."""
    table, name, many = ground.outputs[TABLE], key(), [key(), key()]
    item = {"k": {"S": name}, "b": {"B": b"x" * 2500}}
    asked: dict[str, tuple[str, dict[str, Any]]] = {
        "put": ("PutItem", {"TableName": table, "Item": item}),
        "get": ("GetItem", {"TableName": table, "Key": _keys([name])[0], "ConsistentRead": True}),
        "batch get": (
            "BatchGetItem",
            {"RequestItems": {table: {"Keys": _keys([name, *many]), "ConsistentRead": True}}},
        ),
        "batch write": (
            "BatchWriteItem",
            {
                "RequestItems": {
                    table: [{"PutRequest": {"Item": {"k": {"S": one}}}} for one in many]
                }
            },
        ),
        "transaction": (
            "TransactWriteItems",
            {"TransactItems": [insertion(ground, key(), b={"B": b"x" * 1500})]},
        ),
        "query": ("Query", {"TableName": ground.outputs["PagesTable"], "Day": key()}),
    }
    seen = {one: _compared(ground, *asked[one]) for one in asked}
    wrong = [f"{one} is billed otherwise" for one, two in seen.items() if two["aws"] != two["ours"]]
    return judged(wrong, **seen)


def _compared(ground: Ground, operation: str, parameters: dict[str, Any]) -> dict[str, int]:
    """Return reported and computed units of a request: write units, or half read units."""
    calls = {
        "PutItem": "put_item",
        "GetItem": "get_item",
        "BatchGetItem": "batch_get_item",
        "BatchWriteItem": "batch_write_item",
        "TransactWriteItems": "transact_write_items",
    }
    if operation == "Query":
        answer = _query(ground, parameters["Day"], ReturnConsumedCapacity="TOTAL")
    else:
        call = getattr(ground.client("dynamodb"), calls[operation])
        answer = call(**parameters, ReturnConsumedCapacity="TOTAL")
    silent = {name: value for name, value in answer.items() if name != "ConsumedCapacity"}
    told = used(operation, parameters, answer, final=True)
    ours = used(operation, parameters, silent, final=False)
    return {"aws": sum(told.values()), "ours": sum(ours.values())}


CHECKS = (
    probe(
        "dynamodb.batch", "batches read consistently and say what they left", batch, "A37", "A39"
    ),
    probe("dynamodb.keys", "batches have 100 keys and 25 writes", keys_max, "A37"),
    probe("dynamodb.statements", "INSERT fails by itself where the key stands", statements, "A38"),
    probe("dynamodb.order", "queries answer in the order of bytes", order, "A40"),
    probe("dynamodb.page", "a page of a query has 1 MB", page, "A40"),
    probe("dynamodb.capacity", "what is consumed is what our rules say", capacity, "A42"),
)
