"""The emulator as a child process: started, found, kept or removed, and never left running."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from localstack import cdk, emulator, layout, processes
from localstack.errors import LocalStackError
from orbweaver.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Start = Callable[..., emulator.Emulator]

pytestmark = pytest.mark.emulator

SLOW_FUNCTION = """
    import time

    def handler(event, context):
        time.sleep(event["sleep_s"])
        return "done"
"""


@pytest.fixture(autouse=True)
def instances(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "INSTANCES", tmp_path)


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[emulator.Emulator] = []

    def run(**options: object) -> emulator.Emulator:
        options = {"port": 0} | options
        started.append(emulator.start(**options))  # type: ignore[arg-type]
        return started[-1]

    yield run
    for one in started:
        one.stop()


def queues(running: emulator.Emulator) -> list[str]:
    with cdk.client("sqs", running.environment()) as sqs:
        return [url.rpartition("/")[2] for url in sqs.list_queues().get("QueueUrls", ())]


def make_queue(running: emulator.Emulator, name: str) -> None:
    """Create a queue that identifies an emulator's state."""
    with cdk.client("sqs", running.environment()) as sqs:
        sqs.create_queue(QueueName=name)


def start_function(running: emulator.Emulator) -> None:
    """Run a function that answers once and is then busy for a minute."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("slow.py", textwrap.dedent(SLOW_FUNCTION))
    with cdk.client("lambda", running.environment()) as functions:
        functions.create_function(
            FunctionName="slow",
            Runtime="python3.13",
            Role=f"arn:aws:iam::{layout.ACCOUNT}:role/any",
            Handler="slow.handler",
            Code={"ZipFile": archive.getvalue()},
            Timeout=100,
        )
        answer = functions.invoke(FunctionName="slow", Payload=b'{"sleep_s": 0}')
        assert json.loads(answer["Payload"].read()) == "done"
        functions.invoke(FunctionName="slow", Payload=b'{"sleep_s": 60}', InvocationType="Event")


def test_two_temporary_emulators_are_separate_and_leave_nothing(
    start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """No variable of the machine reaches an emulator or its clients."""
    with monkeypatch.context() as machine:
        machine.setenv("AWS_PROFILE", "production")
        machine.setenv("AWS_SECRET_ACCESS_KEY", "a real one")
        machine.setenv("AWS_ENDPOINT_URL_SQS", "http://elsewhere.invalid")
        first, second = start(keep=False, settings={"LOG_LEVEL": "ERROR"}), start(keep=False)
        seen = first.environment()
    make_queue(first, "only-here")

    assert first.port != second.port
    assert first.is_healthy()
    assert second.is_healthy()
    assert (queues(first), queues(second)) == (["only-here"], [])
    with socket.socket() as other_address:
        assert other_address.connect_ex(("127.0.0.2", first.port)) != 0
    assert "AWS_PROFILE" not in seen
    assert "AWS_ENDPOINT_URL_SQS" not in seen
    assert seen["AWS_SECRET_ACCESS_KEY"] == "test"
    assert seen["AWS_ENDPOINT_URL"] == first.endpoint_url
    inside = Path(f"/proc/{first.process.pid}/environ").read_text().split("\0")
    assert "LOG_LEVEL=ERROR" in inside
    assert not [item for item in inside if "production" in item or "a real one" in item]
    assert f"HOME={tmp_path / str(first.port) / 'tmp'}" in inside

    start_function(second)
    assert len(processes.members(second.process.pid)) > 1
    for one in (first, second):
        one.stop()
        assert emulator.find(one.port) is None
        assert processes.members(one.process.pid) == []
    assert list(tmp_path.iterdir()) == []


def test_kept_state_survives_stop_and_stale_pid_file_until_fresh_start(
    start: Start, tmp_path: Path
) -> None:
    """The stale file's process id is the test's own."""
    first = start(keep=True)
    make_queue(first, "kept")
    start_function(first)
    first.stop()
    assert processes.members(first.process.pid) == []
    stale = {"pid": os.getpid(), "started": "long ago", "keep": True, "since_s": 0}
    noted = json.dumps({**stale, "released": True})
    (tmp_path / str(first.port) / "pid.json").write_text(noted)
    assert emulator.find(first.port) is None

    second = start(port=first.port, keep=True)
    assert queues(second) == ["kept"]
    second.stop()

    assert queues(start(port=first.port, keep=True, fresh=True)) == []


def test_sigterm_ends_functions_with_emulator(start: Start) -> None:
    running = start(keep=True)
    start_function(running)
    workers = processes.members(running.process.pid)
    identities = [found for pid in workers if (found := processes.identify(pid))]

    os.kill(running.process.pid, signal.SIGTERM)

    assert len(identities) > 1
    assert all(processes.wait_gone(identity, timeout_s=20) for identity in identities)


def test_taken_port_is_clear_error(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(LocalStackError, match=f"Port {port} is taken .*--port"):
            start(port=port)
    running = start()
    with pytest.raises(LocalStackError, match=f"down --port {running.port}"):
        start(port=running.port)


def test_failed_start_reports_output_and_leaves_no_process(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "EMULATOR_PYTHON", layout.ROOT / ".venv" / "bin" / "python")
    with pytest.raises(LocalStackError, match="No module named 'ministack'"):
        start()
    assert emulator.find_all() == []

    monkeypatch.setattr(layout, "EMULATOR_PYTHON", tmp_path / "absent")
    with pytest.raises(LocalStackError, match="make setup"):
        start()


# The shell waits in steps, because a signal just before a `read` takes effect only when that
# returns.
STARTER = """
    import select
    import sys
    from pathlib import Path
    from localstack import emulator, layout

    layout.INSTANCES = Path(sys.argv[1])
    running = emulator.start(port=0, keep=True)
    {then}
    print(running.port, flush=True)
    while not select.select([sys.stdin], [], [], 0.1)[0]:
        pass
"""


@pytest.mark.parametrize(
    ("then", "signal_number", "survives"),
    [
        ("pass", signal.SIGTERM, False),
        ("pass", signal.SIGINT, False),
        ("running.release()", signal.SIGKILL, True),
    ],
)
def test_emulator_ends_with_its_starter_unless_released(
    tmp_path: Path, then: str, signal_number: signal.Signals, *, survives: bool
) -> None:
    program = textwrap.dedent(STARTER.format(then=then))
    with subprocess.Popen(
        [sys.executable, "-c", program, tmp_path],
        cwd=layout.ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as starter:
        assert starter.stdout is not None
        port = int(starter.stdout.readline())
        running = emulator.find(port)
        assert running is not None
        starter.send_signal(signal_number)
        starter.wait()
    if survives:
        assert running.is_healthy()
        running.stop()
    assert processes.wait_gone(running.process, timeout_s=20)


USER = """
    import sys
    from pathlib import Path
    from localstack import layout, stack

    layout.INSTANCES = Path(sys.argv[2])

    with stack.shared(int(sys.argv[1]), say=lambda _: None) as (running, started):
        print(running.port, started, flush=True)
        sys.stdin.readline()
    print("left", flush=True)
"""


@contextlib.contextmanager
def user(port: int, instances: Path) -> Iterator[subprocess.Popen[str]]:
    """Run a command that uses a port's emulator until a line is sent."""
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(USER), str(port), instances],
        cwd=layout.ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as command:
        try:
            yield command
        finally:
            command.kill()


def said(command: subprocess.Popen[str]) -> list[str]:
    assert command.stdout is not None
    return command.stdout.readline().split()


def end(command: subprocess.Popen[str]) -> None:
    assert command.stdin is not None
    command.stdin.write("\n")
    command.stdin.flush()


def leave(command: subprocess.Popen[str]) -> None:
    end(command)
    assert said(command) == ["left"]
    assert command.wait() == 0


def test_starting_command_stops_emulator_after_other_command(tmp_path: Path) -> None:
    with user(0, tmp_path) as first:
        port = int(said(first)[0])
        running = emulator.find(port)
        assert running is not None
        with user(port, tmp_path) as second:
            assert said(second) == [str(port), "False"]
            end(first)
            make_queue(running, "kept")
            leave(second)
        assert said(first) == ["left"]
        assert not processes.is_running(running.process)
    with user(port, tmp_path) as third:
        assert said(third) == [str(port), "True"]
        found = emulator.find(port)
        assert found is not None
        assert queues(found) == ["kept"]
        leave(third)


def test_killed_starting_command_ends_emulator_in_order(tmp_path: Path) -> None:
    with user(0, tmp_path) as first:
        port = int(said(first)[0])
        running = emulator.find(port)
        assert running is not None
        first.kill()
        first.wait()
    assert processes.wait_gone(running.process, timeout_s=20)
    assert emulator.lost_data() == []


def test_released_emulator_outlives_its_starter(tmp_path: Path) -> None:
    with user(0, tmp_path) as first:
        port = int(said(first)[0])
        running = emulator.find(port)
        assert running is not None
        running.release()
        leave(first)
    assert running.is_healthy()
    running.stop()


def test_killed_emulator_reports_lost_state(start: Start) -> None:
    running = start(keep=True)
    make_queue(running, "lost")
    with cdk.client("s3", running.environment()) as s3:
        s3.create_bucket(Bucket="files")
        s3.put_object(Bucket="files", Key="a/b", Body=b"kept")
    os.killpg(running.process.pid, signal.SIGKILL)
    assert processes.wait_gone(running.process, timeout_s=20)

    for _ in range(2):
        assert emulator.find(running.port) is None
        assert emulator.lost_data() == [emulator.describe_loss(running.port, running.since_s)]

    with socket.create_server(("127.0.0.1", running.port)), pytest.raises(LocalStackError):
        start(port=running.port, keep=True)
    again = start(port=running.port, keep=True)
    assert again.lost_since_s == running.since_s
    assert queues(again) == []
    with cdk.client("s3", again.environment()) as s3:
        assert s3.get_object(Bucket="files", Key="a/b")["Body"].read() == b"kept"
    assert emulator.lost_data() == []


def test_local_status_and_down_find_emulator(capsys: pytest.CaptureFixture[str]) -> None:
    running = emulator.start(port=0, keep=True)
    found = emulator.find(running.port)
    assert found is not None
    assert found.process == running.process

    assert main(["local", "status"]) == 0
    assert f"{running.endpoint_url}  healthy  log {running.log}" in capsys.readouterr().out
    assert main(["local", "down", "--port", str(running.port)]) == 0
    assert main(["local", "down", "--port", str(running.port)]) == 0
    assert f"no emulator runs on port {running.port}" in capsys.readouterr().err
    running.stop()
