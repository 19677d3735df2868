"""Requests to AWS in billing units."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from orbweaver.budget.billing_units import Term
from tests.unit.metering import PUT, Clock, FakeClient, meter_by, used

if TYPE_CHECKING:
    from orbweaver.adapters.aws.usage_meter import UsageMeter


@pytest.fixture
def meter() -> UsageMeter:
    return meter_by(Clock())


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


@pytest.mark.parametrize(
    ("operation", "asked", "answer", "counts"),
    [
        ("PutItem", PUT, {}, {"write.claim": 1}),
        ("PutItem", PUT, FAILED, {"write.claim": 1}),
        ("PutItem", PUT, {"Error": {"Code": "ThrottlingException"}}, {}),
        ("PutItem", PUT, {"Error": {"Code": "ValidationException"}}, {}),
        ("PutItem", {**PUT, "TableName": "another"}, {}, {"write.other": 1}),
        (
            "PutItem",
            {**PUT, "TableName": "arn:aws:dynamodb:us-east-1:1:table/Stack-packs"},
            {},
            {"write.journal": 1},
        ),
        ("UpdateItem", ADD, {}, {"write.reserve": 1}),
        ("UpdateItem", {**ADD, "TableName": "Stack-packs"}, {}, {"write.sent": 1}),
        ("PutItem", {"TableName": "Stack-hosts", "Item": HOST}, {}, {"write.host": 1}),
        ("PutItem", {"TableName": "Stack-hosts", "Item": ROBOTS}, {}, {"write.robots": 1}),
        (
            "GetItem",
            {"TableName": "Stack-hosts", "Key": ROBOTS},
            {},
            {"read_halves.robots": 1},
        ),
        ("PutItem", {"TableName": "Stack-packs", "Item": WAITING}, {}, {"write.send": 1}),
        (
            "BatchExecuteStatement",
            {
                "Statements": [
                    {
                        "Statement": "INSERT INTO \"Stack-packs\" VALUE {'k': ?}",
                        "Parameters": [WAITING["k"]],
                    }
                ]
            },
            {"Responses": [{}]},
            {"write.send": 1},
        ),
        (
            "Query",
            {"TableName": "Stack-packs", "ExpressionAttributeValues": {":k": WAITING["k"]}},
            {"Items": [WAITING], "Count": 1},
            {"read_halves.send": 1},
        ),
        (
            "Query",
            {"TableName": "Stack-packs", "ExpressionAttributeValues": {":k": {"S": "a"}}},
            {"Items": [], "Count": 0},
            {"read_halves.recall": 1},
        ),
        ("DeleteItem", {"TableName": "Stack-packs", "Key": WAITING}, {}, {"write.sent": 1}),
        ("DescribeTable", {"TableName": "Stack-urls"}, {}, {}),
        *(
            ("TransactWriteItems", ACTIONS, answer, {"write.commit": 2 * 2})
            for answer in ({}, CANCELLED)
        ),
        *(
            (
                "BatchGetItem",
                {"RequestItems": {"Stack-urls": {"Keys": KEYS, "ConsistentRead": consistent}}},
                {},
                {"read_halves.lookup": units},
            )
            for consistent, units in ((False, 3), (True, 6))
        ),
        (
            "BatchWriteItem",
            {"RequestItems": {"Stack-urls": [{"PutRequest": {"Item": KEYS[0]}}] * 2}},
            {},
            {"write.claim": 2},
        ),
        (
            "Query",
            {"TableName": "Stack-urls", "ConsistentRead": True},
            {},
            {"read_halves.lookup": 2},
        ),
        ("Scan", {"TableName": "Stack-urls"}, {}, {"read_halves.lookup": 1}),
        ("BatchExecuteStatement", {"Statements": [INSERT] * 3}, {}, {"write.claim": 3}),
    ],
)
def test_requests_without_reported_units_are_counted_by_item(
    meter: UsageMeter,
    operation: str,
    asked: dict[str, Any],
    answer: dict[str, Any],
    counts: dict[str, int],
) -> None:
    client = FakeClient("dynamodb")
    meter.watch(client)
    client.ask(operation, dict(asked), answer)
    assert used(meter) == {f"units.{key}": number for key, number in counts.items()}


@pytest.mark.parametrize(
    ("operation", "asked", "capacity", "counts"),
    [
        ("PutItem", PUT, {"CapacityUnits": 7.0}, {"write.claim": 7}),
        ("Query", {"TableName": "Stack-urls"}, {"CapacityUnits": 1.5}, {"read_halves.lookup": 3}),
        (
            "BatchWriteItem",
            {"RequestItems": {"Stack-urls": [{}, {}]}},
            [{"CapacityUnits": 9.0}],
            {"write.claim": 9},
        ),
        # AWS charges a repeated transaction as a read.
        (
            "TransactWriteItems",
            ACTIONS,
            [{"CapacityUnits": 2.0, "ReadCapacityUnits": 2.0}],
            {"read_halves.commit": 4},
        ),
    ],
)
def test_reported_units_replace_count_of_items(
    meter: UsageMeter,
    operation: str,
    asked: dict[str, Any],
    capacity: Any,
    counts: dict[str, int],
) -> None:
    client = FakeClient("dynamodb")
    meter.watch(client)
    for one in capacity if isinstance(capacity, list) else [capacity]:
        one["TableName"] = "Stack-urls"
    parameters = dict(asked)
    client.ask(operation, parameters, {"ConsumedCapacity": capacity})
    assert used(meter) == {f"units.{key}": number for key, number in counts.items()}
    assert parameters["ReturnConsumedCapacity"] == "TOTAL"


@pytest.mark.parametrize(("answer", "status", "units"), [(None, 0, 1), ({}, 500, 0)])
def test_failed_requests_are_counted_if_possibly_executed(
    meter: UsageMeter, answer: dict[str, Any] | None, status: int, units: int
) -> None:
    client = FakeClient("dynamodb")
    meter.watch(client)
    client.ask("PutItem", dict(PUT), answer, status=status)
    assert meter.total.by_term.get(Term.WRITE, 0) == units


TEXT = {"DataType": "String", "StringValue": "y" * 94}


@pytest.mark.parametrize(
    ("service", "operation", "asked", "answer", "counts"),
    [
        ("sqs", "SendMessage", {"MessageBody": "x"}, {}, {"sqs.send": 1}),
        (
            "sqs",
            "SendMessage",
            {"MessageBody": "x" * 65_436, "MessageAttributes": {"r": TEXT}},
            {},
            {"sqs.send": 2},
        ),
        (
            "sqs",
            "SendMessageBatch",
            {"Entries": [{"MessageBody": "x" * 40_000}] * 4},
            {},
            {"sqs.send": 3},
        ),
        ("sqs", "ReceiveMessage", {}, {"Messages": [{"Body": "x" * 70_000}]}, {"sqs.send": 2}),
        ("sqs", "ReceiveMessage", {}, {}, {"sqs.send": 1}),
        ("s3", "PutObject", {"Body": b"x" * 10**6}, {}, {"s3_put.bodies": 1}),
        ("s3", "ListObjectsV2", {}, {}, {"s3_put.bodies": 1}),
        ("s3", "GetObject", {}, {}, {"s3_get.bodies": 1}),
        ("s3", "HeadObject", {}, {"Error": {"Code": "404"}}, {"s3_get.bodies": 1}),
        ("s3", "DeleteObjects", {}, {}, {}),
        (
            "events",
            "PutEvents",
            {"Entries": [{"Source": "s", "Detail": "x" * 70_000}, {"Detail": "{}"}]},
            {},
            {"events.announce": 3},
        ),
        ("secretsmanager", "GetSecretValue", {}, {}, {}),
    ],
)
def test_other_requests_are_counted_by_number_and_size(
    meter: UsageMeter,
    service: str,
    operation: str,
    asked: dict[str, Any],
    answer: dict[str, Any],
    counts: dict[str, int],
) -> None:
    client = FakeClient(service)
    meter.watch(client)
    client.ask(operation, asked, answer)
    assert used(meter) == {f"units.{key}": number for key, number in counts.items()}
