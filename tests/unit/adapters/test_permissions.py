"""IAM permissions that each AWS request needs, and how clients record them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from orbweaver.adapters.aws.permissions import Recorder, absent, needed

STATEMENTS = [
    {"Statement": "INSERT INTO \"urls\" VALUE {'k': ?}"},
    {"Statement": 'select k from "urls" where k = ?'},
    {"Statement": "UPDATE pages SET a = 1 WHERE k = ?"},
    {"Statement": 'DELETE FROM "urls" WHERE k = ?'},
]
TRANSACTION = [
    {"Put": {"TableName": "packs"}},
    {"Update": {"TableName": "crawls"}},
    {"ConditionCheck": {"TableName": "crawls"}},
    {"Delete": {"TableName": "packs"}},
]
QUEUE = {"QueueUrl": "https://sqs.eu-central-1.amazonaws.com/123456789012/crawl"}
FILE = {"Bucket": "b", "Key": "bodies/c/dt=2001-02-03/x.warc.gz"}


@pytest.mark.parametrize(
    ("service", "operation", "params", "expected"),
    [
        ("dynamodb", "GetItem", {"TableName": "crawls"}, ["GetItem table/crawls"]),
        (*("dynamodb", "Query", {"TableName": "arn:aws:dynamodb:r:1:table/packs"}),
         ["Query table/packs"]),
        (*("dynamodb", "BatchGetItem", {"RequestItems": {"urls": {}, "pages": {}}}),
         ["BatchGetItem table/urls", "BatchGetItem table/pages"]),
        (
            *("dynamodb", "TransactWriteItems", {"TransactItems": TRANSACTION}),
            [
                *("PutItem table/packs", "UpdateItem table/crawls"),
                *("ConditionCheckItem table/crawls", "DeleteItem table/packs"),
            ],
        ),
        (
            *("dynamodb", "BatchExecuteStatement", {"Statements": STATEMENTS}),
            [
                *("PartiQLInsert table/urls", "PartiQLSelect table/urls"),
                *("PartiQLUpdate table/pages", "PartiQLDelete table/urls"),
            ],
        ),
        ("sqs", "SendMessageBatch", QUEUE, ["SendMessage crawl"]),
        ("sqs", "DeleteMessage", QUEUE, ["DeleteMessage crawl"]),
        ("s3", "PutObject", FILE, ["PutObject b/bodies/"]),
        ("s3", "HeadObject", FILE, ["GetObject b/bodies/"]),
        ("s3", "ListObjectsV2", {"Bucket": "b", "Prefix": "exports/"}, ["ListBucket b"]),
        (
            *("s3", "CopyObject"),
            {
                "Bucket": "theirs",
                "Key": "exports/x",
                "ACL": "bucket-owner-full-control",
                "CopySource": {"Bucket": "b", "Key": "exports/x"},
            },
            ["GetObject b/exports/", "PutObject theirs/exports/", "PutObjectAcl theirs/exports/"],
        ),
        (*("s3", "DeleteObjects"),
         {"Bucket": "b", "Delete": {"Objects": [{"Key": "exports/x"}, {"Key": "y"}]}},
         ["DeleteObject b/exports/", "DeleteObject b/y"]),
        ("events", "PutEvents", {"Entries": [{"EventBusName": "default"}]}, None),
        (*("glue", "CreateTable", {"DatabaseName": "d", "TableInput": {"Name": "items_x"}}),
         ["CreateTable catalog", "CreateTable database/d", "CreateTable table/d/items_x"]),
        (*("secretsmanager", "GetSecretValue", {"SecretId": "crawl/key"}),
         ["GetSecretValue secret:crawl/key-??????"]),
        (*("secretsmanager", "GetSecretValue"),
         {"SecretId": "arn:aws:secretsmanager:eu-central-1:1:secret:key-AbCdEf"},
         ["GetSecretValue secret:key-AbCdEf"]),
        ("scheduler", "ListSchedules", {}, ["ListSchedules *"]),
    ],
)  # fmt: skip
def test_request_needs_permission_of_each_part(
    service: str, operation: str, params: dict[str, Any], expected: list[str] | None
) -> None:
    wanted = expected or ["PutEvents event-bus/default"]
    found = [f"{one.action} {one.resource}" for one in needed(service, operation, params)]
    assert found == [f"{service}:{one}" for one in wanted]


def test_invalid_partiql_statement_raises() -> None:
    with pytest.raises(ValueError, match="not a PartiQL statement"):
        [*needed("dynamodb", "ExecuteStatement", {"Statement": "?"})]


def test_only_s3_needs_list_permission_for_missing_key() -> None:
    """Without the permission S3 answers 403 instead of 404. A table answers with an empty item."""
    assert [*absent("s3", FILE)] == [("s3:ListBucket", "b")]
    assert [*absent("dynamodb", {"TableName": "urls"})] == []


class FakeClient:
    """A client with the events of botocore."""

    def __init__(self, service: str) -> None:
        model = SimpleNamespace(
            service_name=service, service_id=SimpleNamespace(hyphenize=lambda: service)
        )
        self.meta = SimpleNamespace(service_model=model, events=self)
        self.handlers: dict[str, Callable[..., None]] = {}

    def register_last(self, name: str, handler: Callable[..., None]) -> None:
        self.handlers[name] = handler

    def ask(self, operation: str, status: int, **params: Any) -> None:
        model = SimpleNamespace(name=operation, service_model=self.meta.service_model)
        context: dict[str, Any] = {}
        service = model.service_model.service_name
        self.handlers[f"provide-client-params.{service}"](
            params=params, model=model, context=context
        )
        answer = SimpleNamespace(status_code=status)
        self.handlers[f"after-call.{service}"](http_response=answer, context=context)


def test_each_permission_is_recorded_once_by_all_processes(tmp_path: Path) -> None:
    file = tmp_path / "permissions.jsonl"
    for function in ("Orbweaver-worker", "Orbweaver-api"):
        recorder = Recorder(str(file), function)
        tables, files = FakeClient("dynamodb"), FakeClient("s3")
        recorder.watch(tables)
        recorder.watch(files)
        for key in ("a", "b"):
            tables.ask("GetItem", 200, TableName="crawls", Key={"k": {"S": key}})
            files.ask("GetObject", 404, Bucket="b", Key=f"seeds/{key}")

    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(one["function"], one["action"], one["resource"]) for one in lines] == [
        (function, action, resource)
        for function in ("Orbweaver-worker", "Orbweaver-api")
        for action, resource in (
            ("dynamodb:GetItem", "table/crawls"),
            ("s3:GetObject", "b/seeds/"),
            ("s3:ListBucket", "b"),
        )
    ]
