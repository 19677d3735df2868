"""Permissions of each function."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.infra.roles import (
    ALLOWED,
    HERE,
    KIND,
    NOTIFIER,
    NOTIFYING,
    PROTECTION_ROLE,
    WORKER,
)
from tests.infra.template import text

if TYPE_CHECKING:
    from tests.infra.template import Synthesize, Synthesized

pytestmark = pytest.mark.infra


@pytest.mark.parametrize("role", ALLOWED)
def test_roles_have_exactly_needed_permissions(aws: Synthesized, role: str) -> None:
    assert aws.allowed(role) == ALLOWED[role]


@pytest.mark.parametrize("role", ["WorkerProgramRole", "ApiProgramRole", "StarterProgramRole"])
def test_emulator_roles_differ_only_in_batch_actions(local: Synthesized, role: str) -> None:
    allowed = local.allowed(role)
    sends = {
        resource
        for resource, actions in allowed.items()
        if "sqs:SendMessage" in actions and "FailedCalls" not in resource
    }
    for resource in sends:
        allowed[resource].remove("sqs:SendMessageBatch")
    assert allowed == ALLOWED[role]


@pytest.mark.parametrize(
    ("secret", "resource"),
    [
        (
            "crawl/proxies",
            f"{HERE}:secretsmanager:<AWS::Region>:<AWS::AccountId>:secret:crawl/proxies-??????",
        ),
        (
            "arn:aws:secretsmanager:eu-west-1:123456789012:secret:crawl/proxies-a1B2c3",
            "arn:aws:secretsmanager:eu-west-1:123456789012:secret:crawl/proxies-a1B2c3",
        ),
    ],
)
def test_only_worker_reads_proxy_secret(synthesize: Synthesize, secret: str, resource: str) -> None:
    made = synthesize(proxy_secret=secret)
    reading = {resource: {"secretsmanager:GetSecretValue"}}
    for role, allowed in ALLOWED.items():
        more = reading if role == "WorkerProgramRole" else {}
        assert made.allowed(role) == {**allowed, **more}
    for name, function in made.functions().items():
        given = function["Environment"]["Variables"].get("ORBWEAVER_PROXY_SECRET")
        assert given == (secret if name == WORKER else None)


def test_secrets_of_logins_are_below_stack_name(synthesize: Synthesize) -> None:
    made = synthesize(stack_name="Second")
    found = {
        resource.rpartition(":")[2]: actions
        for resource, actions in made.allowed("WorkerProgramRole").items()
        if "/logins/" in resource
    }
    assert found == {
        "Second/logins/*": {"secretsmanager:GetSecretValue"},
        "parameter/Second/logins/*": {"ssm:GetParameter"},
    }


@pytest.mark.parametrize(
    ("secret", "resource"),
    [
        ("generate", "<NotifierSecret.Id>"),
        (
            "crawl/key",
            f"{HERE}:secretsmanager:<AWS::Region>:<AWS::AccountId>:secret:crawl/key-??????",
        ),
    ],
)
def test_only_notifier_reads_webhook_key(
    synthesize: Synthesize, secret: str, resource: str
) -> None:
    made = synthesize(webhook_secret=secret)
    wanted = {**NOTIFYING, resource: {"secretsmanager:GetSecretValue"}}
    if secret != "generate":
        del wanted["<NotifierSecret.Id>"]
    assert made.allowed("NotifierProgramRole") == wanted
    for role, allowed in ALLOWED.items():
        assert made.allowed(role) == allowed
    variables = made.properties(KIND)[NOTIFIER]["Environment"]["Variables"]
    named = secret if secret != "generate" else resource
    assert text(variables["ORBWEAVER_WEBHOOK_SECRET"]) == named
    assert text(made.template["Outputs"]["WebhookSecret"]["Value"]) == named
    assert len(made.properties("AWS::SecretsManager::Secret")) == (secret == "generate")


def test_no_other_policies_or_roles_exist(aws: Synthesized) -> None:
    assert set(aws.properties("AWS::IAM::Role")) == {*ALLOWED, "ApiLogsRole", PROTECTION_ROLE}
    assert not aws.properties("AWS::IAM::Policy")
    assert not aws.properties("AWS::IAM::ManagedPolicy")
