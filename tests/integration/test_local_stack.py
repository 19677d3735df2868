"""Parts of the local stack that start and stop. Deployments are only recorded.

E2e tests deploy the real app.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from localstack import cdk, emulator, layout, processes, stack
from localstack.errors import LocalStackError

pytestmark = pytest.mark.emulator


@pytest.fixture
def deployed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Mapping[str, str]]:
    """Record deployments instead of making them; the context `broken` fails."""
    contexts: list[Mapping[str, str]] = []

    def deploy(
        _environment: Mapping[str, str], context: Mapping[str, str], **_: object
    ) -> dict[str, str]:
        contexts.append(context)
        if "broken" in context:
            raise LocalStackError("no such construct")
        return {"QueueUrl": "here"}

    monkeypatch.setattr(cdk, "deploy", deploy)
    monkeypatch.setattr(layout, "ROOT", tmp_path)
    monkeypatch.setattr(layout, "INSTANCES", tmp_path / "instances")
    return contexts


def test_temporary_stack_leaves_nothing(deployed: list[Mapping[str, str]], tmp_path: Path) -> None:
    with stack.temporary(context={"k": "v"}) as stood:
        assert stood.outputs == {"QueueUrl": "here"}
        assert stood.environment()["AWS_ENDPOINT_URL"] == stood.emulator.endpoint_url
        assert stood.emulator.is_healthy()

    assert deployed == [{"target": "local", "k": "v"}]
    assert not processes.is_running(stood.emulator.process)
    assert not stood.emulator.directory.exists()


@pytest.mark.usefixtures("deployed")
def test_failed_deployment_stops_new_emulator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen: list[int] = []

    def free_port() -> int:
        chosen.append(find_free_port())
        return chosen[-1]

    find_free_port = emulator.free_port
    monkeypatch.setattr(emulator, "free_port", free_port)

    with pytest.raises(LocalStackError, match="no such construct"):
        stack.up(port=0, context={"broken": "yes"})

    assert [(layout.INSTANCES / str(port)).exists() for port in chosen] == [False]


def test_up_reuses_running_emulator_unless_fresh(
    deployed: list[Mapping[str, str]], tmp_path: Path
) -> None:
    first = stack.up(port=0, context={})
    port = first.emulator.port
    try:
        second = stack.up(port=port, context={"k": "v"})
        with pytest.raises(LocalStackError):
            stack.up(port=port, context={"broken": "yes"})
        assert second.emulator.process == first.emulator.process
        assert second.emulator.is_healthy()

        third = stack.up(port=port, fresh=True, context={})
        assert third.emulator.process != first.emulator.process
        assert len(deployed) == 4
    finally:
        assert stack.down(port)
        assert not stack.down(port)
        shutil.rmtree(first.emulator.directory)
