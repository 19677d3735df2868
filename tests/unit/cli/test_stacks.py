"""The choice of a stack, and its settings."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from orbweaver.cli.stack import StackUnreachable, environment_of, export_line, settings_of
from orbweaver.frontier.queues import Depths
from tests.unit.cli.fakes import LOCAL, OUTPUTS, Machine, at

HERE = {"AWS_REGION": "us-west-2", "AWS_DEFAULT_REGION": "us-west-2"}
AWS = {"AWS_PROFILE": "me", **HERE}
OTHER = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9999", **HERE}


@pytest.mark.parametrize(
    ("target", "up", "environment", "expected"),
    [
        (None, False, {}, HERE),
        (None, False, AWS, AWS),
        (None, True, {}, LOCAL),
        (None, True, AWS, LOCAL),
        (None, True, OTHER, OTHER),
        (None, False, OTHER, OTHER),
        ("local", True, OTHER, LOCAL),
        ("local", True, AWS, LOCAL),
        ("aws", True, AWS, AWS),
        ("aws", True, OTHER, OTHER),
    ],
)
def test_target_is_option_then_endpoint_then_local_then_aws(
    target: str | None, up: bool, environment: Mapping[str, str], expected: Mapping[str, str]
) -> None:
    assert environment_of(target, Machine(up_already=up), environment) == expected


@pytest.mark.parametrize(
    ("given", "environment", "profile", "expected"),
    [
        ("r1", {"AWS_REGION": "r2", "AWS_DEFAULT_REGION": "r3"}, "r4", "r1"),
        (None, {"AWS_REGION": "r2", "AWS_DEFAULT_REGION": "r3"}, "r4", "r2"),
        (None, {"AWS_REGION": "", "AWS_DEFAULT_REGION": "r3"}, "r4", "r3"),
        (None, {"AWS_PROFILE": "me"}, "r4", "r4"),
        (None, {"AWS_ENDPOINT_URL": "http://127.0.0.1:9999"}, None, "us-east-1"),
    ],
)
def test_region_is_option_then_variables_then_profile(
    given: str | None, environment: Mapping[str, str], profile: str | None, expected: str
) -> None:
    machine = Machine(profile_region=profile)
    found = environment_of("aws", machine, environment, given)
    assert found == {**environment, "AWS_REGION": expected, "AWS_DEFAULT_REGION": expected}


def test_missing_region_names_places_and_profile() -> None:
    with pytest.raises(StackUnreachable) as raised:
        environment_of("aws", Machine(profile_region=None), {"AWS_PROFILE": "me"})
    for place in ("--region", "AWS_REGION", "AWS_DEFAULT_REGION", "profile 'me'"):
        assert place in str(raised.value)


def test_stopped_local_target_names_command() -> None:
    with pytest.raises(StackUnreachable, match="orbweaver local up"):
        environment_of("local", Machine(), {})


def test_port_selects_stack_over_endpoint_of_environment() -> None:
    machine = Machine(up_already=True, up_on=[4600, 4601])
    assert environment_of(None, machine, OTHER, port=4601) == at(4601)
    with pytest.raises(
        StackUnreachable, match=r"local up --port 4602`; there is one on port 4600, 4601"
    ):
        environment_of(None, machine, {}, port=4602)


def test_choice_among_several_stacks_is_reported() -> None:
    said: list[str] = []
    machine = Machine(up_already=True, up_on=[4600, 4601])
    assert environment_of(None, machine, {}, note=said.append) == at(4600)
    assert said == [
        "2 stacks run on this machine; using the one on port 4600: --port 4601 selects another"
    ]
    environment_of(None, machine, {}, port=4601, note=said.append)
    environment_of(None, Machine(up_already=True), {}, note=said.append)
    assert len(said) == 1


@pytest.mark.parametrize("target", [None, "local"])
def test_stopped_stack_is_named_with_its_port(target: str | None) -> None:
    machine = Machine(profile_region=None, kept=[4600, 4566])
    with pytest.raises(StackUnreachable, match=r"`orbweaver local up --port 4600`"):
        environment_of(target, machine, {})


def test_export_line_is_enough_for_a_new_shell(tmp_path: Path) -> None:
    line = export_line("http://127.0.0.1:4601")
    ask = (
        "import boto3; client = boto3.client('sqs');"
        "print(client.meta.endpoint_url, client.meta.region_name)"
    )
    words = ["sh", "-c", f'{line}; exec "$0" -c "$1"', sys.executable, ask]
    fresh = {"HOME": str(tmp_path), "PATH": os.defpath}
    said = subprocess.run(words, env=fresh, capture_output=True, text=True, check=True).stdout
    assert said == "http://127.0.0.1:4601 us-east-1\n"


def test_settings_come_from_outputs_and_worker_variables() -> None:
    function = {"ORBWEAVER_PAGES_SHARDS": "4", "ORBWEAVER_PAGES_TABLE": "old", "OTHER": "x"}
    settings = settings_of("Orbweaver", Machine(function=function), LOCAL)
    assert (settings.worker.pages_shards, settings.names.pages_table) == (4, "the-PagesTable")
    assert settings.queues.seed_queue_url == "the-CrawlQueueUrl"
    assert settings.queues.crawl_queue_url == "the-PackQueueUrl"
    assert settings.queues.export_queue_url == "the-ExportQueueUrl"


def test_settings_without_variables_have_name_of_stack() -> None:
    outputs = {**OUTPUTS, "WorkerFunction": "Second-worker"}
    assert settings_of("Second", Machine(deployed=outputs), LOCAL).names.stack == "Second"


def test_settings_without_permission_are_defaults() -> None:
    outputs = {key: value for key, value in OUTPUTS.items() if key != "WorkerFunction"}
    assert settings_of("Orbweaver", Machine(deployed=outputs), LOCAL).worker.pages_shards == 16


@pytest.mark.parametrize(
    ("machine", "environment", "said"),
    [
        (Machine(deployed=None), LOCAL, "no stack 'Orbweaver' at http://127.0.0.1:4566: run"),
        (Machine(deployed=None), {}, "at this AWS account and region"),
        (
            Machine(deployed={"Bucket": "b"}),
            LOCAL,
            "lacks the outputs CrawlQueueUrl, PackQueueUrl,",
        ),
        (Machine(function={"ORBWEAVER_PAGES_SHARDS": "no"}), LOCAL, "of another version"),
        (Machine(broken=True), LOCAL, "Cannot reach it"),
    ],
)
def test_missing_old_or_silent_stack_has_own_error(
    machine: Machine, environment: Mapping[str, str], said: str
) -> None:
    with pytest.raises(StackUnreachable, match=said):
        settings_of("Orbweaver", machine, environment)


def test_queues_with_only_dead_letters_are_idle() -> None:
    assert Depths(dead=3).idle
    assert not Depths(delayed=1).idle
