"""Files that an installed package makes on first use, and its messages."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, WaiterError

from localstack import extras, installed, layout, prebuilt
from localstack.errors import LocalStackError


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "home"
    shipped = tmp_path / "shipped"
    (shipped / "requirements").mkdir(parents=True)
    for name in ("app.py", "cdk.json", "requirements/runtime.txt", "requirements/emulator.txt"):
        shutil.copyfile(layout.ROOT / name, shipped / name)
    for name, value in {
        "CHECKOUT": False,
        "ROOT": root,
        "LOCAL": root / ".local",
        "EMULATOR_PYTHON": root / ".local" / "emulator" / "bin" / "python",
        "CDK": root / "cdk",
    }.items():
        monkeypatch.setattr(layout, name, value)
    monkeypatch.setattr(installed, "SHIPPED", shipped)
    return root


def test_project_files_are_copied_once_per_version(home: Path) -> None:
    installed.ensure_project()
    assert (home / "functions" / "orbweaver" / "worker" / "batch.py").is_file()
    assert (home / "functions" / "handlers" / "worker.py").is_file()
    assert (home / "infra" / "stack.py").is_file()
    assert (home / "requirements" / "runtime.txt").is_file()
    app = json.loads((home / "cdk.json").read_text())["app"]
    assert shlex.split(app) == [sys.executable, "app.py"]
    (home / "app.py").write_text("kept")
    installed.ensure_project()
    assert (home / "app.py").read_text() == "kept"
    (installed.SHIPPED / "app.py").write_text("new")
    installed.ensure_project()
    assert (home / "app.py").read_text() == "new"


def test_checkout_installs_no_files(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`make setup` installs them instead."""
    monkeypatch.setattr(layout, "CHECKOUT", True)
    installed.ensure_emulator(pytest.fail)
    installed.ensure_cdk(pytest.fail)
    assert not home.exists()


def test_emulator_is_installed_once_with_messages(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[list[str]] = []

    def run(words: list[str], **_: str) -> None:
        ran.append(words)

    def draft_with_python(words: list[str], **more: str) -> None:
        run(words, **more)
        if "venv" in words:
            place = Path(words[-1]) / "bin" / "python"
            place.parent.mkdir(parents=True)
            place.touch()

    monkeypatch.setattr(installed, "_run", draft_with_python)
    said: list[str] = []
    installed.ensure_emulator(said.append)
    assert layout.EMULATOR_PYTHON.is_file()
    assert "once" in said[0]
    assert str(home) in said[0]
    assert said[-1].startswith("… done in ")
    assert "--require-hashes" in ran[-1]
    installed.ensure_emulator(pytest.fail)
    assert len(ran) == 2


def test_failed_install_leaves_no_files(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "_install", lambda *_: installed._run(["false"]))
    with pytest.raises(LocalStackError, match="The next try begins anew"):
        installed.ensure_emulator(lambda _: None)
    assert not layout.EMULATOR_PYTHON.exists()
    assert not list(layout.LOCAL.glob(".*.new"))
    with pytest.raises(LocalStackError, match="Cannot run /nowhere/at/all"):
        installed._run(["/nowhere/at/all"])
    assert home.exists()


def test_missing_pip_and_uv_is_error(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    monkeypatch.setattr(extras, "is_installed", lambda _: False)
    monkeypatch.setattr(installed, "_run", lambda words: ran.append(words[1]))
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    monkeypatch.setattr(shutil, "which", lambda _: "/there/uv")
    installed._install(home / "python", home / "requirements.txt")
    assert ran == ["pip"]
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(LocalStackError, match="Neither pip nor uv"):
        installed._install(home / "python", home / "requirements.txt")


@pytest.mark.usefixtures("home")
def test_missing_cdk_or_node_names_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "has_cdk", lambda: False)
    with pytest.raises(extras.ExtraMissing, match=r"pip install 'orbweaver-crawler\[deploy\]'"):
        installed.ensure_cdk(pytest.fail)
    monkeypatch.setattr(extras, "has_cdk", lambda: True)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr(installed, "ensure_project", lambda: None)
    with pytest.raises(extras.ExtraMissing, match=r"pip install 'orbweaver-crawler\[node\]'"):
        installed.ensure_cdk(pytest.fail)


def test_data_folder_comes_from_environment(tmp_path: Path) -> None:
    assert layout.data_folder({"ORBWEAVER_HOME": str(tmp_path)}) == tmp_path
    assert layout.data_folder({"XDG_DATA_HOME": str(tmp_path)}) == tmp_path / "orbweaver"
    assert layout.data_folder({}).parts[-3:] == (".local", "share", "orbweaver")


class Played:
    """S3 and CloudFormation with the calls of a deployment."""

    def __init__(self, status: str | None, *, refused: str = "", broken: bool = False) -> None:
        self.status, self.refused, self.broken = status, refused, broken
        self.meta = type("Meta", (), {"endpoint_url": "http://127.0.0.1:1"})
        self.did: list[str] = []

    def __call__(self, _service: str) -> Played:
        return self

    def __enter__(self) -> Played:  # noqa: PYI034 - a fake
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def create_bucket(self, **_: Any) -> None:
        pass

    def upload_file(self, file: str, _bucket: str, name: str) -> None:
        self.did.append(f"upload {name}")

    def describe_stacks(self, **_: Any) -> dict[str, Any]:
        if self.status is None:
            raise ClientError({"Error": {"Code": "ValidationError"}}, "DescribeStacks")
        outputs = [{"OutputKey": "Bucket", "OutputValue": "b"}]
        return {"Stacks": [{"StackStatus": self.status, "Outputs": outputs}]}

    def describe_stack_events(self, **_: Any) -> dict[str, Any]:
        failed = {"LogicalResourceId": "Worker", "ResourceStatus": "CREATE_FAILED"}
        return {"StackEvents": [{**failed, "ResourceStatusReason": "no such role"}]}

    def delete_stack(self, **_: Any) -> None:
        self.did.append("delete")

    def create_stack(self, *, TemplateURL: str, **_: Any) -> None:  # noqa: N803
        self._change(f"create {TemplateURL.rpartition('/')[2]}")

    def update_stack(self, **_: Any) -> None:
        self._change("update")

    def _change(self, word: str) -> None:
        if self.refused:
            raise ClientError(
                {"Error": {"Code": "ValidationError", "Message": self.refused}}, "UpdateStack"
            )
        self.did.append(word)
        self.status = "CREATE_COMPLETE"

    def get_waiter(self, name: str) -> Played:
        self.waits = name
        return self

    def wait(self, **_: Any) -> None:
        if self.broken:
            raise WaiterError(self.waits, "it failed", {})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "code.zip").touch()
    (tmp_path / prebuilt.TEMPLATE).touch()
    return tmp_path


@pytest.mark.parametrize(
    ("played", "did"),
    [
        (Played(None), ["create Orbweaver.template.json"]),
        (Played("CREATE_COMPLETE"), ["update"]),
        (Played("CREATE_COMPLETE", refused="No updates are to be performed."), []),
        (Played("ROLLBACK_COMPLETE"), ["delete", "create Orbweaver.template.json"]),
    ],
)
def test_prebuilt_deployment_creates_or_updates_stack(
    folder: Path, played: Played, did: list[str]
) -> None:
    assert prebuilt.deploy(folder, played) == {"Bucket": "b"}
    assert played.did == ["upload code.zip", "upload Orbweaver.template.json", *did]


def test_failed_prebuilt_deployment_reports_reason(folder: Path) -> None:
    with pytest.raises(LocalStackError, match="Worker: no such role"):
        prebuilt.deploy(folder, Played(None, broken=True))
    with pytest.raises(LocalStackError, match="too long"):
        prebuilt.deploy(folder, Played(None, refused="too long"))
