"""The template in the wheel: removed parts, and their replacement."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest

from infra.runtime import host_runtime
from localstack import extras, prebuilt, ship
from orbweaver.model.address_policy import THIS_MACHINE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.infra.template import Synthesized

pytestmark = pytest.mark.infra

FUNCTION, SOURCE = "AWS::Lambda::Function", "AWS::Lambda::EventSourceMapping"
ARCHIVES = {"runtime": "plain.zip", "files": "files.zip"}


def reduced(local: Synthesized) -> dict[str, Any]:
    return ship.reduced(copy.deepcopy(dict(local.template)), lambda _: "runtime")


def without(resource: dict[str, Any], *names: str) -> dict[str, Any]:
    """Drop a resource's CDK metadata and some properties."""
    properties = resource.get("Properties", {})
    kept = {key: value for key, value in properties.items() if key not in names}
    return {**{key: value for key, value in resource.items() if key != "Metadata"}} | (
        {"Properties": kept} if "Properties" in resource else {}
    )


def test_wheel_template_depends_on_no_machine(local: Synthesized) -> None:
    text = json.dumps(reduced(local))
    architecture, python = host_runtime().split("/")
    for word in (architecture, f'"{python}"', "cdk-hnb659fds", "aws:cdk", "/cdk-bootstrap/"):
        assert word not in text, word


def test_completed_wheel_template_equals_synthesis(local: Synthesized) -> None:
    template = reduced(local)
    prebuilt.fill(template, ARCHIVES, {})
    assert template["Outputs"] == local.template["Outputs"]
    for name, resource in template["Resources"].items():
        original = local.template["Resources"][name]
        assert without(resource, "Code") == without(original, "Code"), name
        if resource["Type"] == FUNCTION:
            place = {"S3Bucket": prebuilt.BUCKET, "S3Key": "plain.zip"}
            assert resource["Properties"]["Code"] == place


def test_disabled_workers_stay_disabled(local: Synthesized) -> None:
    template = reduced(local)
    prebuilt.fill(template, ARCHIVES, {"worker_enabled": "no"})
    resources = template["Resources"]
    off = {
        resources[each["Properties"]["FunctionName"]["Ref"]]["Properties"]["Handler"]
        for each in resources.values()
        if each["Type"] == SOURCE and not each["Properties"].get("Enabled", True)
    }
    assert off == {prebuilt.WORKER}


def test_wheel_has_contexts_of_local_stack(
    local: Synthesized,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(ship, "template_of", lambda _: reduced(local))
    monkeypatch.setattr(prebuilt, "TEMPLATES", tmp_path)
    ship.write(tmp_path)
    assert capsys.readouterr().err == "template whole (1 of 2)\ntemplate jsonl (2 of 2)\n"
    usual = {"target": "local", "allow_addresses": THIS_MACHINE, prebuilt.KEY: "{}"}
    for context in (usual, {**usual, "export_formats": "jsonl"}, {**usual, "worker_enabled": "no"}):
        assert prebuilt._template(context)["Outputs"] == local.template["Outputs"]
    changed = {**usual, "contact": "me", prebuilt.KEY: '{"contact": "me"}'}
    with pytest.raises(extras.ExtraMissing) as raised:
        prebuilt._template(changed)
    assert str(raised.value) == (
        "contact=me changes the stack's template, which needs CDK:"
        " pip install 'orbweaver-crawler[deploy]'"
    )
