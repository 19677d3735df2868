"""Findings of cdk-nag's rule packs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from infra.config import Config
from tests.infra.template import SFTP

if TYPE_CHECKING:
    from aws_cdk import Acknowledgment
    from constructs import IConstruct

    from tests.infra.template import Synthesize

pytestmark = pytest.mark.infra

REASON_CHARS_MIN = 30


def found_in(stack: IConstruct) -> set[tuple[str, str]]:
    from cdk_nag import AwsSolutionsChecks, ServerlessChecks

    return {
        (violation.rule_name, str(resource.construct_path))
        for pack in (AwsSolutionsChecks(), ServerlessChecks())
        for violation in pack.validate_scope(stack).violations
        for resource in violation.violating_resources
    }


@pytest.mark.parametrize(
    "context",
    [
        {},
        {"kms_key": "generate", "alarm_email": "a@example.org"},
        {"proxy_secret": "crawl/proxies"},
        {"alarms": "all", "rendering": "yes"},
        {"webhook_secret": "generate"},
        {"webhook_secret": "crawl/key"},
        {"copy_bucket": "their-exports", **SFTP},
        {"console": "yes"},
    ],
)
def test_stack_has_only_accepted_findings(synthesize: Synthesize, context: dict[str, str]) -> None:
    assert found_in(synthesize(**context).stack) == set()


@dataclass(frozen=True, slots=True)
class Noted:
    """Replaces CDK's validations of one construct, and only records."""

    path: str
    notes: list[tuple[str, str, str]]

    def acknowledge(self, rule: Acknowledgment) -> None:
        self.notes.append((rule.id, self.path, rule.reason or ""))


def test_every_accepted_finding_exists_and_has_reason(
    synthesize: Synthesize, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from aws_cdk import App

    from infra.program import Code
    from infra.stack import OrbweaverStack

    notes: list[tuple[str, str, str]] = []

    class Notes:
        @staticmethod
        def of(construct: IConstruct) -> Noted:
            return Noted(construct.node.path, notes)

    monkeypatch.setattr("infra.findings.Validations", Notes)
    (tmp_path / "empty.py").touch()
    flags = json.loads((Path(__file__).resolve().parents[2] / "cdk.json").read_text())["context"]
    stack = OrbweaverStack(
        App(context=flags), "Stack", config=Config(), code=Code(path=str(tmp_path))
    )
    found = found_in(stack)
    covered = {
        (rule, path)
        for rule, path in found
        if any(rule == noted and path.startswith(f"{at}/") for noted, at, _ in notes)
    }
    assert covered == found
    stale = {
        (noted, at)
        for noted, at, _ in notes
        if not any(rule == noted and path.startswith(f"{at}/") for rule, path in found)
    }
    assert stale == set()
    assert [reason for _, _, reason in notes if len(reason) < REASON_CHARS_MIN] == []
