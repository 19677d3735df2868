"""The report of `orbweaver doctor` contains no text of AWS."""

from __future__ import annotations

import json
import string
import urllib.request
from datetime import UTC, datetime
from functools import cache
from typing import Any

import botocore.session
import pytest
from botocore import xform_name
from botocore.exceptions import ClientError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from localstack import cdk
from localstack.doctor import examine
from localstack.doctor.ground import Ground
from localstack.removal import BUCKET, TABLE
from orbweaver.cli.stack import NAMES

OUTPUTS = (
    *NAMES,
    *("WorkerFunction", "WorkerLogGroup", "ExporterFunction", "ApiUrl", "Database", "Workgroup"),
    *("CrawlEventSource", "ExpressEventSource", "SeedEventSource"),
)
KINDS = (
    *(TABLE, BUCKET, "AWS::Lambda::Function", "AWS::Events::Rule", "AWS::KMS::Key"),
    *("AWS::Logs::LogGroup", "AWS::Scheduler::Schedule", "AWS::CloudWatch::Alarm"),
)
DEPTH_MAX = 6
# Letters only: Hypothesis takes some texts from the program, whose error codes may be shown.
TOKENS = st.lists(
    st.sampled_from(string.ascii_letters + string.digits), min_size=14, max_size=30
).map("".join)
FORMS = (
    "{}",
    "arn:aws:sqs:eu-west-1:123456789012:{}",
    "https://hooks.example.org/services/{}",
    "{}@example.org",
    "xoxb-{}",
)


@cache
def operations(service: str) -> dict[str, Any]:
    """Return operations of a service by client method, cached because they load slowly."""
    model = botocore.session.Session().get_service_model(service)
    return {xform_name(name): model.operation_model(name) for name in model.operation_names}


class Forged:
    """A client whose answers contain one secret in the shape of real ones."""

    def __init__(self, service: str, secret: str, *, refusing: bool) -> None:
        self._operations = operations(service)
        self._secret, self._refusing = secret, refusing
        self.exceptions = type("Exceptions", (), {"ClientError": ClientError})

    def close(self) -> None: ...

    def get_paginator(self, name: str) -> Any:
        answer = getattr(self, name)
        return type("Pages", (), {"paginate": lambda _self, **asked: [answer(**asked)]})()

    def __getattr__(self, name: str) -> Any:
        operation = self._operations[name]

        def call(**_asked: Any) -> Any:
            if name in ("describe_stacks", "list_stack_resources", "get_template"):
                return getattr(self, f"_{name}")()
            if self._refusing and name != "get_caller_identity":
                told: Any = {"Error": {"Code": self._secret, "Message": self._secret}}
                raise ClientError(told, operation.name)
            return forge(operation.output_shape, self._secret)

        return call

    def _describe_stacks(self) -> dict[str, Any]:
        outputs = [{"OutputKey": key, "OutputValue": self._secret} for key in OUTPUTS]
        named = {"StackName": "Orbweaver", "StackStatus": "UPDATE_COMPLETE"}
        return {"Stacks": [{**named, "Description": self._secret, "Outputs": outputs}]}

    def _list_stack_resources(self) -> dict[str, Any]:
        found = [
            {
                "LogicalResourceId": f"R{place}",
                "ResourceType": kind,
                "PhysicalResourceId": self._secret,
                "ResourceStatus": "CREATE_COMPLETE",
            }
            for place, kind in enumerate(KINDS)
        ]
        return {"StackResourceSummaries": found}

    def _get_template(self) -> dict[str, Any]:
        resources = {
            f"R{place}": {"Type": kind, "DeletionPolicy": self._secret}
            for place, kind in enumerate(KINDS)
        }
        kept = {"Orbweaver": {"Context": {"alarm_email": self._secret}}}
        return {"TemplateBody": {"Resources": resources, "Metadata": kept}}


def forge(shape: Any, secret: str, depth: int = 0) -> Any:
    """Return a value of a shape in which every text is the secret."""
    kind = "string" if shape is None else shape.type_name
    if kind == "structure":
        members = shape.members.items() if depth < DEPTH_MAX else ()
        return {name: forge(member, secret, depth + 1) for name, member in members}
    if kind == "list":
        return [forge(shape.member, secret, depth + 1)] if depth < DEPTH_MAX else []
    if kind == "map":
        return {secret: forge(shape.value, secret, depth + 1)}
    known: dict[str, Any] = {"boolean": True, "integer": 1, "long": 1, "float": 1.0, "double": 1.0}
    known |= {"timestamp": datetime.now(UTC), "blob": secret.encode()}
    return known.get(kind, secret)


@pytest.mark.thorough
@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(token=TOKENS, form=st.sampled_from(FORMS), refusing=st.booleans())
def test_report_contains_no_secret_or_account_id(token: str, form: str, *, refusing: bool) -> None:
    secret, shown = form.format(token), []

    def opened(service: str, _environment: object) -> Forged:
        return Forged(service, secret, refusing=refusing)

    def unreachable(*_words: object, **_options: object) -> None:
        raise OSError(secret)

    ground = Ground(
        environment={"AWS_REGION": "eu-west-1"},
        region_from="--region",
        stack="Orbweaver",
        pause=lambda _: None,
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(cdk, "_open", opened)
        patched.setattr(urllib.request, "urlopen", unreachable)
        found = examine.examine(
            ground,
            show=lambda check, finding: shown.append(str((check.id, finding))),
        )
    told = json.dumps(found.report) + "".join(shown)
    assert found.reached
    assert len(shown) > 30
    assert token not in told
    assert "123456789012" not in told
