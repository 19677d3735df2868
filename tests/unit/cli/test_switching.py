"""`workers off | on | status`: the switch of all event sources of the worker."""

from __future__ import annotations

from pathlib import Path

import pytest

from localstack.deployed import Source
from orbweaver.cli.commands.workers import STEPS_MAX
from orbweaver.cli.stack import RENDERER
from tests.unit.cli.fakes import OUTPUTS, RENDERER_FUNCTION, Machine, Stage

QUEUES = ("crawl", "express", "seeds")


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    sources = [Source(id=name, queue=name, state="Enabled") for name in QUEUES]
    return Stage(folder=tmp_path, machine=Machine(up_already=True, switches=sources))


def states(stage: Stage) -> list[str]:
    return [source.state for source in stage.machine.switches]


def test_all_sources_are_switched_off_and_on(stage: Stage) -> None:
    assert stage.run("workers off") == 0
    assert states(stage) == ["Disabled"] * 3
    assert stage.said.split() == ["crawl", "disabled", "express", "disabled", "seeds", "disabled"]
    assert "On again: `orbweaver workers on`" in stage.noted
    assert stage.run("workers status --json") == 0
    assert stage.objects() == [{"type": "workers", "sources": dict.fromkeys(QUEUES, "Disabled")}]
    assert stage.run("workers on") == 0
    assert states(stage) == ["Enabled"] * 3
    assert "Off again: `orbweaver workers off`" in stage.noted


def test_renderer_is_switched_with_workers(stage: Stage) -> None:
    stage.machine.switches.append(Source(id="render", queue="render", state="Enabled"))
    assert stage.run("workers off") == 0
    assert states(stage) == ["Disabled"] * 3 + ["Enabled"], "a stack that has none"
    stage.machine.deployed = {**OUTPUTS, RENDERER: RENDERER_FUNCTION}
    assert stage.run("workers off") == 0
    assert states(stage) == ["Disabled"] * 4
    assert "render" in stage.said.split()
    off = "All workers are off. Switch them on with `orbweaver workers on`."
    assert off in stage.errors("start https://example.com/ --name x", code=0)
    assert stage.run("workers on") == 0
    assert states(stage) == ["Enabled"] * 4


def test_repeated_switch_and_status_change_nothing(stage: Stage) -> None:
    stage.machine.asked.clear()
    assert stage.run("workers on") == 0
    assert stage.run("workers status") == 0
    assert not [word for word in stage.machine.asked if word.startswith("switch")]


def test_store_has_no_worker_switch(tmp_path: Path) -> None:
    stage = Stage(folder=tmp_path)
    stage.make_store()
    for action in ("status", "off", "on"):
        assert "a store has no switch" in stage.errors(f"workers {action}")
        assert not stage.machine.asked


def test_source_being_updated_is_retried(stage: Stage) -> None:
    stage.machine.switches[1] = Source(id="express", queue="express", state="Updating")
    assert stage.run("workers off") == 0
    assert states(stage) == ["Disabled"] * 3


def test_busy_source_is_named_after_time_limit(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def refuse(*_: object, on: bool) -> bool:
        asked.append(on)
        return False

    monkeypatch.setattr(stage.machine, "switch", refuse)
    assert stage.run("workers off") == 1
    assert "not disabled yet: crawl, express, seeds; repeat `orbweaver workers off`" in stage.noted
    assert asked == [False] * 3 * STEPS_MAX


def test_stack_without_sources_names_command(stage: Stage) -> None:
    stage.machine.switches = []
    assert "has no event source: run `orbweaver deploy`" in stage.errors("workers off", code=3)
    stage.machine.deployed = {"Bucket": "b"}
    assert stage.run("workers status") == 3
    stage.machine.deployed = None
    assert "there is no stack" in stage.errors("workers off", code=3)


def test_waiting_commands_warn_if_workers_are_off(stage: Stage) -> None:
    off = "All workers are off. Switch them on with `orbweaver workers on`."
    assert off not in stage.errors("start https://example.com/ --name x", code=0)
    assert stage.run("workers off") == 0
    for words in ("start https://example.com/ --name y", "status y", "resume y"):
        assert off in stage.errors(words, code=0)
    assert off not in stage.errors("pause y", code=0)
    assert off not in stage.errors("status y", code=0), "it waits for a person"
