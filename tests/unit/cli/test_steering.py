"""The commands `pause`, `resume`, `cancel`, `local`, `deploy` and `destroy`."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from orbweaver.model.crawl import State
from tests.unit.cli.fakes import LOCAL, OUTPUTS, SITE, Machine, Stage, Terminal


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(folder=tmp_path, machine=Machine(up_already=True))
    stage.run(f"crawl {SITE}")
    return stage


def test_pause_resume_and_cancel_print_state_and_next_step(stage: Stage) -> None:
    stage.run(f"start {SITE} --name other")
    assert stage.output("pause other") == "other-20261121-090002 is paused\n"
    assert "`orbweaver resume other-20261121-090002` continues it" in stage.noted
    assert stage.run_json("resume other --json")[0]["state"] == "running"
    assert stage.run("cancel other") == 0
    assert stage.world.crawls["other-20261121-090002"].state is State.STOPPING
    assert "is stopping: it ends within about a minute" in stage.errors("resume other")


def test_local_up_down_and_status_show_parts_and_address(stage: Stage) -> None:
    stage.machine.asked.clear()
    assert stage.output("local up --fresh").splitlines()[-1] == (
        "export AWS_ENDPOINT_URL=http://127.0.0.1:4566 AWS_REGION=us-east-1"
        " AWS_DEFAULT_REGION=us-east-1 AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test"
    )
    assert "orbweaver start URL --wait\n" in stage.noted
    assert "Bucket = the-Bucket" in stage.output("local up --port 4601 -c contact=me")
    assert "orbweaver start URL --wait --port 4601\n" in stage.noted
    assert stage.run("local down") == 0
    assert stage.output("local status") == "http://127.0.0.1:4566  healthy\n"
    stage.machine.up_already = False
    assert stage.output("local status") == "no emulator runs\n"
    assert stage.errors("local down --all", code=0) == "no emulator runs\n"
    assert stage.errors("local down --port 99", code=0) == "no emulator runs on port 99\n"
    assert stage.machine.asked == [
        "up 4566 fresh",
        "up 4601 kept contact=me",
        "down 4566",
        "down all",
        "down 99",
    ]


def test_killed_emulator_is_reported(stage: Stage) -> None:
    stage.machine.killed = ["the emulator on port 4566 was killed"]
    assert stage.errors("local status", code=0) == "the emulator on port 4566 was killed\n"
    assert "was killed" not in stage.errors("status", code=0)
    stage.machine.up_already, stage.machine.deployed = False, None
    stage.notes("status", "there is no stack", "was killed", code=3)


def test_deploy_and_destroy_use_named_target_and_settings(stage: Stage) -> None:
    stage.machine.asked.clear()
    assert "Bucket = the-Bucket" in stage.output("deploy -c contact=me --stack Mine --yes")
    assert stage.errors("destroy --target aws", code=0).splitlines() == [
        "removing the stack 'Orbweaver' in the AWS account of these credentials, region us-west-2",
        "there is no stack 'Orbweaver' at AWS any more",
    ]
    assert stage.machine.asked == [
        f"deploy {LOCAL} {{'contact': 'me', 'stack_name': 'Mine'}} False True",
        "destroy {'AWS_REGION': 'us-west-2', 'AWS_DEFAULT_REGION': 'us-west-2'} {} False",
    ]


def test_deploy_prints_target_before_it_acts(stage: Stage) -> None:
    stage.machine.broken = True
    assert stage.errors("deploy", code=0).splitlines()[0] == (
        "deploying the stack 'Orbweaver' on this machine, at http://127.0.0.1:4566;"
        " --target aws selects the AWS account"
    )


@pytest.mark.parametrize(
    ("line", "stdin", "code", "removed"),
    [
        ("destroy", "", 2, False),
        ("destroy", "n\n", 1, False),
        ("destroy", "y\n", 0, True),
        ("destroy --yes", "", 0, True),
    ],
)
def test_destroy_of_local_stack_needs_yes(
    stage: Stage, line: str, stdin: str, code: int, removed: bool
) -> None:
    stage.machine.asked.clear()
    stage.stdin = Terminal(stdin) if stdin else io.StringIO()
    assert stage.run(line) == code
    assert [one.split()[0] for one in stage.machine.asked] == ["destroy"] * removed
    assert ("give --yes" in stage.noted) == (code == 2)


@pytest.mark.parametrize("line", ["deploy", "local up"])
def test_file_of_context_is_relative_to_current_folder(stage: Stage, line: str) -> None:
    stage.machine.asked.clear()
    assert stage.run(f"{line} -c extractor=shop/extract.py") == 0
    assert str(stage.folder / "shop/extract.py") in stage.machine.asked[0]


def test_second_stack_needs_new_option(stage: Stage) -> None:
    """A mistyped name must create no stack. The first deployment needs no option."""
    stage.machine.names = ["Mine", "Orbweaver"]
    for line in ("deploy --stack Mien", "deploy -c stack_name=Mien"):
        stage.machine.asked.clear()
        assert stage.run(line) == 2
        assert (
            "there is no stack 'Mien' yet, but there is Mine, Orbweaver: select it" in stage.noted
        )
        assert stage.machine.asked == []
        assert stage.run(f"{line} --new") == 0
        assert "'stack_name': 'Mien'" in stage.machine.asked[0]
    assert stage.run("deploy --stack Mine -c stack_name=Mine --reset-context") == 0
    assert stage.machine.asked[-1].endswith("{'stack_name': 'Mine'} True False")
    stage.machine.names = []
    assert stage.run("deploy --stack First") == 0
    assert "name two stacks" in stage.errors("deploy --stack First -c stack_name=Other")


def test_stack_option_selects_another_stack(stage: Stage) -> None:
    stage.environment["AWS_ENDPOINT_URL"] = "http://127.0.0.1:1"
    stage.machine.deployed = {**OUTPUTS, "CrawlsTable": "other"}
    stage.machine.asked.clear()
    assert stage.run("status --stack Mine") == 0
    assert stage.machine.asked == ["outputs Mine http://127.0.0.1:1"]
    assert stage.connected[-1][0].names.crawls_table == "other"


def test_crawl_of_newer_version_names_fix(stage: Stage) -> None:
    (crawl,) = stage.world.crawls
    stage.world.newer[crawl] = "stored by a newer version: the crawl of version 2"
    assert stage.run(f"status {crawl}") == 3
    assert "the crawl of version 2; deploy that version or newer" in stage.noted
    assert "cannot reach" not in stage.noted
    stage.run(f"start {SITE} --name later")
    assert "1 more, stored by a newer version" in stage.errors("status", code=0)
