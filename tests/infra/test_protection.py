"""Custom resource that protects tables, and its function against moto."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from infra import protection_function
from tests.infra.roles import LOGS, PROTECTION_ROLE
from tests.infra.template import text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.infra.template import Synthesize, Synthesized

pytestmark = pytest.mark.infra

TABLES = {"Urls", "Pages", "Hosts", "Crawls", "Packs"}
KIND = "Custom::TableProtection"


@pytest.mark.parametrize(("removal", "wanted"), [("retain", "true"), ("destroy", "false")])
def test_template_protects_retained_tables(
    synthesize: Synthesize, removal: str, wanted: str
) -> None:
    """A plain `cdk deploy` protects all tables, and releases them with `removal=destroy`."""
    asked = synthesize(removal=removal).only(KIND)
    assert asked["Protected"] == wanted
    assert {text(name) for name in asked["Tables"]} == {f"<Storage{name}>" for name in TABLES}


def test_protection_comes_last(aws: Synthesized) -> None:
    """No other resource can fail after it, so a first create can always be undone."""
    (resource,) = aws.resources(KIND).values()
    others = {
        name: one
        for name, one in aws.template["Resources"].items()
        if not name.startswith("Protection") and "Condition" not in one
    }
    assert others.keys() <= {*resource["DependsOn"]}


def test_protection_role_allows_tables_and_log_alone(aws: Synthesized) -> None:
    allowed = aws.allowed(PROTECTION_ROLE)
    assert allowed.pop("<ProtectionLogs.Arn>") == LOGS
    assert allowed == {
        f"<Storage{name}.Arn>": {"dynamodb:DescribeTable", "dynamodb:UpdateTable"}
        for name in TABLES
    }


def test_emulator_stack_has_no_protection(local: Synthesized) -> None:
    """On an emulator, `orbweaver local up` protects the tables."""
    assert not local.resources(KIND)


@pytest.fixture
def answers() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    found: list[dict[str, Any]] = []

    class Waiting(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            found.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Waiting) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/", found
        server.shutdown()
        thread.join()


@pytest.fixture
def dynamodb(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setattr(protection_function, "PAUSE_S", 0)
    with mock_aws():
        client = boto3.client("dynamodb")
        for name in ("urls", "pages"):
            client.create_table(
                TableName=name,
                KeySchema=[{"AttributeName": "k", "KeyType": "HASH"}],
                AttributeDefinitions=[{"AttributeName": "k", "AttributeType": "S"}],
                BillingMode="PAY_PER_REQUEST",
            )
        monkeypatch.setattr("infra.protection_function.boto3.client", lambda _: client)
        yield client


def protected(client: Any) -> list[bool]:
    found = (client.describe_table(TableName=name)["Table"] for name in ("urls", "pages"))
    return [bool(table.get("DeletionProtectionEnabled")) for table in found]


def event(url: str, kind: str, *tables: str, wanted: str = "true") -> dict[str, Any]:
    return {
        "RequestType": kind,
        "ResponseURL": url,
        **{key: key for key in ("StackId", "RequestId", "LogicalResourceId")},
        "ResourceProperties": {"Tables": [*tables], "Protected": wanted},
    }


def test_protection_function_follows_the_template(
    dynamodb: Any, answers: tuple[str, list[dict[str, Any]]]
) -> None:
    url, found = answers
    steps = (("Create", "true", True), ("Delete", "true", True), ("Update", "false", False))
    for kind, wanted, expected in steps:
        asked = event(url, kind, "urls", "pages", wanted=wanted)
        protection_function.handler(asked, None)
        assert protected(dynamodb) == [expected, expected]
    assert {one["Status"] for one in found} == {"SUCCESS"}
    assert {one["PhysicalResourceId"] for one in found} == {"table-protection"}
    assert found[0]["RequestId"] == "RequestId"


def test_protection_function_waits_for_a_busy_table(
    dynamodb: Any,
    answers: tuple[str, list[dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """DynamoDB refuses updates of a table that is being updated."""
    update, busy = dynamodb.update_table, ["ResourceInUseException"] * 3

    def refuse(**asked: Any) -> Any:
        if busy:
            raise ClientError({"Error": {"Code": busy.pop()}}, "UpdateTable")
        return update(**asked)

    monkeypatch.setattr(dynamodb, "update_table", refuse)
    protection_function.handler(event(answers[0], "Create", "urls", "pages"), None)
    assert protected(dynamodb) == [True, True]


def test_protection_function_failed_create_releases_tables(
    dynamodb: Any, answers: tuple[str, list[dict[str, Any]]]
) -> None:
    url, found = answers
    protection_function.handler(event(url, "Create", "urls", "pages", "gone"), None)
    assert protected(dynamodb) == [False, False]
    assert found[0]["Status"] == "FAILED"
    assert "ResourceNotFoundException" in found[0]["Reason"]
