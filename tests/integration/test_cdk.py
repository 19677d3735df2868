"""The CDK command line as the product runs it, and cached syntheses.

The real Node runs a substitute for `cdk`; e2e tests deploy the real stack.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from botocore.exceptions import ClientError

from infra import node
from localstack import assembly, cdk, emulator, layout, processes, removal
from localstack.errors import LocalStackError
from localstack.removal import BUCKET, Resource
from orbweaver.cli.main import main

EMULATOR = layout.client_environment("http://127.0.0.1:1")

STAND_IN = """
    const fs = require("fs");
    const words = process.argv.slice(2);
    const after = (name) => words[words.indexOf(name) + 1];
    fs.appendFileSync("calls.txt", words.join(" ") + "\\n");
    if (words.includes("synth")) {
      if (words.includes("broken=yes")) {
        console.log("first line");
        console.error("no such construct");
        process.exit(3);
      }
      if (words.includes("endless=yes")) {
        setInterval(() => {}, 1000);
        return;
      }
      const file = (name, held) => fs.writeFileSync(
        after("--output") + "/" + name, JSON.stringify(held));
      const stack = { type: "aws:cloudformation:stack", properties: { templateFile: "t.json" } };
      file("manifest.json", { artifacts: { Orbweaver: stack, Tree: { type: "cdk:tree" } } });
      file("t.json", { Resources: {} });
    }
    if (words.includes("deploy")) {
      const outputs = { Orbweaver: { QueueUrl: "here", Node: process.version } };
      fs.writeFileSync(after("--outputs-file"), JSON.stringify(outputs));
    }
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "project"
    monkeypatch.setattr(layout, "ROOT", root)
    monkeypatch.setattr(layout, "ASSEMBLIES", tmp_path / "store")
    for name in ("infra/stack.py", "functions/handlers/worker.py", "requirements/runtime.txt"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    (root / "app.py").write_text("app")
    (root / "cdk.json").write_text("{}")
    return root


@pytest.fixture
def calls(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], list[str]]:
    script = tmp_path / "cdk.js"
    script.write_text(textwrap.dedent(STAND_IN))
    monkeypatch.setattr(layout, "CDK", script)
    monkeypatch.setattr(cdk, "stack_outputs", lambda *_: {})
    monkeypatch.setattr(removal, "resources_of", lambda *_: [])
    monkeypatch.setattr(removal, "left_file", lambda *_: tmp_path / "left.json")
    monkeypatch.setattr(cdk, "amend", lambda *_: None)

    def asked() -> list[str]:
        file = project / "calls.txt"
        return [line.split()[1] for line in file.read_text().splitlines()] if file.exists() else []

    return asked


def _edit(root: Path) -> None:
    (root / "infra" / "stack.py").write_text("other")


def _add(root: Path) -> None:
    (root / "functions" / "new.py").write_text("")


def _rename(root: Path) -> None:
    (root / "infra" / "stack.py").rename(root / "infra" / "renamed.py")


def _remove(root: Path) -> None:
    (root / "requirements" / "runtime.txt").unlink()


def _touch(root: Path) -> None:
    os.utime(root / "app.py", (0, 0))


def _compile(root: Path) -> None:
    (root / "infra" / "__pycache__").mkdir()
    (root / "infra" / "__pycache__" / "stack.cpython-311.pyc").write_bytes(b"x")


def _document(root: Path) -> None:
    (root / "README.md").write_text("not read by a synthesis")


@pytest.mark.parametrize(
    ("change", "differs"),
    [
        (_edit, True),
        (_add, True),
        (_rename, True),
        (_remove, True),
        (_touch, False),
        (_compile, False),
        (_document, False),
    ],
)
def test_fingerprint_depends_on_contents_and_names(
    project: Path, change: Callable[[Path], None], *, differs: bool
) -> None:
    before = assembly.fingerprint(project, {})

    change(project)

    assert (assembly.fingerprint(project, {}) != before) is differs


def test_fingerprint_depends_on_context_not_its_order(project: Path) -> None:
    one, other = {"a": "1", "b": "2"}, {"b": "2", "a": "1"}

    assert assembly.fingerprint(project, one) == assembly.fingerprint(project, other)
    assert assembly.fingerprint(project, one) != assembly.fingerprint(project, {"a": "12"})


def test_assemblies_are_cached_and_newest_kept(tmp_path: Path) -> None:
    made: list[str] = []

    def make(folder: Path) -> None:
        made.append(folder.name)
        (folder / "manifest.json").write_text("{}")

    for number in range(assembly.KEPT_MAX + 2):
        os.utime(assembly.obtain(f"key{number}", tmp_path, make), (number, number))

    assert assembly.obtain("key5", tmp_path, make) == tmp_path / "key5"
    assert len(made) == assembly.KEPT_MAX + 2
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["key2", "key3", "key4", "key5"]


def test_failed_synthesis_leaves_nothing(
    project: Path, calls: Callable[[], list[str]], tmp_path: Path
) -> None:
    with pytest.raises(LocalStackError, match=r"(?s)cdk synth.*first line.*no such construct"):
        cdk.synthesize(EMULATOR, {"broken": "yes"})

    assert calls() == ["synth"]
    assert list((tmp_path / "store").iterdir()) == []


def test_command_over_time_limit_is_stopped(
    project: Path,
    calls: Callable[[], list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processes, "PROGRESS_S", 0.5)
    monkeypatch.setattr(processes, "RUN_S_MAX", 1.0)

    with pytest.raises(LocalStackError, match="stopped after 1 s"):
        cdk.synthesize(EMULATOR, {"endless": "yes"})

    assert calls() == ["synth"]


# The process needs SIGKILL and then time, because it returns much memory.
STUBBORN = """
import pathlib, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
held = b"x" * 300_000_000
pathlib.Path("ready").write_text(str(pathlib.os.getpgid(0)))
time.sleep(60)
"""


def test_interrupted_command_ends_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "PROGRESS_S", 0.05)
    words = ["/bin/sh", "-c", f"{sys.executable} -c '{STUBBORN}' & wait"]
    said: list[str] = []

    def interrupt(text: str) -> None:
        said.append(text)
        if group.exists() and group.read_text():
            assert len(processes.members(int(group.read_text()))) == 2
            raise KeyboardInterrupt

    group = tmp_path / "ready"
    with pytest.raises(KeyboardInterrupt):
        processes.run(words, tmp_path, EMULATOR, interrupt)

    assert processes.members(int(group.read_text())) == []
    assert all(text.endswith(" s so far") for text in said)


def test_deployment_synthesizes_only_changes(
    project: Path, calls: Callable[[], list[str]], tmp_path: Path
) -> None:
    said: list[str] = []
    first = cdk.deploy(EMULATOR, {"k": "v"}, say=said.append)
    cdk.deploy(EMULATOR, {"k": "v"}, say=said.append)
    _edit(project)
    cdk.deploy(EMULATOR, {"k": "v"}, say=said.append)

    assert first["QueueUrl"] == "here"
    chosen = node.folder()
    assert chosen is not None
    asked = subprocess.run(
        [chosen / "node", "--version"], capture_output=True, text=True, check=True
    )
    assert first["Node"] == asked.stdout.strip()
    assert calls() == ["synth", "deploy", "deploy", "synth", "deploy"]
    assert said[0].startswith("synthesizing the stack: once for this version on this machine")
    assert said[1] == "deploying the stack"


def test_synthesize_for_aws_makes_new_assembly_each_time(
    project: Path, calls: Callable[[], list[str]]
) -> None:
    for number in (1, 2):
        folder = cdk.synthesize({}, {})
        assert assembly.stack_of(folder) == ("Orbweaver", {"Resources": {}})
        assert calls() == ["synth"] * number


class Parameters:
    """Parameter store with versions of bootstrap stacks."""

    def __init__(self, *qualifiers: str) -> None:
        self.names = [f"/cdk-bootstrap/{qualifier}/version" for qualifier in qualifiers]

    def get_parameter(self, *, Name: str) -> dict[str, Any]:  # noqa: N803 - boto's own
        if Name not in self.names:
            raise ClientError({"Error": {"Code": "ParameterNotFound"}}, "GetParameter")
        return {"Parameter": {"Value": "28"}}


@pytest.mark.parametrize("there", [False, True])
def test_qualifier_has_own_bootstrap(
    project: Path,
    calls: Callable[[], list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    there: bool,
) -> None:
    parameters = Parameters("team") if there else Parameters()
    monkeypatch.setattr(cdk, "client", lambda *_: contextlib.nullcontext(parameters))
    monkeypatch.setattr(cdk, "_drop_left_assets", lambda *_: None)

    cdk.deploy(EMULATOR, {"qualifier": "team"})

    asked = (project / "calls.txt").read_text()
    assert calls() == [*([] if there else ["bootstrap"]), "synth", "deploy"]
    assert ("--qualifier team --toolkit-stack-name CDKToolkit-team" in asked) is not there


@dataclass
class Account:
    """A stack whose bucket workers refill once during its removal, with recorded calls."""

    declined: bool = False
    refused: bool = False
    full: bool = True
    stands: bool = True
    done: list[str] = field(default_factory=list)

    def run(self, words: list[str], *_: Any, **__: Any) -> None:
        if "destroy" not in words:
            return
        self.done.append("destroy --force" if "--force" in words else "destroy")
        if self.refused or (self.full and not self.declined):
            raise LocalStackError("DELETE_FAILED")
        self.stands = self.declined

    def resources(self, *_: Any) -> list[Resource]:
        stuck = not self.refused and "destroy" in " ".join(self.done)
        return [Resource(logical="B", kind=BUCKET, name="b", kept=False, stuck=stuck)]

    def empty(self, resources: list[Resource], *_: Any) -> int:
        self.done.append(f"empty {len(resources)}")
        self.full = self.full and self.done.count("empty 1") < 2
        return len(resources)


@pytest.mark.parametrize(
    ("account", "yes", "done", "error"),
    [
        # After the confirmation: emptied, and again because a worker refilled it.
        (Account(), True, ["empty 1", "destroy --force", "empty 1", "destroy --force"], None),
        # Without a confirmation, no data is removed.
        (Account(declined=True), False, ["destroy"], "still stands"),
        (Account(refused=True), False, ["destroy", "empty 0"], "DELETE_FAILED"),
    ],
)
def test_full_bucket_is_emptied_and_removal_repeated(
    project: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    account: Account,
    yes: bool,
    done: list[str],
    error: str | None,
) -> None:
    monkeypatch.setattr(cdk, "synthesize", lambda *_, **__: tmp_path)
    monkeypatch.setattr(assembly, "stack_of", lambda _: ("Mine", {}))
    monkeypatch.setattr(cdk, "_run", account.run)
    monkeypatch.setattr(cdk, "stack_outputs", lambda *_: {} if account.stands else None)
    monkeypatch.setattr(removal, "resources_of", account.resources)
    monkeypatch.setattr(removal, "empty", account.empty)
    monkeypatch.setattr(removal, "drop_logs", lambda *_: None)
    monkeypatch.setattr(removal, "remember", lambda *_: None)
    monkeypatch.setattr(removal, "left_file", lambda *_: tmp_path / "left.json")
    ending = pytest.raises(LocalStackError, match=error) if error else contextlib.nullcontext()
    with ending:
        cdk.destroy({}, {}, yes=yes)
    assert account.done == done


def test_unreachable_endpoint_is_named() -> None:
    with pytest.raises(LocalStackError, match=r"Cannot reach http://127\.0\.0\.1:1"):
        cdk.stack_outputs("Orbweaver", EMULATOR)


@pytest.mark.parametrize("body", [b"<!DOCTYPE html><p>Bad gateway<br>", b"<html></html>"])
def test_client_html_answer_is_reported_in_words(body: bytes) -> None:
    """A proxy can return its page instead of AWS's answer, even with invalid HTML."""

    class Proxy(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(500)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Proxy) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        endpoint = f"http://127.0.0.1:{server.server_port}"
        with pytest.raises(LocalStackError) as raised:
            cdk.stack_outputs("Orbweaver", {**EMULATOR, "AWS_ENDPOINT_URL": endpoint})
        server.shutdown()
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.emulator
def test_missing_stack_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "INSTANCES", tmp_path)
    running = emulator.start(port=0, keep=False)
    try:
        assert cdk.stack_outputs(cdk.TOOLKIT, running.environment()) is None
    finally:
        running.stop()


def test_context_needs_key_and_value(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["local", "up", "--port", "0", "-c", "novalue"]) == 2
    assert "novalue" in capsys.readouterr().err


def test_make_up_and_local_up_are_one_command() -> None:
    """`make up` runs `python -m localstack up`, which is `orbweaver local up`."""
    said = [
        subprocess.run(
            [*words, "up", "--help"],
            capture_output=True,
            text=True,
            check=True,
            cwd=layout.ROOT,
        ).stdout
        for words in (
            [sys.executable, "-m", "localstack"],
            [Path(sys.executable).with_name("orbweaver"), "local"],
        )
    ]
    assert said[0] == said[1]
    assert "usage: orbweaver local up" in said[0]
