"""Settings that the emulator's CloudFormation ignores are applied once, as in the template."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from localstack import cdk, emulator, layout
from localstack.assembly import STACK as STACK_TYPE
from localstack.emulator import Emulator
from localstack.errors import LocalStackError

pytestmark = pytest.mark.emulator

STACK = "Some"


def function(name: str, **more: str) -> dict[str, Any]:
    role = f"arn:aws:iam::{layout.ACCOUNT}:role/any"
    code = {"ZipFile": "def handler(event, context): return 1"}
    fixed = {"Runtime": "python3.13", "Handler": "index.handler", "Role": role, "Code": code}
    return {"Type": "AWS::Lambda::Function", "Properties": {"FunctionName": name, **fixed, **more}}


def table(**more: Any) -> dict[str, Any]:
    properties = {
        "KeySchema": [{"AttributeName": "k", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "k", "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST",
        **more,
    }
    return {"Type": "AWS::DynamoDB::Table", "Properties": properties}


TEMPLATE = {
    "Resources": {
        "Lapsing": table(TimeToLiveSpecification={"AttributeName": "gone_at", "Enabled": True}),
        "Lasting": table(),
        "Looping": function("looping", RecursiveLoop="Allow"),
        "Plain": function("plain"),
    },
    "Outputs": {name: {"Value": {"Ref": name}} for name in ("Lapsing", "Lasting")},
}


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Emulator]:
    monkeypatch.setattr(layout, "INSTANCES", tmp_path / "instances")
    started = emulator.start(port=0, keep=False)
    try:
        with cdk.client("cloudformation", started.environment()) as cloudformation:
            cloudformation.create_stack(StackName=STACK, TemplateBody=json.dumps(TEMPLATE))
            cloudformation.get_waiter("stack_create_complete").wait(
                StackName=STACK, WaiterConfig={"Delay": 1, "MaxAttempts": 30}
            )
        yield started
    finally:
        started.stop()


def assembly(folder: Path) -> Path:
    stack = {"type": STACK_TYPE, "properties": {"templateFile": "t.json", "stackName": STACK}}
    artifacts = {"One": stack, "Tree": {"type": "cdk:tree"}}
    (folder / "manifest.json").write_text(json.dumps({"artifacts": artifacts}))
    (folder / "t.json").write_text(json.dumps(TEMPLATE))
    return folder


def test_ignored_properties_are_set_once(running: Emulator, tmp_path: Path) -> None:
    environment = running.environment()
    calls: list[str] = []

    @contextlib.contextmanager
    def lend(service: str) -> Iterator[Any]:
        with cdk.client(service, environment) as client:
            client.meta.events.register(
                "before-call", lambda model, **_: calls.append(str(model.name))
            )
            yield client

    cdk.amend(assembly(tmp_path), lend)
    first, calls[:] = list(calls), []
    cdk.amend(tmp_path, lend)

    changes = ("UpdateTimeToLive", "PutFunctionRecursionConfig")
    assert [call for call in first if call in changes] == list(changes)
    assert not set(calls) & set(changes)
    outputs = cdk.stack_outputs(STACK, environment) or {}
    with cdk.client("dynamodb", environment) as dynamodb:
        found = {
            name: dynamodb.describe_time_to_live(TableName=outputs[name])["TimeToLiveDescription"]
            for name in ("Lapsing", "Lasting")
        }
    assert found["Lapsing"] == {"TimeToLiveStatus": "ENABLED", "AttributeName": "gone_at"}
    assert found["Lasting"] == {"TimeToLiveStatus": "DISABLED"}
    with cdk.client("lambda", environment) as functions:
        loops = {
            name: functions.get_function_recursion_config(FunctionName=name)["RecursiveLoop"]
            for name in ("looping", "plain")
        }
    assert loops == {"looping": "Allow", "plain": "Terminate"}


def test_missing_stack_is_one_line_error(tmp_path: Path) -> None:
    nowhere = layout.client_environment("http://127.0.0.1:1")

    with pytest.raises(LocalStackError, match="Cannot ask what the stack Some holds"):
        cdk.amend(assembly(tmp_path), lambda service: cdk.client(service, nowhere))
