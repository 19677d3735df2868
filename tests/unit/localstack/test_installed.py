"""Files that an installed package makes on first use, and its messages."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from localstack import extras, installed, layout, processes
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

    def run(words: list[str], *_: Any) -> tuple[int, str]:
        ran.append(words)
        layout.EMULATOR_PYTHON.parent.mkdir(parents=True, exist_ok=True)
        layout.EMULATOR_PYTHON.touch()
        return 0, ""

    monkeypatch.setattr(processes, "run", run)
    said: list[str] = []
    installed.ensure_emulator(said.append)
    assert "once" in said[0]
    assert str(home) in said[0]
    assert "--require-hashes" in ran[-1]
    installed.ensure_emulator(pytest.fail)
    assert len(ran) == 2


def test_failed_install_is_repeated(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "_installer", lambda _: ["false"])
    for _ in range(2):
        with pytest.raises(LocalStackError, match="The next try begins anew"):
            installed.ensure_emulator(lambda _: None)
    assert home.exists()
    with pytest.raises(LocalStackError, match="Cannot run /nowhere/at/all"):
        installed._run(["/nowhere/at/all"], pytest.fail)


def test_missing_pip_and_uv_is_error(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "is_installed", lambda _: False)
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    monkeypatch.setattr(shutil, "which", lambda _: "/there/uv")
    assert installed._installer(home / "python")[:2] == ["/there/uv", "pip"]
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(LocalStackError, match="Neither pip nor uv"):
        installed._installer(home / "python")


@pytest.mark.usefixtures("home")
def test_missing_cdk_or_node_names_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "is_installed", lambda _: False)
    with pytest.raises(extras.ExtraMissing, match=r"pip install 'orbweaver-crawler\[deploy\]'"):
        installed.ensure_cdk(pytest.fail)
    monkeypatch.setattr(extras, "is_installed", lambda _: True)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr(installed, "ensure_project", lambda: None)
    with pytest.raises(extras.ExtraMissing, match=r"pip install 'orbweaver-crawler\[node\]'"):
        installed.ensure_cdk(pytest.fail)


def test_data_folder_comes_from_environment(tmp_path: Path) -> None:
    assert layout.data_folder({"ORBWEAVER_HOME": str(tmp_path)}) == tmp_path
    assert layout.data_folder({"XDG_DATA_HOME": str(tmp_path)}) == tmp_path / "orbweaver"
    assert layout.data_folder({}).parts[-3:] == (".local", "share", "orbweaver")
