"""Workflows and the action: jobs call only make, with targets that exist; actions are pinned."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from orbweaver.cli.arguments import parse

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


def test_action_pins_its_steps_and_calls_check_links_with_all_inputs() -> None:
    action = load(ROOT / "action.yml")
    steps = action["runs"]["steps"]
    assert action["runs"]["using"] == "composite"
    for step in steps:
        assert ("uses" in step) != ("run" in step)
        if "uses" in step:
            assert re.fullmatch(r"actions/[a-z/-]+@[0-9a-f]{40}", step["uses"]), step["uses"]
        else:
            # An expression in a script would let an input run commands.
            assert step["shell"] == "bash"
            assert "${{" not in step["run"]
    used = set(re.findall(r"inputs\.([a-z]+)", str(steps)))
    assert used == set(action["inputs"]) == {"path", "args", "version", "sarif"}
    [command] = [step["run"] for step in steps if "check-links" in step.get("run", "")]
    assert '"$TOOL" check-links --store "$STORE" "${words[@]}" -- "$CHECKED"' in command
    parse(["check-links", "--store", "a", "--format", "sarif", "--out", "b", "--", "c"])


def test_words_of_action_arguments_are_split_and_not_executed(tmp_path: Path) -> None:
    """The script of the action, with a program that prints its arguments instead of orbweaver."""
    tool = tmp_path / "tool"
    tool.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    tool.chmod(0o755)
    [script] = [
        step["run"]
        for step in load(ROOT / "action.yml")["runs"]["steps"]
        if "check-links" in step.get("run", "")
    ]
    given = {
        "TOOL": str(tool),
        "STORE": "/store",
        "CHECKED": "my docs; touch x",
        "ARGS": "--exclude '^https://a b' --delay 2s $(touch y) `touch z`",
        "SARIF": "out.sarif",
        "PATH": os.environ["PATH"],
    }
    done = subprocess.run(
        ["/bin/bash", "-e", "-c", script],
        env=given,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [
        *("check-links", "--store", "/store", "--exclude", "^https://a b", "--delay", "2s"),
        *("$(touch", "y)", "`touch", "z`", "--format", "sarif", "--out", "out.sarif"),
        *("--", "my docs; touch x"),
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tool"]


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
