"""Faked AWS answers, as botocore reads them."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import boto3
import pytest
from botocore.parsers import create_parser

from orbweaver.adapters.aws.clients import TRANSIENT_CODES, error_of
from orbweaver.model.errors import Transient
from tests.chaos import wire

BATCHES: dict[str, dict[str, Any]] = {
    "SendMessageBatch": {
        "QueueUrl": "http://q/crawl",
        "Entries": [{"Id": str(n), "MessageBody": f"body {n}"} for n in range(5)],
    },
    "BatchExecuteStatement": {"Statements": [{"Statement": str(n)} for n in range(5)]},
    "BatchWriteItem": {"RequestItems": {"pages": [{"PutRequest": n} for n in range(5)]}},
    "BatchGetItem": {"RequestItems": {"pages": {"Keys": [{"k": {"S": str(n)}} for n in range(5)]}}},
}
ANSWERS: dict[str, dict[str, Any]] = {
    "SendMessageBatch": {"Successful": [{"Id": "0"}]},
    "BatchExecuteStatement": {"Responses": [{}]},
    "BatchWriteItem": {"UnprocessedItems": {}},
    "BatchGetItem": {"Responses": {"pages": []}, "UnprocessedKeys": {}},
}


def entries(operation: str, body: dict[str, Any]) -> list[Any]:
    match operation:
        case "SendMessageBatch":
            found = body["Entries"]
        case "BatchExecuteStatement":
            found = body["Statements"]
        case "BatchWriteItem":
            found = body["RequestItems"]["pages"]
        case _:
            found = body["RequestItems"]["pages"]["Keys"]
    return list(found)


def left(operation: str, answer: dict[str, Any]) -> int:
    match operation:
        case "SendMessageBatch":
            return len(answer["Failed"])
        case "BatchExecuteStatement":
            return sum("Error" in response for response in answer["Responses"])
        case "BatchWriteItem":
            return len(answer["UnprocessedItems"]["pages"])
        case _:
            return len(answer["UnprocessedKeys"]["pages"]["Keys"])


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("DynamoDB_20120810.GetItem", ("dynamodb", "GetItem")),
        ("AmazonSQS.SendMessageBatch", ("sqs", "SendMessageBatch")),
        ("AWSEvents.PutEvents", ("events", "PutEvents")),
        ("Other_1.Do", ("", "Do")),
        (None, ("", "")),
    ],
)
def test_operation_is_read_from_target_header(target: str | None, told: tuple[str, str]) -> None:
    assert wire.operation_of(target) == told


@pytest.mark.parametrize("service", ["dynamodb", "sqs"])
def test_refusals_are_transient_for_product(service: str) -> None:
    client = boto3.client(service, region_name="us-east-1")
    parser = create_parser(client.meta.service_model.protocol)
    operation = "SendMessageBatch" if service == "sqs" else "GetItem"
    shape = client.meta.service_model.operation_model(operation).output_shape
    replies = [wire.throttled(service, Random(seed)) for seed in range(20)]
    codes = set()
    for reply in [*replies, wire.failed(service)]:
        response = {"status_code": reply.status, "headers": reply.headers, "body": reply.body}
        parsed = parser.parse(response, shape)
        codes.add(parsed["Error"]["Code"])
        assert isinstance(error_of(parsed["Error"]["Code"], reply.status, ""), Transient)
    client.close()

    assert codes == {*wire.THROTTLES[service], wire.ERRORS[service]}
    assert set(wire.THROTTLES[service]) <= TRANSIENT_CODES


@pytest.mark.parametrize("operation", sorted(BATCHES))
@pytest.mark.parametrize("seed", range(5))
def test_partial_batch_loses_no_entry(operation: str, seed: int) -> None:
    request = BATCHES[operation]
    part = wire.part(operation, json.dumps(request).encode(), Random(seed))

    assert part is not None
    kept = entries(operation, json.loads(part.request))
    answer = json.loads(part.complete(json.dumps(ANSWERS[operation]).encode()))
    assert kept == entries(operation, request)[: len(kept)]
    assert 0 < len(kept) < len(entries(operation, request))
    assert left(operation, answer) == len(entries(operation, request)) - len(kept)


@pytest.mark.parametrize(
    ("operation", "body"),
    [
        ("GetItem", {}),
        ("SendMessageBatch", {"QueueUrl": "u", "Entries": [{"Id": "0", "MessageBody": "b"}]}),
    ],
)
def test_single_entry_is_not_split(operation: str, body: dict[str, Any]) -> None:
    assert wire.part(operation, json.dumps(body).encode(), Random(1)) is None


def test_messages_are_read_from_sends_only() -> None:
    batch = json.dumps(BATCHES["SendMessageBatch"]).encode()
    alone = json.dumps({"QueueUrl": "http://q/dead", "MessageBody": "x"}).encode()

    assert wire.messages("SendMessageBatch", batch) == [
        ("http://q/crawl", f"body {n}") for n in range(5)
    ]
    assert wire.messages("SendMessage", alone) == [("http://q/dead", "x")]
    assert wire.messages("GetItem", b"{}") == []
