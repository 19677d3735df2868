"""Requests to AWS in billing units."""

from __future__ import annotations

from typing import Any

import pytest

from orbweaver.budget.billing_units import Term
from tests.unit.metering import PUT, Clock, FakeClient, meter_by, used


def counted(
    service: str, operation: str, asked: dict[str, Any], answer: dict[str, Any]
) -> dict[str, int]:
    """Send a request through a watched client, and return its counted units."""
    meter, client = meter_by(Clock()), FakeClient(service)
    meter.watch(client)
    client.ask(operation, asked, answer)
    return {key.removeprefix("units."): number for key, number in used(meter).items()}


ADD = {
    "TableName": "Stack-crawls",
    "Key": {"k": {"S": "a"}},
    "UpdateExpression": "ADD #n :n",
    "ExpressionAttributeNames": {"#n": "n"},
    "ExpressionAttributeValues": {":n": {"N": "1"}},
}
INSERT = {"Statement": "INSERT INTO \"Stack-urls\" VALUE {'k': ?}", "Parameters": [{"S": "a"}]}
KEYS = [{"k": {"S": name}} for name in "abc"]
HOST = {"host": {"S": "https://a.example"}}
ROBOTS = {"host": {"S": "https://a.example#robots"}}
WAITING = {"k": {"S": "backlog#c-1#https://a.example"}, "part": {"S": "1.p"}}
FAILED = {"Error": {"Code": "ConditionalCheckFailedException"}}
CANCELLED = {"Error": {"Code": "TransactionCanceledException"}}
ACTIONS = {"TransactItems": [{"Put": PUT}, {"Update": ADD}]}
URLS, HOSTS, PACKS = ({"TableName": f"Stack-{name}"} for name in ("urls", "hosts", "packs"))
PACK_TABLE = {"TableName": "arn:aws:dynamodb:us-east-1:1:table/Stack-packs"}
WAITING_INSERT = {
    "Statement": "INSERT INTO \"Stack-packs\" VALUE {'k': ?}",
    "Parameters": [WAITING["k"]],
}


def key_is(value: dict[str, str]) -> dict[str, Any]:
    return {"ExpressionAttributeValues": {":k": value}}


def keys_of(*, consistent: bool) -> dict[str, Any]:
    return {"RequestItems": {"Stack-urls": {"Keys": KEYS, "ConsistentRead": consistent}}}


@pytest.mark.parametrize(
    ("operation", "asked", "answer", "counts"),
    [
        ("PutItem", PUT, {}, {"write.claim": 1}),
        ("PutItem", PUT, FAILED, {"write.claim": 1}),
        ("PutItem", PUT, {"Error": {"Code": "ThrottlingException"}}, {}),
        ("PutItem", PUT, {"Error": {"Code": "ValidationException"}}, {}),
        ("PutItem", {**PUT, "TableName": "another"}, {}, {"write.other": 1}),
        ("PutItem", PUT | PACK_TABLE, {}, {"write.journal": 1}),
        ("UpdateItem", ADD, {}, {"write.reserve": 1}),
        ("UpdateItem", ADD | PACKS, {}, {"write.sent": 1}),
        ("PutItem", HOSTS | {"Item": HOST}, {}, {"write.host": 1}),
        ("PutItem", HOSTS | {"Item": ROBOTS}, {}, {"write.robots": 1}),
        ("GetItem", HOSTS | {"Key": ROBOTS}, {}, {"read_halves.robots": 1}),
        ("PutItem", PACKS | {"Item": WAITING}, {}, {"write.send": 1}),
        ("BatchExecuteStatement", {"Statements": [WAITING_INSERT]}, {"Responses": [{}]},
         {"write.send": 1}),
        ("Query", PACKS | key_is(WAITING["k"]), {"Items": [WAITING], "Count": 1},
         {"read_halves.send": 1}),
        ("Query", PACKS | key_is({"S": "a"}), {"Items": [], "Count": 0}, {"read_halves.recall": 1}),
        ("DeleteItem", PACKS | {"Key": WAITING}, {}, {"write.sent": 1}),
        ("DescribeTable", URLS, {}, {}),
        ("TransactWriteItems", ACTIONS, {}, {"write.commit": 2 * 2}),
        ("TransactWriteItems", ACTIONS, CANCELLED, {"write.commit": 2 * 2}),
        ("BatchGetItem", keys_of(consistent=False), {}, {"read_halves.lookup": 3}),
        ("BatchGetItem", keys_of(consistent=True), {}, {"read_halves.lookup": 6}),
        ("BatchWriteItem",
         {"RequestItems": {"Stack-urls": [{"PutRequest": {"Item": KEYS[0]}}] * 2}}, {},
         {"write.claim": 2}),
        ("Query", URLS | {"ConsistentRead": True}, {}, {"read_halves.lookup": 2}),
        ("Scan", URLS, {}, {"read_halves.lookup": 1}),
        ("BatchExecuteStatement", {"Statements": [INSERT] * 3}, {}, {"write.claim": 3}),
    ],
)  # fmt: skip
def test_requests_without_reported_units_are_counted_by_item(
    operation: str, asked: dict[str, Any], answer: dict[str, Any], counts: dict[str, int]
) -> None:
    assert counted("dynamodb", operation, dict(asked), answer) == counts


@pytest.mark.parametrize(
    ("operation", "asked", "capacity", "counts"),
    [
        ("PutItem", PUT, {"CapacityUnits": 7.0}, {"write.claim": 7}),
        ("Query", URLS, {"CapacityUnits": 1.5}, {"read_halves.lookup": 3}),
        ("BatchWriteItem", {"RequestItems": {"Stack-urls": [{}, {}]}}, [{"CapacityUnits": 9.0}],
         {"write.claim": 9}),
        # AWS charges a repeated transaction as a read.
        ("TransactWriteItems", ACTIONS, [{"CapacityUnits": 2.0, "ReadCapacityUnits": 2.0}],
         {"read_halves.commit": 4}),
    ],
)  # fmt: skip
def test_reported_units_replace_count_of_items(
    operation: str, asked: dict[str, Any], capacity: Any, counts: dict[str, int]
) -> None:
    for one in capacity if isinstance(capacity, list) else [capacity]:
        one["TableName"] = "Stack-urls"
    parameters = dict(asked)
    assert counted("dynamodb", operation, parameters, {"ConsumedCapacity": capacity}) == counts
    assert parameters["ReturnConsumedCapacity"] == "TOTAL"


@pytest.mark.parametrize(("answer", "status", "units"), [(None, 0, 1), ({}, 500, 0)])
def test_failed_requests_are_counted_if_possibly_executed(
    answer: dict[str, Any] | None, status: int, units: int
) -> None:
    meter, client = meter_by(Clock()), FakeClient("dynamodb")
    meter.watch(client)
    client.ask("PutItem", dict(PUT), answer, status=status)
    assert meter.total.by_term.get(Term.WRITE, 0) == units


TEXT = {"DataType": "String", "StringValue": "y" * 94}


@pytest.mark.parametrize(
    ("service", "operation", "asked", "answer", "counts"),
    [
        ("sqs", "SendMessage", {"MessageBody": "x"}, {}, {"sqs.send": 1}),
        ("sqs", "SendMessage", {"MessageBody": "x" * 65_436, "MessageAttributes": {"r": TEXT}}, {},
         {"sqs.send": 2}),
        ("sqs", "SendMessageBatch", {"Entries": [{"MessageBody": "x" * 40_000}] * 4}, {},
         {"sqs.send": 3}),
        ("sqs", "ReceiveMessage", {}, {"Messages": [{"Body": "x" * 70_000}]}, {"sqs.send": 2}),
        ("sqs", "ReceiveMessage", {}, {}, {"sqs.send": 1}),
        ("s3", "PutObject", {"Body": b"x" * 10**6}, {}, {"s3_put.bodies": 1}),
        ("s3", "ListObjectsV2", {}, {}, {"s3_put.bodies": 1}),
        ("s3", "GetObject", {}, {}, {"s3_get.bodies": 1}),
        ("s3", "HeadObject", {}, {"Error": {"Code": "404"}}, {"s3_get.bodies": 1}),
        ("s3", "DeleteObjects", {}, {}, {}),
        ("events", "PutEvents",
         {"Entries": [{"Source": "s", "Detail": "x" * 70_000}, {"Detail": "{}"}]}, {},
         {"events.announce": 3}),
        ("secretsmanager", "GetSecretValue", {}, {}, {}),
    ],
)  # fmt: skip
def test_other_requests_are_counted_by_number_and_size(
    service: str,
    operation: str,
    asked: dict[str, Any],
    answer: dict[str, Any],
    counts: dict[str, int],
) -> None:
    assert counted(service, operation, asked, answer) == counts
