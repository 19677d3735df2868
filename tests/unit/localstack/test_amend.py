"""Completion of a deployment that an emulator, or AWS, left unfinished."""

from __future__ import annotations

from pathlib import Path

import pytest

from localstack import assembly, cdk, removal
from localstack.errors import LocalStackError


def test_amend_of_failed_stack_names_missing_resources(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = {"Type": "AWS::Lambda::Function", "Properties": {"RecursiveLoop": "Allow"}}
    template = {"Resources": {"Worker": worker}}
    monkeypatch.setattr(assembly, "stack_of", lambda _: ("Some", template))
    monkeypatch.setattr(removal, "resources_of", lambda *_: [])
    with pytest.raises(LocalStackError, match=r"lacks Worker.*orbweaver destroy"):
        cdk.amend(Path(), pytest.fail)
