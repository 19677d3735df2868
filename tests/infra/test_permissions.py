"""What each function may do, and that it may do nothing else."""

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
    from collections.abc import Callable

    from tests.infra.template import Synthesized

pytestmark = pytest.mark.infra


@pytest.mark.parametrize("role", ALLOWED)
def test_permissions(aws: Synthesized, role: str) -> None:
    """A role may do exactly what its code does, to exactly the resources it does it to."""
    assert aws.allowed(role) == ALLOWED[role]


@pytest.mark.parametrize("role", ["WorkerProgramRole", "ApiProgramRole", "StarterProgramRole"])
def test_permissions_on_an_emulator(local: Synthesized, role: str) -> None:
    """An emulator asks for batches by their own name; otherwise roles are as they are on AWS."""
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
def test_permission_to_read_the_list_of_proxies(
    synthesize: Callable[..., Synthesized], secret: str, resource: str
) -> None:
    """The worker alone may read the one secret, and the name alone is in its environment."""
    made = synthesize(proxy_secret=secret)
    reading = {resource: {"secretsmanager:GetSecretValue"}}
    for role, allowed in ALLOWED.items():
        more = reading if role == "WorkerProgramRole" else {}
        assert made.allowed(role) == {**allowed, **more}
    for name, function in made.functions().items():
        given = function["Environment"]["Variables"].get("ORBWEAVER_PROXY_SECRET")
        assert given == (secret if name == WORKER else None)


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
def test_webhooks_are_signed_with_the_key_that_is_named(
    synthesize: Callable[..., Synthesized], secret: str, resource: str
) -> None:
    """The notifier alone may read it; a key of the stack's own is made where that is asked for."""
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


def test_no_other_permissions(aws: Synthesized) -> None:
    """Nothing else gives permissions: no policy beside roles, no role beside those listed."""
    assert set(aws.properties("AWS::IAM::Role")) == {*ALLOWED, "ApiLogsRole", PROTECTION_ROLE}
    assert not aws.properties("AWS::IAM::Policy")
    assert not aws.properties("AWS::IAM::ManagedPolicy")
