"""Workflows: each job calls only make, with targets that exist, and actions are pinned."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.y*ml"))
TARGETS = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
# Actions that fetch the code, install the interpreter, or keep a result.
ACTIONS = {"actions/checkout", "actions/setup-python", "actions/upload-artifact"}
VERSIONS = {"3.11", "3.13", "3.14"}


def load(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text())
    return found


JOBS = [
    pytest.param(job, id=f"{path.stem}: {name}")
    for path in WORKFLOWS
    for name, job in load(path)["jobs"].items()
]


@pytest.mark.parametrize("job", JOBS)
def test_job_calls_only_make_with_existing_targets(job: dict[str, Any]) -> None:
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert commands
    for command in commands:
        found = re.fullmatch(r"make ([a-z][a-z-]*)", command)
        assert found is not None, command
        assert found[1] in TARGETS


@pytest.mark.parametrize("job", JOBS)
def test_actions_are_pinned_by_commit(job: dict[str, Any]) -> None:
    used = [step["uses"] for step in job["steps"] if "uses" in step]
    assert used
    for action in used:
        name, _, commit = action.partition("@")
        assert name in ACTIONS
        assert re.fullmatch(r"[0-9a-f]{40}", commit), action


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflow_may_only_read_the_repository(path: Path) -> None:
    assert load(path)["permissions"] == {"contents": "read"}


def test_check_runs_on_every_supported_version() -> None:
    matrix = load(ROOT / ".github/workflows/checks.yml")["jobs"]["check"]["strategy"]["matrix"]
    assert set(matrix["python"]) == VERSIONS


def test_hooks_call_programs_of_the_checkout() -> None:
    """A hook needs no network, because `make setup` has installed its program."""
    (local,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert local["repo"] == "local"
    for hook in local["hooks"]:
        assert hook["language"] == "system"
        assert hook["entry"].startswith(".venv/bin/"), hook["id"]
