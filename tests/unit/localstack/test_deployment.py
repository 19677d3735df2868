"""Settings that a deployment keeps, reports and chooses, with stubbed AWS answers."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

import app
from app import metadata
from localstack import cdk, deployed, deployment, layout
from localstack.errors import LocalStackError

AWS = {"AWS_REGION": "eu-central-1"}
EMULATOR = {**AWS, "AWS_ENDPOINT_URL": "http://127.0.0.1:4566"}
WORKER = "Orbweaver-worker"
QUEUES = ("Orbweaver-crawl", "Orbweaver-express", "Orbweaver-seeds")
KEPT = {"alarm_email": "me@example.org", "kms_key": "generate", "webhook_secret": "generate"}


class Account:
    """Clients with queued answers; an unexpected call fails."""

    def __init__(self) -> None:
        self._clients: dict[str, Any] = {}
        self._stubs: dict[str, Stubber] = {}

    def put(self, service: str, operation: str, answer: Any, expected: Any = None) -> None:
        """Queue the answer to a call; an error code makes the call fail."""
        if service not in self._clients:
            self._clients[service] = boto3.client(
                service, "eu-central-1", aws_access_key_id="a", aws_secret_access_key="b"
            )
            self._stubs[service] = Stubber(self._clients[service])
            self._stubs[service].activate()
        if isinstance(answer, str):
            self._stubs[service].add_client_error(operation, answer, "no")
        else:
            self._stubs[service].add_response(operation, answer, expected)

    def stands(self, status: str = "UPDATE_COMPLETE", **context: str) -> None:
        outputs = [{"OutputKey": "WorkerFunction", "OutputValue": WORKER}]
        self.put("cloudformation", "describe_stacks", {"Stacks": [_stack(status, outputs)]})
        template = {"Metadata": metadata(context, {})}
        self.put("cloudformation", "get_template", {"TemplateBody": json.dumps(template)})

    def switched(self, *states: str) -> None:
        self.put("lambda", "list_event_source_mappings", _mappings(*states))

    def quota(self, number: int) -> None:
        limits = {"ConcurrentExecutions": number, "UnreservedConcurrentExecutions": number}
        self.put("lambda", "get_account_settings", {"AccountLimit": limits})

    @contextlib.contextmanager
    def client(self, service: str, environment: Mapping[str, str]) -> Iterator[Any]:
        assert environment["AWS_REGION"] == "eu-central-1"
        yield self._clients[service]

    def finished(self) -> None:
        """Check that every answer was used."""
        for stub in self._stubs.values():
            stub.assert_no_pending_responses()


def _stack(status: str, outputs: Any = (), name: str = "Orbweaver") -> dict[str, Any]:
    return {
        "StackName": name,
        "StackStatus": status,
        "CreationTime": 0,
        "Description": deployed.DESCRIPTION,
        "Outputs": list(outputs),
    }


def _mappings(*states: str) -> dict[str, Any]:
    arn = "arn:aws:sqs:eu-central-1:123456789012:"
    found = [
        {"UUID": f"id-{queue}", "EventSourceArn": arn + queue, "State": state}
        for queue, state in zip(QUEUES, states, strict=False)
    ]
    return {"EventSourceMappings": found}


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Account]:
    account = Account()
    monkeypatch.setattr(layout, "ROOT", tmp_path)
    monkeypatch.setattr(cdk, "client", account.client)
    yield account
    account.finished()


# --- kept settings ------------------------------------------------------------------------------


@pytest.mark.thorough
def test_deployment_keeps_other_settings_and_reports_changes(account: Account) -> None:
    account.stands(**KEPT, body_retention_d="7")
    account.switched("Enabled", "Enabled", "Enabled")
    found = deployment.plan({"body_retention_d": "14"}, EMULATOR)
    assert found.context == {**KEPT, "body_retention_d": "14"}
    kept = "alarm_email=me@example.org, kms_key=generate, webhook_secret=generate"
    assert found.told == (
        f"keeps what the stack was deployed with: {kept}",
        "changes body_retention_d=7 to 14",
    )
    assert not found.off


def test_empty_value_drops_key(account: Account) -> None:
    account.stands(**KEPT)
    account.switched("Enabled")
    found = deployment.plan({"alarm_email": "", "contact": "me"}, EMULATOR)
    assert "alarm_email" not in found.context
    assert found.context["kms_key"] == "generate"
    assert found.told[1:] == ("drops alarm_email=me@example.org", "sets contact=me")


def test_reset_drops_all_settings_and_reports_them(account: Account) -> None:
    account.stands(**KEPT)
    account.switched("Enabled")
    found = deployment.plan({"contact": "me"}, EMULATOR, reset=True)
    assert found.context == {"contact": "me"}
    assert sum(line.startswith("drops ") for line in found.told) == len(KEPT)


def test_unreadable_settings_stop_deployment_without_reset(account: Account) -> None:
    """The deployment would undo all settings."""
    stack = {"Stacks": [_stack("UPDATE_COMPLETE")]}
    account.put("cloudformation", "describe_stacks", stack)
    account.put("cloudformation", "get_template", "AccessDenied")
    with pytest.raises(LocalStackError, match="--reset-context"):
        deployment.plan({}, EMULATOR)
    account.put("cloudformation", "describe_stacks", stack)
    account.put("cloudformation", "get_template", "AccessDenied")
    assert deployment.plan({}, EMULATOR, reset=True).context == {}


@pytest.mark.parametrize("status", [None, "ROLLBACK_COMPLETE", "DELETE_COMPLETE"])
def test_first_deployment_keeps_no_settings(account: Account, status: str | None) -> None:
    answer: Any = {"Stacks": [_stack(status)]} if status else "ValidationError"
    account.put("cloudformation", "describe_stacks", answer)
    found = deployment.plan({"contact": "me"}, EMULATOR)
    assert (found.context, found.told) == ({"contact": "me"}, ("sets contact=me",))


def test_defaults_are_overridden_by_kept_settings(account: Account) -> None:
    defaults = {"target": "local", "allow_addresses": "127.0.0.0/8"}
    account.stands()
    account.switched("Enabled")
    first = deployment.plan({}, EMULATOR, defaults=defaults)
    assert first.context == {**defaults, deployment.KEY: "{}"}
    account.stands(allow_addresses="10.0.0.0/8")
    account.switched("Enabled")
    second = deployment.plan({}, EMULATOR, defaults=defaults)
    assert second.context["allow_addresses"] == "10.0.0.0/8"


def test_stack_name_comes_from_option_or_file(account: Account, tmp_path: Path) -> None:
    (tmp_path / "cdk.json").write_text('{"context": {"stack_name": "Ours"}}')
    for given, name in (({}, "Ours"), ({"stack_name": "Mine"}, "Mine")):
        expected = {"StackName": name}
        account.put("cloudformation", "describe_stacks", "ValidationError", expected)
        assert deployment.plan(given, EMULATOR).name == name


def test_template_metadata_has_given_settings_only() -> None:
    file = {"contact": "us", "@aws-cdk/core:x": True, "batch_size": 5}
    context = {**file, "batch_size": "7", "stack_name": "Mine", "target": "local"}
    assert metadata(context, file) == {"Orbweaver": {"Context": {"batch_size": "7"}}}
    said = {**context, "orbweaver:context": '{"kms_key": "generate", "worker_enabled": "no"}'}
    assert metadata(said, file) == {"Orbweaver": {"Context": {"kms_key": "generate"}}}


def test_app_and_deployment_share_metadata_keys() -> None:
    assert (app.KEY, app.NEVER) == (deployment.KEY, deployment.NEVER)
    assert (app.METADATA, app.CONTEXT) == (
        deployed.METADATA,
        deployed.CONTEXT,
    )


# --- the switch ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("states", "given", "off", "passed"),
    [
        (("Disabled", "Disabled", "Disabled"), {}, True, "no"),
        (("Disabled", "Disabling", "Disabled"), {}, True, "no"),
        (("Disabled", "Enabled", "Disabled"), {}, False, None),
        (("Enabled", "Enabled"), {}, False, None),
        ((), {}, False, None),
        (None, {"worker_enabled": "yes"}, False, None),
        (None, {"worker_enabled": "no"}, False, "no"),
    ],
)
def test_deployment_leaves_workers_switched_off(
    account: Account,
    states: tuple[str, ...] | None,
    given: dict[str, str],
    off: bool,
    passed: str | None,
) -> None:
    account.stands(contact="me")
    if states is not None:
        account.switched(*states)
    found = deployment.plan(given, EMULATOR)
    assert (found.off, found.context.get("worker_enabled")) == (off, passed)
    assert any("stay off: `orbweaver workers on`" in line for line in found.told) == off


@pytest.mark.parametrize("enabled", ["yes", "no"])
def test_deployment_with_setting_switches_workers(
    account: Account, monkeypatch: pytest.MonkeyPatch, enabled: str
) -> None:
    """The template may already have the value, because it does not contain a manual switch."""
    monkeypatch.setattr(deployment, "PAUSE_S", 0)
    before = "Disabled" if enabled == "yes" else "Enabled"
    account.switched(before, before, "Disabled" if enabled == "no" else "Enabled")
    wanted = {"UUID": f"id-{QUEUES[0]}", "Enabled": enabled == "yes"}
    account.put("lambda", "update_event_source_mapping", "ResourceInUseException")
    account.put("lambda", "update_event_source_mapping", {}, wanted)
    account.put("lambda", "update_event_source_mapping", {}, {**wanted, "UUID": f"id-{QUEUES[1]}"})
    deployment.switch({}, {"WorkerFunction": WORKER}, AWS)
    deployment.switch({"worker_enabled": enabled}, {"WorkerFunction": WORKER}, AWS)


def test_event_sources_of_all_pages_are_listed(account: Account) -> None:
    account.put(
        "lambda",
        "list_event_source_mappings",
        {**_mappings("Enabled"), "NextMarker": "more"},
        {"FunctionName": WORKER},
    )
    page = _mappings("Enabled", "Disabled", "Creating")
    page["EventSourceMappings"] = page["EventSourceMappings"][:0:-1]
    account.put(
        "lambda", "list_event_source_mappings", page, {"FunctionName": WORKER, "Marker": "more"}
    )
    found = deployed.read_sources(WORKER, AWS)
    assert [(source.queue, source.state) for source in found] == [
        (QUEUES[0], "Enabled"),
        (QUEUES[1], "Disabled"),
        (QUEUES[2], "Creating"),
    ]


def test_denied_switch_is_error_and_busy_one_is_retried(account: Account) -> None:
    source = deployed.Source(id="1", queue="crawl", state="Enabled")
    account.put("lambda", "update_event_source_mapping", "ResourceInUseException")
    assert not deployed.switch(source, AWS, on=False)
    account.put("lambda", "update_event_source_mapping", "AccessDeniedException")
    with pytest.raises(LocalStackError, match="Cannot switch crawl"):
        deployed.switch(source, AWS, on=False)
    account.put("lambda", "list_event_source_mappings", "AccessDeniedException")
    with pytest.raises(LocalStackError, match="Cannot list the event sources"):
        deployed.read_sources(WORKER, AWS)


# --- stacks -------------------------------------------------------------------------------------


def test_only_existing_stacks_of_product_are_named(account: Account) -> None:
    other = {**_stack("CREATE_COMPLETE", name="Other"), "Description": "something else"}
    page = [_stack("CREATE_COMPLETE", name="Mine"), other, _stack("DELETE_COMPLETE", name="Gone")]
    account.put("cloudformation", "describe_stacks", {"Stacks": page, "NextToken": "more"})
    more = {"Stacks": [_stack("UPDATE_IN_PROGRESS")]}
    account.put("cloudformation", "describe_stacks", more, {"NextToken": "more"})
    assert deployed.names(AWS) == ["Mine", "Orbweaver"]


# --- concurrency --------------------------------------------------------------------------------

LIMITS = {
    "worker_concurrency_max": 50,
    "express_concurrency_max": 10,
    "exporter_concurrency_max": 20,
}


def test_usual_limits_equal_deployment_limits() -> None:
    assert LIMITS.items() == deployment.default_limits(renders=False).items()
    assert deployment.default_limits(renders=True) == {**LIMITS, "renderer_concurrency_max": 10}


@pytest.mark.parametrize("quota", [5, 10, 20, 50, 90, 110, 1_000])
def test_chosen_limits_leave_room_for_api(quota: int) -> None:
    chosen, said = deployment.choose(quota, LIMITS, {})
    assert said[0] == f"Lambda runs up to {quota:,} functions at once in this account and region"
    if quota >= sum(LIMITS.values()) + quota // 5:
        assert (chosen, len(said)) == ({}, 1)
        return
    numbers = {key: int(value) for key, value in chosen.items()}
    assert numbers.keys() == LIMITS.keys()
    assert all(2 <= numbers[key] <= LIMITS[key] for key in LIMITS)
    assert numbers["worker_concurrency_max"] == max(numbers.values())
    least = 2 * len(LIMITS)
    assert sum(numbers.values()) <= max(least, quota - max(3, quota // 5))
    assert "Service Quotas" in said[1]


def test_given_limits_win_with_warning(account: Account, tmp_path: Path) -> None:
    (tmp_path / "cdk.json").write_text('{"context": {"express_concurrency_max": 4}}')
    account.stands(worker_concurrency_max="30")
    account.switched("Enabled")
    account.quota(10)
    found = deployment.plan({"contact": "me"}, AWS)
    assert found.context["worker_concurrency_max"] == "30"
    assert "express_concurrency_max" not in found.context
    assert found.context["exporter_concurrency_max"] == "2"
    warnings = [line for line in found.told if line.startswith("warning: ")]
    assert len(warnings) == 1
    assert "express_concurrency_max=4" in warnings[0]
    assert "worker_concurrency_max=30" in warnings[0]
    kept = json.loads(found.context[deployment.KEY])
    assert kept == {"contact": "me", "worker_concurrency_max": "30"}


def test_denied_quota_keeps_usual_limits(account: Account) -> None:
    account.put("cloudformation", "describe_stacks", "ValidationError")
    account.put("lambda", "get_account_settings", "AccessDeniedException")
    found = deployment.plan({}, AWS)
    assert found.context == {deployment.MARK: deployment.NEW}
    assert "the usual limits stay" in found.told[0]
