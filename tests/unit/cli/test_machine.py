"""The machine that commands run on, with fakes of the emulator, CDK and AWS."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from localstack import cdk, deployed, deployment, emulator, guard, layout, stack
from localstack.errors import LocalStackError
from orbweaver.adapters.aws.clients import Aws
from orbweaver.app import container
from orbweaver.cli.local_machine import ThisMachine, _kept, connect
from orbweaver.cli.stack import LOCAL_CONTEXT, StackUnreachable
from orbweaver.frontier.queues import Depths
from orbweaver.model.settings import Settings

SETTINGS = Settings.of(
    seed_queue_url="seeds",
    crawl_queue_url="crawl",
    express_queue_url="express",
    dead_letter_queue_url="d",
)


@dataclass
class Emulated:
    """A fake emulator with the interface that commands use."""

    port: int = 4566
    keep: bool = True
    stopped: bool = False
    released: bool = False
    directory: Path = Path()
    log: Path = Path("emulator.log")
    process: str = "a process"
    lost_since_s: float | None = None

    @property
    def endpoint_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def environment(self) -> dict[str, str]:
        return {"AWS_ENDPOINT_URL": self.endpoint_url}

    def is_healthy(self) -> bool:
        return self.port == 4566

    def stop(self) -> None:
        self.stopped = True

    def release(self) -> None:
        pass

    def hand_over(self) -> None:
        pass


@dataclass
class Played:
    """State of the fake machine, and calls to it. `folder` holds locks."""

    folder: Path
    running: list[Emulated] = field(default_factory=list)
    started: list[Emulated] = field(default_factory=list)
    contexts: list[Mapping[str, str]] = field(default_factory=list)
    fault: bool = False

    def find(self, port: int = 4566, **_: Any) -> Emulated | None:
        there = (one for one in (*self.running, *self.started) if one.port == port)
        return next((one for one in there if not one.stopped), None)

    def find_all(self) -> list[Emulated]:
        return self.running

    def start(self, *, port: int, keep: bool, **_: Any) -> Emulated:
        self.started.append(Emulated(port=port or 5000, keep=keep, directory=self.folder))
        return self.started[-1]

    def bring_up_to_date(
        self,
        running: Emulated,
        context: Mapping[str, str] | None = None,
        *,
        defaults: Mapping[str, str],
        say: Any,
        **_: Any,
    ) -> dict[str, str]:
        assert defaults == LOCAL_CONTEXT
        self.contexts.append(context or {})
        if self.fault:
            raise LocalStackError("`cdk deploy` failed")
        return {"Bucket": "b"}


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Played:
    played = Played(tmp_path)
    monkeypatch.setattr(layout, "INSTANCES", tmp_path)
    for name in ("find", "find_all", "start"):
        monkeypatch.setattr(emulator, name, getattr(played, name))
    monkeypatch.setattr(stack, "bring_up_to_date", played.bring_up_to_date)
    return played


class Client:
    """A client of SQS and Lambda with four queues and one function."""

    def __init__(self, *, denied: bool = False) -> None:
        self.denied = denied

    def close(self) -> None:
        pass

    def get_queue_attributes(self, *, QueueUrl: str, **_: Any) -> dict[str, Any]:  # noqa: N803
        self._check()
        number = {"seeds": "100", "crawl": "1", "express": "10", "d": "7"}[QueueUrl]
        name = "ApproximateNumberOfMessages"
        counts = {name: number, f"{name}NotVisible": "2", f"{name}Delayed": "3"}
        return {"Attributes": {**counts, "VisibilityTimeout": "360"}}

    def get_function_configuration(self, **_: Any) -> dict[str, Any]:
        self._check()
        return {"Environment": {"Variables": {"ORBWEAVER_PAGES_SHARDS": "4"}}}

    def _check(self) -> None:
        if self.denied:
            raise ClientError({"Error": {"Code": "AccessDenied"}}, "GetSomething")


@pytest.mark.parametrize("denied", [False, True])
def test_queues_and_variables_are_empty_without_permission(
    monkeypatch: pytest.MonkeyPatch, denied: bool
) -> None:
    opened: list[str] = []

    @contextlib.contextmanager
    def client(service: str, environment: Mapping[str, str]) -> Iterator[Client]:
        opened.append(service)
        yield Client(denied=denied)

    monkeypatch.setattr(cdk, "client", client)
    with contextlib.closing(ThisMachine()) as machine:
        found = [machine.depths(SETTINGS, {}) for _ in range(2)]
        variables = machine.variables("worker", {})
    assert opened == ["sqs", "lambda"]
    counted = Depths(waiting=111, in_work=6, delayed=9, dead=7, hidden_s=360)
    assert found == ([None, None] if denied else [counted, counted])
    assert variables == ({} if denied else {"ORBWEAVER_PAGES_SHARDS": "4"})


@pytest.mark.parametrize(
    ("ports", "kept", "expected"),
    [
        ([], True, []),
        ([5001], False, []),
        ([5001, 4566], True, [4566, 5001]),
        ([5001, 5002], True, [5001, 5002]),
    ],
)
def test_local_stack_is_found_without_emulators_of_tests(
    played: Played, ports: list[int], kept: bool, expected: list[int]
) -> None:
    played.running = [Emulated(port=port, keep=kept) for port in ports]
    found = ThisMachine().local()
    assert list(found) == expected
    assert all(found[port]["AWS_ENDPOINT_URL"].endswith(f":{port}") for port in expected)


def test_stopped_stacks_are_found_by_saved_state(played: Played) -> None:
    played.running = [Emulated(port=5003)]
    for age, (port, parts) in enumerate(
        {5001: ["state/x"], 5002: ["state/x"], 5003: ["state/x"], 5004: []}.items()
    ):
        for part in ["state", *parts]:
            place = played.folder / str(port) / part
            place.parent.mkdir(parents=True, exist_ok=True)
            if part == "state":
                place.mkdir()
            else:
                place.touch()
        os.utime(played.folder / str(port), (age, age))
    assert ThisMachine().stopped() == [5002, 5001]


def test_unreadable_outputs_name_command_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def describe(*_: object) -> None:
        raise LocalStackError("Cannot reach AWS")

    monkeypatch.setattr(deployed, "describe", describe)
    monkeypatch.setattr(ThisMachine, "stopped", lambda _self: [])
    with pytest.raises(StackUnreachable, match="Cannot reach AWS\n`orbweaver local up`"):
        ThisMachine().outputs("Orbweaver", {}, print)


@pytest.mark.parametrize(
    ("status", "there", "said"),
    [
        ("CREATE_COMPLETE", True, ""),
        ("UPDATE_COMPLETE", True, ""),
        ("UPDATE_ROLLBACK_COMPLETE", True, ""),
        ("UPDATE_IN_PROGRESS", True, "may be of the version before"),
        ("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", True, "may be of the version before"),
        ("UPDATE_ROLLBACK_IN_PROGRESS", True, "may be of the version before"),
        ("UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS", True, "may be of the version before"),
        ("UPDATE_FAILED", True, "run `orbweaver deploy` again"),
        ("UPDATE_ROLLBACK_FAILED", True, "can continue the rollback"),
        ("CREATE_IN_PROGRESS", False, "it is being created"),
        ("ROLLBACK_COMPLETE", False, "its creation failed and was undone"),
        ("ROLLBACK_FAILED", False, "`orbweaver destroy`, then"),
        ("REVIEW_IN_PROGRESS", False, "it was never created"),
        ("DELETE_IN_PROGRESS", False, "it is being removed"),
        ("DELETE_FAILED", False, "its removal failed"),
    ],
)
def test_stack_status_is_reported(
    monkeypatch: pytest.MonkeyPatch, status: str, there: bool, said: str
) -> None:
    found = deployed.Described(name="Mine", status=status, description="", outputs={"Bucket": "b"})
    monkeypatch.setattr(deployed, "describe", lambda *_: found)
    told: list[str] = []
    if there:
        assert ThisMachine().outputs("Mine", {}, told.append) == {"Bucket": "b"}
    else:
        with pytest.raises(StackUnreachable) as raised:
            ThisMachine().outputs("Mine", {}, told.append)
        told = [str(raised.value)]
    assert len(told) == bool(said)
    assert all(f"the stack 'Mine' is {status}: " in line and said in line for line in told)


@pytest.mark.parametrize("released", [True, False])
def test_running_emulator_is_updated_and_left_running(played: Played, *, released: bool) -> None:
    played.running = [Emulated(released=released, directory=played.folder)]
    said: list[str] = []
    with ThisMachine().running_stack(4566, said.append) as stood:
        assert (stood.started, stood.outputs) == (False, {"Bucket": "b"})
    assert not played.running[0].stopped
    assert played.contexts == [{}]
    assert said == []


@pytest.mark.parametrize("fault", [False, True])
def test_started_emulator_is_stopped_and_state_kept(played: Played, fault: bool) -> None:
    played.fault = fault
    ending = (
        pytest.raises(StackUnreachable, match="cdk deploy") if fault else contextlib.nullcontext()
    )
    with ending, ThisMachine().running_stack(0, lambda _: None) as stood:
        assert stood.started
        assert stood.environment["AWS_ENDPOINT_URL"] == "http://127.0.0.1:5000"
    assert [(one.keep, one.stopped) for one in played.started] == [(True, True)]


def test_killed_emulator_is_reported_until_it_starts_again(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    def restarted(**options: Any) -> Emulated:
        again = Emulated(port=options["port"], directory=played.folder, lost_since_s=0)
        played.started.append(again)
        return again

    monkeypatch.setattr(emulator, "start", restarted)
    (played.folder / "4566").mkdir()
    noted = {"pid": os.getpid(), "started": "long ago", "keep": True, "since_s": 0}
    (played.folder / "4566" / guard.NOTE).write_text(json.dumps({**noted, "released": True}))
    (lost,) = ThisMachine().lost_data()
    assert "since 1970-01-01 00:00:00 UTC is lost" in lost
    said: list[str] = []
    with ThisMachine().running_stack(4566, said.append):
        assert said == ["starting the emulator", lost]


def test_deployment_to_own_emulator_keeps_fingerprint(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, Mapping[str, str], Mapping[str, str]]] = []

    def deploy(environment: Mapping[str, str], context: Mapping[str, str], **_: Any) -> Any:
        calls.append(("deploy", environment, context))
        return {}

    def destroy(environment: Mapping[str, str], context: Mapping[str, str], **_: Any) -> None:
        calls.append(("destroy", environment, context))

    def plan(given: Mapping[str, str], *_: Any, **__: Any) -> deployment.Plan:
        return deployment.Plan(name="Orbweaver", context={**given, "kept": "yes"})

    monkeypatch.setattr(cdk, "deploy", deploy)
    monkeypatch.setattr(cdk, "destroy", destroy)
    monkeypatch.setattr(deployment, "plan", plan)
    played.running = [Emulated()]
    machine, here = ThisMachine(), Emulated().environment()
    machine.deploy(here, {"batch_size": "5"}, reset=False, yes=False, say=print)
    machine.destroy(here, {}, yes=True, say=print)
    machine.deploy({}, {"contact": "me"}, reset=False, yes=True, say=print)
    machine.destroy({}, {}, yes=True, say=print)
    assert played.contexts == [{"batch_size": "5"}]
    assert calls == [
        ("destroy", here, LOCAL_CONTEXT),
        ("deploy", {}, {"contact": "me", "kept": "yes"}),
        ("destroy", {}, {}),
    ]


def test_local_up_and_down_deploy_and_stop_emulators(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped: list[int] = []

    def up(
        *, port: int, fresh: bool, context: Mapping[str, str], defaults: Mapping[str, str], say: Any
    ) -> stack.Stack:
        played.contexts += [defaults, context]
        running: Any = Emulated(port=port)
        return stack.Stack(emulator=running, outputs={"Bucket": "b"})

    def down(port: int, *, say: Any) -> bool:
        stopped.append(port)
        return port != 5001

    monkeypatch.setattr(stack, "up", up)
    monkeypatch.setattr(stack, "down", down)
    machine = ThisMachine()
    outputs = machine.start_stack(4566, {"contact": "me"}, fresh=True, say=print)
    assert outputs == {"Bucket": "b", "AWS_ENDPOINT_URL": "http://127.0.0.1:4566"}
    assert played.contexts == [LOCAL_CONTEXT, {"contact": "me"}]
    played.running = [Emulated(), Emulated(port=5001)]
    assert machine.down(None, print)
    assert not machine.down(5001, print)
    assert stopped == [4566, 5001, 5001]


def test_local_emulators_are_listed_with_log_and_apis(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    def described(_: Mapping[str, str]) -> list[deployed.Described]:
        api = {"ApiUrl": "http://127.0.0.1:4566/restapis/x/v1/_user_request_/"}
        parts = {"status": "CREATE_COMPLETE", "description": ""}
        old = deployed.Described(name="Old", outputs={}, **parts)
        return [deployed.Described(name="Orbweaver", outputs=api, **parts), old]

    monkeypatch.setattr(deployed, "of_product", described)
    played.running = [Emulated(), Emulated(port=5001)]
    assert ThisMachine().running() == [
        "http://127.0.0.1:4566  healthy  log emulator.log",
        "  stack Orbweaver, API http://127.0.0.1:4566/restapis/x/v1/_user_request_/",
        "http://127.0.0.1:5001  does not answer  log emulator.log",
    ]


async def test_connection_ignores_aws_variables_of_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The variables could send clients to another place."""
    endpoint = {"AWS_ENDPOINT_URL": "http://127.0.0.1:4566", "AWS_REGION": "us-east-1"}
    environment = {**endpoint, "NO_PROXY": "127.0.0.1"}
    monkeypatch.setattr(os, "environ", {"AWS_PROFILE": "mine", "AWS_REGION": "eu", "HOME": "/h"})

    @contextlib.asynccontextmanager
    async def opened(settings: Settings) -> AsyncIterator[str]:
        yield "ports"

    monkeypatch.setattr(container, "connect", opened)
    before = dict(os.environ)
    async with connect(SETTINGS, environment) as ports:
        assert str(ports) == "ports"
        assert os.environ == {**environment, "HOME": "/h"}
    assert os.environ == before


SERVICES = ("dynamodb", "sqs", "s3", "events", "scheduler", "glue")


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"AWS_REGION": "eu-central-1"}, "eu-central-1"),
        ({"AWS_DEFAULT_REGION": "eu-west-3"}, "eu-west-3"),
        ({"AWS_REGION": "eu-central-1", "AWS_DEFAULT_REGION": "eu-west-3"}, "eu-central-1"),
        ({"AWS_PROFILE": "mine"}, "ap-south-1"),
        ({"AWS_PROFILE": "mine", "AWS_REGION": "eu-central-1"}, "eu-central-1"),
    ],
)
async def test_every_client_uses_named_region(
    variables: Mapping[str, str], expected: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = tmp_path / "config"
    config.write_text("[profile mine]\nregion = ap-south-1\n")
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_CONFIG_FILE": str(config)}
    for name, value in {**keys, **variables}.items():
        monkeypatch.setenv(name, value)
    async with Aws() as aws:
        found = {(await aws.client(service)).meta.region_name for service in SERVICES}
    assert found == {expected}
    with cdk.client("cloudformation", os.environ) as client:
        assert client.meta.region_name == expected
        assert expected in client.meta.endpoint_url
    assert ThisMachine().region(os.environ) == expected


def test_missing_profile_has_own_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    with pytest.raises(StackUnreachable, match=r"profile.*absent"):
        ThisMachine().region({"AWS_PROFILE": "absent"})


def test_custom_module_is_stored_with_stack(tmp_path: Path) -> None:
    module = tmp_path / "ext.py"
    module.write_text("def a(page, url): ...")
    folder = tmp_path / "instance"
    folder.mkdir()
    first = _kept({"extractor": str(module), "x": "1"}, folder)
    module.write_text("def b(page, url): ...")
    second = _kept({"extractor": str(module)}, folder)
    module.unlink()
    assert first["x"] == "1"
    assert Path(first["extractor"]).read_text() == "def a(page, url): ..."
    assert Path(second["extractor"]).read_text() == "def b(page, url): ..."
    assert _kept({}, folder) == {}
