"""Deliveries: their resources exist only if configured."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from infra.config import Config
from infra.keys import ConfigError
from orbweaver.delivery.plan import TRIES_MAX, retry_s
from orbweaver.model.settings import Settings
from tests.infra.roles import COPYING, DELIVERING, HERE
from tests.infra.template import KEY, SFTP, listed, text

if TYPE_CHECKING:
    from tests.infra.template import Synthesize, Synthesized

COPY = {"copy_bucket": "their-exports"}
FUNCTION, ROLE = "DeliveryProgramFunction", "DeliveryProgramRole"
DAY_S = 86_400
SECRET = f"{HERE}:secretsmanager:<AWS::Region>:<AWS::AccountId>:secret:crawl/sftp-??????"


def environment(stack: Synthesized) -> dict[str, str]:
    variables = stack.properties("AWS::Lambda::Function")[FUNCTION]["Environment"]["Variables"]
    return {key: text(value) for key, value in variables.items()}


@pytest.mark.infra
def test_stack_without_receiver_has_no_delivery_resources(aws: Synthesized) -> None:
    for kind in ("AWS::Lambda::Function", "AWS::SQS::Queue", "AWS::CloudWatch::Alarm"):
        assert not [name for name in aws.resources(kind) if "Deliver" in name]
    assert not [name for name in aws.template["Outputs"] if "Delivery" in name]


@pytest.mark.infra
@pytest.mark.parametrize(
    ("context", "more"),
    [
        (SFTP, {SECRET: {"secretsmanager:GetSecretValue"}}),
        (COPY, COPYING),
    ],
)
def test_delivery_role_has_needed_permissions_only(
    synthesize: Synthesize,
    context: dict[str, str],
    more: dict[str, set[str]],
) -> None:
    assert synthesize(**context).allowed(ROLE) == DELIVERING | more


@pytest.mark.infra
def test_exports_of_this_bucket_go_to_delivery_queue(synthesize: Synthesize) -> None:
    """Several stacks share the bus; undeliverable events become dead letters."""
    rule = synthesize(**COPY).properties("AWS::Events::Rule")["DeliveryRule"]
    pattern = rule["EventPattern"]
    assert pattern["source"] == ["orbweaver"]
    assert pattern["detail-type"] == ["ExportCompleted"]
    assert [text(bucket) for bucket in pattern["detail"]["bucket"]] == ["<StorageBucket>"]
    (target,) = rule["Targets"]
    assert text(target["Arn"]) == "<DeliveryQueue.Arn>"
    assert text(target["DeadLetterConfig"]["Arn"]) == "<DeliveryDeadLetters.Arn>"


@pytest.mark.infra
def test_delivery_is_retried_for_about_a_day(synthesize: Synthesize) -> None:
    stack = synthesize(**COPY)
    queue = stack.properties("AWS::SQS::Queue")["DeliveryQueue"]
    assert queue["RedrivePolicy"]["maxReceiveCount"] == TRIES_MAX
    tried_s = sum(map(retry_s, range(1, TRIES_MAX)))
    assert DAY_S <= tried_s <= queue["MessageRetentionPeriod"] // 2
    function = stack.properties("AWS::Lambda::Function")[FUNCTION]
    assert queue["VisibilityTimeout"] == 6 * function["Timeout"]
    assert function["RecursiveLoop"] == "Allow"
    (source,) = (
        one
        for one in stack.properties("AWS::Lambda::EventSourceMapping").values()
        if text(one["EventSourceArn"]) == "<DeliveryQueue.Arn>"
    )
    assert source["BatchSize"] == 1
    assert source["ScalingConfig"]["MaximumConcurrency"] == 2
    assert source["FunctionResponseTypes"] == ["ReportBatchItemFailures"]


@pytest.mark.infra
def test_failed_delivery_raises_alarm(synthesize: Synthesize) -> None:
    stack = synthesize(**COPY)
    alarm = stack.properties("AWS::CloudWatch::Alarm")["MonitoringDeliveries"]
    (dimension,) = alarm["Dimensions"]
    assert text(dimension["Value"]) == "<DeliveryDeadLetters.QueueName>"
    outputs = {name: text(output["Value"]) for name, output in stack.template["Outputs"].items()}
    assert outputs["DeliveryQueueUrl"] == "<DeliveryQueue>"
    assert outputs["DeliveryDeadLetterQueueUrl"] == "<DeliveryDeadLetters>"


@pytest.mark.infra
def test_delivery_settings_reach_its_function_only(synthesize: Synthesize) -> None:
    stack = synthesize(**SFTP)
    settings = Settings.from_environment(environment(stack))
    named = (
        settings.delivery.sftp_user,
        settings.delivery.sftp_host,
        settings.delivery.sftp_port,
        settings.delivery.sftp_folder,
    )
    assert named == ("crawler", "files.example.org", 22, "in/box")
    assert settings.delivery.sftp_host_key == SFTP["sftp_host_key"]
    assert settings.delivery.sftp_secret == SFTP["sftp_secret"]
    assert settings.queues.delivery_queue_url == "<DeliveryQueue>"
    copying = environment(synthesize(**COPY))
    assert copying["ORBWEAVER_COPY_BUCKET"] == COPY["copy_bucket"]
    assert not [key for key in copying if "SFTP" in key]  # The port has a default.
    others = stack.properties("AWS::Lambda::Function")
    for name, function in others.items():
        if name != FUNCTION:
            told = function.get("Environment", {}).get("Variables", {})
            assert not [key for key in told if "SFTP" in key], name


@pytest.mark.infra
def test_delivery_queue_accepts_only_its_rule(synthesize: Synthesize) -> None:
    policies = synthesize(**COPY).properties("AWS::SQS::QueuePolicy").values()
    allowing = [
        statement
        for policy in policies
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Allow" and text(statement["Resource"]) == "<DeliveryQueue.Arn>"
    ]
    (statement,) = allowing
    assert statement["Principal"] == {"Service": "events.amazonaws.com"}
    assert "sqs:SendMessage" in listed(statement["Action"])
    (condition,) = statement["Condition"]["ArnEquals"].values()
    assert text(condition) == "<DeliveryRule.Arn>"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"sftp_host_key": ""}, "sftp_host_key"),
        ({"sftp_host_key": "trust me"}, "ssh-keyscan"),
        ({"sftp_host_key": f"@cert-authority * {KEY}"}, "marker"),
        ({"sftp_secret": ""}, "sftp_secret"),
        ({"sftp_secret": "-----BEGIN OPENSSH PRIVATE KEY-----"}, "not the secret itself"),
        ({"sftp_url": "files.example.org"}, "give sftp://user@host"),
        ({"sftp_url": "sftp://files.example.org"}, "give sftp://user@host"),
        ({"sftp_url": "sftp://me:BEGIN@files.example.org"}, "without a password"),
        ({"sftp_url": ""}, "set sftp_url as well"),
        ({"sftp_url": "sftp://me@files.example.org/~/in/../.."}, "without .."),
        ({"sftp_url": "sftp://me@files.example.org:65536"}, "65535"),
        ({"sftp_url": "sftp://me@[::]:1]"}, "give sftp://user@host"),
        ({"sftp_url": "sftp://me@[1:2]"}, "sftp_url"),
        ({"copy_bucket": "Their_Exports"}, "the name of a bucket"),
    ],
)
def test_invalid_delivery_setting_is_refused(change: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as raised:
        Config.from_context({**SFTP, **change})
    assert "BEGIN" not in str(raised.value)


def test_valid_delivery_settings_are_accepted() -> None:
    for context in (SFTP, COPY, {**SFTP, **COPY}):
        assert Config.from_context(context).has_receiver
    assert not Config.from_context({}).has_receiver


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("sftp://me@h", ("me", "h", "22", "")),
        ("sftp://me@h/", ("me", "h", "22", "")),
        ("sftp://me@h/~", ("me", "h", "22", "")),
        ("sftp://me@h/~/in", ("me", "h", "22", "in")),
        ("sftp://me%40corp@h:2222/srv/in", ("me@corp", "h", "2222", "/srv/in")),
        ("sftp://me@[::1]:2222/~in", ("me", "::1", "2222", "/~in")),
    ],
)
def test_sftp_url_is_split_into_settings(url: str, parts: tuple[str, ...]) -> None:
    found = Config.from_context({**SFTP, "sftp_url": url}).sftp_settings
    assert tuple(found[f"sftp_{key}"] for key in ("user", "host", "port", "folder")) == parts
