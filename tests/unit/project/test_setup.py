"""Setup of a checkout."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from infra import node
from localstack import layout
from localstack.errors import LocalStackError

ROOT = Path(__file__).parents[3]


def bootstrap() -> ModuleType:
    """Import the tool, which is outside the packages."""
    spec = importlib.util.spec_from_file_location("bootstrap", ROOT / "tools" / "bootstrap.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_npm_packages_run_no_scripts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A manual `npm install` runs none either."""
    tool, commands = bootstrap(), []

    def run(words: Any, **_: Any) -> str:
        commands.append([str(word) for word in words])
        return str(tmp_path)

    monkeypatch.setattr(tool, "run", run)
    monkeypatch.setattr(tool, "NODE_MODULES", tmp_path)
    monkeypatch.setattr(node, "npm", lambda folder: [f"{folder}/npm"])
    tool.ensure_node()
    npm = [words for words in commands if "ci" in words]
    assert len(npm) == 1
    assert npm[0][0] == f"{tmp_path}/npm"
    assert "--ignore-scripts" in npm[0]
    settings = (ROOT / ".npmrc").read_text().split()
    assert "ignore-scripts=true" in settings
    assert "ignore-scripts=false" not in settings


def test_setup_prints_next_step_only_if_called_directly() -> None:
    said = {
        goal: subprocess.run(
            ["make", "-n", goal],  # noqa: S607 - by the path
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for goal in ("setup", "demo")
    }
    assert "next: . .venv/bin/activate, then orbweaver crawl URL" in said["setup"]
    assert "next:" not in said["demo"]


# --- Node ---------------------------------------------------------------------------------------


def machine(folder: Path, monkeypatch: pytest.MonkeyPatch, says: str, *programs: str) -> None:
    """Put only these programs on the path; `node` runs a line of shell code."""
    folder.mkdir()
    for name in programs:
        program = folder / name
        program.write_text(f"#!/bin/sh\n{says}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


@pytest.mark.parametrize(
    ("says", "programs", "will_do"),
    [
        ("echo v20.0.0", ("node", "npm"), True),
        ("echo v24.19.0", ("node", "npm"), True),
        ("echo v100.1.2", ("node", "npm"), True),
        ("echo v19.9.0", ("node", "npm"), False),
        ("echo v20.0.0", ("node",), False),
        ("echo v20.0.0", ("npm",), False),
        ("exit 1", ("node", "npm"), False),
        ("echo 20", ("node", "npm"), False),
    ],
)
def test_node_of_machine_is_used_if_recent_with_npm(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    says: str,
    programs: tuple[str, ...],
    *,
    will_do: bool,
) -> None:
    folder = tmp_path / "bin"
    machine(folder, monkeypatch, says, *programs)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert node.folder() == (folder if will_do else None)
    if will_do:
        assert node.npm(folder) == [str(folder / "npm")]
    monkeypatch.setattr(node, "wheel_node", lambda: tmp_path)
    assert node.folder() == tmp_path


@pytest.mark.parametrize("found", ["v18.0.0", "v20.0.0"])
def test_old_node_is_reported_and_supported_one_not_warned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: str
) -> None:
    folder = tmp_path / "bin"
    machine(folder, monkeypatch, f"echo {found}", "node", "npm")
    monkeypatch.setattr(node, "wheel_node", lambda: None)
    if found == "v18.0.0":
        with pytest.raises(LocalStackError, match="CDK needs Node 20 or newer, with npm"):
            layout.tool_environment({})
        return
    environment = layout.tool_environment({})
    assert environment["JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION"] == "20"
    assert environment["JSII_NODE"] == str(folder / "node")


def test_npm_of_wheel_comes_first(tmp_path: Path) -> None:
    own = tmp_path / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    own.parent.mkdir(parents=True)
    own.touch()
    assert node.npm(tmp_path / "bin") == [str(tmp_path / "bin" / "node"), str(own)]


@pytest.mark.parametrize("version", ["v20.0.0", "v18.0.0"])
def test_node_wheel_is_installed_only_if_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    """The wheel has 200 MB."""
    tool, installed = bootstrap(), []
    monkeypatch.setattr(tool, "VENV", tmp_path / "venv")
    monkeypatch.setattr(tool, "run", lambda *_, **__: "")
    monkeypatch.setattr(tool, "make_venv", lambda _, folder: folder.mkdir())
    monkeypatch.setattr(tool, "install", lambda _, file: installed.append(file.read_text()))
    machine(tmp_path / "bin", monkeypatch, f"echo {version}", "node", "npm")
    for _ in range(2):
        tool.ensure_venv()
    (locked,) = installed
    whole = (ROOT / "requirements" / "dev.txt").read_text()
    wheel = tool.pinned(ROOT / "requirements" / "dev.txt", tool.NODE_WHEEL)
    assert locked == (whole.replace(wheel, "") if version == "v20.0.0" else whole)
    assert (tool.NODE_WHEEL in locked) is (version == "v18.0.0")
    monkeypatch.setenv("PATH", str(tmp_path))
    for _ in range(2):
        tool.ensure_venv()
    assert installed[1:] == ([whole] if version == "v20.0.0" else [])


def test_setup_without_node_reports_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = bootstrap()
    monkeypatch.setattr(tool, "NODE_MODULES", tmp_path)
    monkeypatch.setattr(tool, "run", lambda *_, **__: "")
    monkeypatch.setattr(node, "machine_node", lambda: None)
    with pytest.raises(tool.SetupError, match="Node 20 or newer"):
        tool.ensure_node()
