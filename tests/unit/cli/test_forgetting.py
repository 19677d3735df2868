"""`orbweaver forget`: questions, output and exit codes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from orbweaver.cli.commands import forget
from orbweaver.control.schedule import Scheduled
from orbweaver.frontier import warc
from orbweaver.frontier.body_file import Kept, Segment
from orbweaver.model.crawl import State
from tests.unit.cli.fakes import NOW_MS, Stage, Terminal
from tests.unit.forgetting import ELSEWHERE, ENDED, OTHER, PATH, URL, everything, fill, traces_of


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    made = Stage()
    fill(made.world, tmp_path)
    return made


def test_forget_reports_counts_and_copies_out_of_reach(stage: Stage) -> None:
    assert stage.run(f"forget --url {URL} --yes") == 0
    assert traces_of(stage.world, PATH) == []
    lines = stage.said.splitlines()
    assert lines[0] == "erased:"
    assert [line.split("  ", 1)[0].strip() for line in lines[1:]]
    assert any("page records" in line for line in lines)
    assert sum("exported files, changed or removed" in line for line in lines) == 1
    for word in ("not erased by this command", "backups", "logs", "copies", "exclude"):
        assert word in stage.noted
    assert stage.output(f"forget --url {URL} --yes").startswith("nothing erased")


@pytest.mark.parametrize("what", [f"--url {URL}", "--host example.com", f"--crawl {ENDED.id}"])
def test_dry_run_counts_and_changes_nothing(stage: Stage, what: str) -> None:
    before = everything(stage.world)
    (told,) = stage.run_json(f"forget {what} --dry-run --json")
    assert told["dry_run"] is True
    assert told["forgotten"]["claims"]
    assert told["forgotten"]["export_files"]
    assert told["forgotten"]["segments"]
    stage.world.looks.clear()
    assert everything(stage.world) == before


def test_json_has_erased_remaining_and_external_data(stage: Stage) -> None:
    (told,) = stage.run_json("forget --host example.com --yes --json")
    assert (told["type"], told["left"], told["forgotten"]["records"]) == ("result", [], 2)
    assert told["elsewhere"] == forget.ELSEWHERE


def test_receivers_are_notified_of_changed_exports(stage: Stage) -> None:
    assert stage.run(f"forget --url {URL} --dry-run") == 0
    assert stage.world.exported == []
    assert stage.run(f"forget --url {URL} --yes") == 0
    assert [manifest.crawl for manifest, _ in stage.world.exported] == [None, ENDED.id]
    assert all(key in stage.world.files for _, key in stage.world.exported)


def test_forget_needs_yes_or_an_answer(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    before = everything(stage.world)
    assert "--yes" in stage.errors(f"forget --url {URL}")
    for answer in ("n\n", "\n"):
        monkeypatch.setattr("sys.stdin", Terminal(answer))
        assert "nothing was erased" in stage.errors(f"forget --url {URL}", code=1)
        assert "2  records of other pages, changed" in stage.noted
    stage.world.looks.clear()
    assert everything(stage.world) == before
    monkeypatch.setattr("sys.stdin", Terminal("yes\n"))
    assert stage.run(f"forget --url {URL}") == 0
    assert traces_of(stage.world, PATH) == []


def test_forget_works_while_a_crawl_uses_the_data(stage: Stage) -> None:
    stage.world.crawls[ENDED.id] = replace(ENDED, state=State.RUNNING, finished_at_ms=None)
    assert "waiting 35 s" in stage.errors(f"forget --url {URL} --yes", code=1)
    assert f"left: dead letters of {ENDED.id}" in stage.noted
    assert {place.split()[0] for place in traces_of(stage.world, PATH)} == {"buried"}
    assert stage.run(f"forget --crawl {ENDED.id} --yes") == 2
    assert f"{ENDED.id} is running: `orbweaver cancel` it" in stage.noted


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("forget --url mailto:a@example.org --yes", "http"),
        ("forget", "one of the arguments"),
        (f"forget --url {URL} --host example.org", "not allowed"),
    ],
)
def test_forget_needs_exactly_one_url_host_or_crawl(stage: Stage, line: str, said: str) -> None:
    assert said in stage.errors(line)


def test_mentions_in_other_bodies_are_counted(stage: Stage) -> None:
    segment = Segment(ENDED.id, NOW_MS, Random(5))
    body = f'<a href="{PATH}">Jane</a>'.encode()
    response = warc.response(OTHER, NOW_MS, status=200, headers={}, body=body, truncated=False)
    segment.add(Kept(url=OTHER, response=response))
    stage.world.files[segment.key] = segment.whole()
    assert "mention it (1 record) and are kept" in stage.errors(f"forget --url {URL} --yes", code=0)
    assert "--mentions" in stage.noted
    assert traces_of(stage.world, PATH) == [f"file {segment.key}"]
    assert "--mentions" not in stage.errors(f"forget --url {URL} --yes --mentions", code=0)
    assert traces_of(stage.world, PATH) == []


@pytest.mark.parametrize(
    ("what", "named"),
    [(f"--url {URL}", ["first"]), ("--host example.com", ["first"]), (f"--crawl {ENDED.id}", [])],
)
def test_schedules_with_erased_seed_are_named(stage: Stage, what: str, named: list[str]) -> None:
    for name, told in (("first", URL), ("second", ELSEWHERE)):
        stage.world.schedules[name] = Scheduled(
            name=name,
            expression="rate(1 day)",
            timezone=None,
            first_ms=None,
            input=f'{{"seeds": ["{told}"]}}',
        )
    assert stage.run(f"forget {what} --yes") == 0
    said = [line for line in stage.noted.splitlines() if "starts it again" in line]
    assert [line.split()[2] for line in said] == named
    assert ("exclude" in stage.noted) is (what.split(maxsplit=1)[0] != "--crawl")


def test_unreadable_file_is_named_and_sets_exit_code(stage: Stage) -> None:
    stage.world.files["bodies/x/dt=2026-11-21/bad.warc.gz"] = b"no archive"
    assert stage.run("forget --host other.example --yes") == 1
    assert "left: bodies/x/dt=2026-11-21/bad.warc.gz cannot be read" in stage.noted
