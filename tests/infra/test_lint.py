"""The template against CloudFormation's schemas in `cfn-lint`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from cfnlint import ManualArgs
from cfnlint.api import lint

from tests.infra.template import SFTP

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.infra.template import Synthesize

pytestmark = [pytest.mark.infra, pytest.mark.slow]

REGIONS = ["us-east-1", "eu-central-1"]
# Ignored rules, with reasons.
IGNORED = {
    "W3005": "CDK has every function wait for its role, which it names as well",
    "I1022": "CDK spells texts with Fn::Join; which function makes them is a matter of taste",
}
EVERYTHING = {
    "alarm_email": "somebody@example.org",
    "alarms": "all",
    "console": "yes",
    "kms_key": "generate",
    "proxy_secret": "crawl/proxies",
    "removal": "destroy",
    "webhook_secret": "generate",
    **SFTP,
    "copy_bucket": "their-exports",
}
VARIANTS: dict[str, dict[str, str]] = {
    "as it is by default": {},
    "with every optional part": EVERYTHING,
    "workers off, keys of one's own": {"worker_enabled": "no", "webhook_secret": "crawl/key"},
}


def found_in(template: Mapping[str, Any]) -> list[str]:
    config = ManualArgs(regions=REGIONS, include_checks=["I"], ignore_checks=[*IGNORED])
    found = lint(json.dumps(template), config=config)
    return [f"{one.rule.id} {one.path}: {one.message}" for one in found]


@pytest.mark.parametrize("context", VARIANTS.values(), ids=VARIANTS)
def test_template_has_no_lint_findings(synthesize: Synthesize, context: dict[str, str]) -> None:
    found = found_in(synthesize(**context).template)
    assert not found, "\n".join(found)


def test_lint_finds_schema_violations() -> None:
    queue = {"Type": "AWS::SQS::Queue", "Properties": {"VisibilityTimeout": 43_201, "Colour": 1}}
    found = found_in({"Resources": {"Queue": queue}})
    assert {one.partition(" ")[0] for one in found if one.startswith("E")} == {"E3002", "E3034"}
