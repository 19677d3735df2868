"""Completion of a deployment that an emulator, or AWS, left unfinished."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from localstack import amend
from localstack.errors import LocalStackError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class CloudFormation:
    """A stack whose function could not be created."""

    def describe_stack_resources(self, **_asked: str) -> dict[str, Any]:
        return {"StackResources": [{"LogicalResourceId": "Worker"}]}


@contextmanager
def lend(_service: str) -> Iterator[CloudFormation]:
    yield CloudFormation()


def test_amend_of_failed_stack_names_missing_resources(tmp_path: Path) -> None:
    worker = {"Type": "AWS::Lambda::Function", "Properties": {"RecursiveLoop": "Allow"}}
    (tmp_path / "some.json").write_text(json.dumps({"Resources": {"Worker": worker}}))
    stack = {"type": amend.STACK, "properties": {"templateFile": "some.json"}}
    (tmp_path / "manifest.json").write_text(json.dumps({"artifacts": {"Some": stack}}))
    with pytest.raises(LocalStackError, match=r"lacks Worker.*orbweaver destroy"):
        amend.apply(tmp_path, lend)
