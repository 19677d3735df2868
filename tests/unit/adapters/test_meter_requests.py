"""Requests to AWS in billing units."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from orbweaver.budget.billing_units import Term
from tests.unit.metering import AWS, EMULATOR, PUT, Clock, FakeClient, meter_by, used

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
REMOVE = {
    "TableName": "Stack-urls",
    "Key": {"k": {"S": "a"}},
    "UpdateExpression": "REMOVE #was",
    "ExpressionAttributeNames": {"#was": "was"},
}
INSERT = {
    "Statement": "INSERT INTO \"Stack-urls\" VALUE {'k': ?, 'long': ?}",
    "Parameters": [{"S": "a"}, {"B": b"x" * 1_500}],
}
KEYS = [{"k": {"S": name}} for name in "abc"]
LARGE = {"k": {"S": "a"}, "b": {"B": b"x" * 9_000}}
HOST = {"host": {"S": "https://a.example"}}
ROBOTS = {"host": {"S": "https://a.example#robots"}}
WAITING = {"k": {"S": "backlog#c-1#https://a.example"}, "part": {"S": "1.p"}}
FAILED = {"Error": {"Code": "ConditionalCheckFailedException"}}
CANCELLED = {
    "Error": {"Code": "TransactionCanceledException"},
    "CancellationReasons": [{"Code": "ConditionalCheckFailed", "Item": LARGE}, {"Code": "None"}],
}
ACTIONS = {"TransactItems": [{"Put": PUT}, {"Update": ADD}]}


@pytest.mark.parametrize(
    ("operation", "asked", "answer", "counts"),
    [
        ("PutItem", PUT, {}, {"write.claim": 2}),
        ("PutItem", PUT, FAILED, {"write.claim": 2}),
        ("PutItem", PUT, {**FAILED, "Item": LARGE}, {"write.claim": 9}),
        ("PutItem", PUT, {"Error": {"Code": "ThrottlingException"}}, {}),
        ("PutItem", PUT, {"Error": {"Code": "ValidationException"}}, {}),
        ("PutItem", {**PUT, "TableName": "another"}, {}, {"write.other": 2}),
        (
            "PutItem",
            {**PUT, "TableName": "arn:aws:dynamodb:us-east-1:1:table/Stack-packs"},
            {},
            {"write.journal": 2},
        ),
        ("UpdateItem", ADD, {}, {"write.reserve": 1}),
        ("UpdateItem", ADD, {"Attributes": LARGE}, {"write.reserve": 9}),
        ("UpdateItem", REMOVE, {}, {"write.claim": 1}),
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
        ("TransactWriteItems", ACTIONS, {}, {"write.commit": 2 * (2 + 1)}),
        ("TransactWriteItems", ACTIONS, CANCELLED, {"write.commit": 2 * (9 + 1)}),
        (
            "BatchGetItem",
            {"RequestItems": {"Stack-urls": {"Keys": KEYS}}},
            {
                "Responses": {"Stack-urls": [LARGE]},
                "UnprocessedKeys": {"Stack-urls": {"Keys": KEYS[1:2]}},
            },
            {"read_halves.lookup": 3 + 1},
        ),
        (
            "BatchWriteItem",
            {"RequestItems": {"Stack-urls": [{"PutRequest": {"Item": LARGE}}] * 2}},
            {"UnprocessedItems": {"Stack-urls": [{"PutRequest": {"Item": LARGE}}]}},
            {"write.claim": 9},
        ),
        (
            "Query",
            {"TableName": "Stack-urls", "ConsistentRead": True},
            {"Items": [LARGE], "Count": 1, "ScannedCount": 3},
            {"read_halves.lookup": 2 * 7},
        ),
        *(
            (
                operation,
                {"TableName": "Stack-urls"},
                {"Items": [], "Count": 0},
                {"read_halves.lookup": 1},
            )
            for operation in ("Query", "Scan")
        ),
        (
            "BatchExecuteStatement",
            {"Statements": [INSERT] * 3},
            {
                "Responses": [
                    {},
                    {"Error": {"Code": "DuplicateItem"}},
                    {"Error": {"Code": "ThrottlingError"}},
                ]
            },
            {"write.claim": 2 * 2},
        ),
    ],
)
def test_table_requests_are_counted_by_size(
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
    ("url", "told", "units"), [(AWS, 1, 1), (AWS, 7, 7), (EMULATOR, 1, 2), (EMULATOR, 7, 7)]
)
def test_consumed_capacity_is_taken_from_aws(
    meter: UsageMeter, url: str, told: float, units: int
) -> None:
    """An emulator's figure counts only if it exceeds our own calculation."""
    client = FakeClient("dynamodb")
    meter.watch(client)
    asked = dict(PUT)
    capacity = {"TableName": "Stack-urls", "CapacityUnits": told}
    client.ask("PutItem", asked, {"ConsumedCapacity": capacity}, url=url)
    assert used(meter) == {"units.write.claim": units}
    assert asked["ReturnConsumedCapacity"] == "TOTAL"


def test_repeated_transaction_counts_reads(meter: UsageMeter) -> None:
    client = FakeClient("dynamodb")
    meter.watch(client)
    capacity = {"TableName": "Stack-urls", "CapacityUnits": 2.0, "ReadCapacityUnits": 2.0}
    client.ask("TransactWriteItems", dict(ACTIONS), {"ConsumedCapacity": [capacity]}, url=AWS)
    assert used(meter) == {"units.read_halves.commit": 4}


@pytest.mark.parametrize(("answer", "status", "units"), [(None, 0, 2), ({}, 500, 0)])
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
