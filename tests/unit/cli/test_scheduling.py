"""`schedule put`, `list` and `remove`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orbweaver.control.schedule import Scheduled
from orbweaver.model.errors import Transient
from tests.unit.cli.fakes import OUTPUTS, SITE, Stage

CRON = f"""
seeds = ["{SITE}"]
[identity]
headers = {{ Authorization = "Bearer k" }}
[schedule]
cron = "0 3 * * ? *"
timezone = "Europe/Berlin"
"""
RATE = f'name = "often"\nseeds = ["{SITE}"]\n[schedule]\nevery = "6h"\n'
SAID_CRON = """\
name  example.com
when  cron 0 3 * * ? *
next  2026-11-22 03:00 Europe/Berlin
      2026-11-23 03:00 Europe/Berlin
      2026-11-24 03:00 Europe/Berlin
"""
WARNING = (
    "a run skips pages requested within the window of 7 days, and runs start every 1 day: give"
    ' dedup.window = "0s" to request all pages in each run'
)
LISTED = """\
NAME         WHEN              TIME ZONE      NEXT
example.com  cron 0 3 * * ? *  Europe/Berlin  2026-11-22 03:00 Europe/Berlin
odd          at(2030-01-01)    UTC            -
often        every 6h          UTC            2026-11-21 15:00 UTC
"""


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    made = Stage(folder=tmp_path)
    made.machine.up_already = True
    return made


def put(stage: Stage, text: str) -> int:
    (stage.folder / "crawl.toml").write_text(text)
    return stage.run("schedule put --config crawl.toml")


def test_schedule_is_put_listed_and_removed(stage: Stage) -> None:
    assert put(stage, CRON) == 0
    assert stage.said == SAID_CRON
    assert "`orbweaver schedule remove example.com` removes it" in stage.noted
    assert f"warning: {WARNING}" in stage.noted
    assert "orbweaver serve" not in stage.noted
    assert put(stage, RATE) == 0
    odd = Scheduled(name="odd", expression="at(2030-01-01)", timezone=None, first_ms=None, input="")
    stage.world.schedules["odd"] = odd
    assert stage.output("schedule list") == LISTED
    assert stage.output("schedule remove example.com") == "schedule example.com removed\n"
    assert set(stage.world.schedules) == {"odd", "often"}
    assert stage.world.crawls == {}


def test_schedule_of_store_names_serve_command(stage: Stage) -> None:
    stage.make_store()
    assert put(stage, RATE) == 0
    assert "it fires only while `orbweaver serve` runs" in stage.noted
    assert not stage.world.schedules


def test_schedule_is_paused_and_resumed(stage: Stage) -> None:
    assert put(stage, RATE) == 0
    assert stage.output("schedule pause often") == "often is paused\n"
    assert "`orbweaver schedule resume often`" in stage.noted
    assert stage.run("schedule list") == 0
    assert stage.said.splitlines()[1].split() == ["often", "every", "6h", "UTC", "paused"]
    [told] = stage.run_json("schedule resume often --json")
    assert (told["paused"], len(told["next"])) == (False, 3)
    assert "there is no schedule 'nobody'" in stage.errors("schedule resume nobody")


def test_schedule_as_json_is_in_utc_without_header_values(stage: Stage) -> None:
    (stage.folder / "crawl.toml").write_text(CRON)
    (told,) = stage.run_json("schedule put --config crawl.toml --json")
    assert told == {
        "type": "schedule",
        "name": "example.com",
        "when": "cron 0 3 * * ? *",
        "expression": "cron(0 3 * * ? *)",
        "timezone": "Europe/Berlin",
        "paused": False,
        "warning": WARNING,
        "next": [f"2026-11-2{day}T02:00:00+00:00" for day in (2, 3, 4)],
    }
    assert stage.run_json("schedule list --json") == [told]
    assert stage.run("schedule remove example.com --json") == 0
    assert stage.objects() == [{"type": "removed", "name": "example.com"}]
    assert stage.output("schedule list --json") == ""


def test_seeds_of_file_are_stored_in_schedule(stage: Stage) -> None:
    (stage.folder / "seeds.txt").write_text(f"{SITE}/1\n{SITE}/2\n")
    assert put(stage, 'seeds_file = "seeds.txt"\n[schedule]\nevery = "1d"\n') == 0
    definition = json.loads(stage.world.schedules["example.com"].input)["definition"]
    assert (definition["seeds"], definition["name"]) == ([f"{SITE}/1", f"{SITE}/2"], "example.com")
    assert "seeds_file" not in definition


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f'seeds = ["{SITE}"]', "does not say when: give every or cron in its table [schedule]"),
        (f'seeds = ["{SITE}"]\n[schedule]\nevery = "1m"', "schedule.every: '1m' does not fit"),
        (RATE + '[notify]\nwebhook = "https://a.example/"', "-c webhook_secret=generate"),
    ],
)
def test_non_recurring_plan_exits_with_2(stage: Stage, text: str, said: str) -> None:
    assert put(stage, text) == 2
    assert said in stage.noted
    assert stage.world.schedules == {}


def test_stack_outputs_show_webhook_key(stage: Stage) -> None:
    stage.machine.deployed = {**OUTPUTS, "WebhookSecret": "arn:of:it"}
    assert put(stage, RATE + '[notify]\nwebhook = "https://a.example/secret"') == 0
    assert "secret" not in stage.said + stage.noted


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("schedule remove nobody", 2, "there is no schedule 'nobody'"),
        ("schedule put", 2, "missing argument: --config"),
        ("schedule put --config no.toml", 2, "there is no no.toml"),
        ("schedule", 2, "missing argument: put|list|pause|resume|remove"),
        ("schedule putt", 2, "did you mean `orbweaver schedule put`?"),
        ("schedule list", 0, "there are no schedules: `orbweaver schedule put --config FILE`"),
    ],
)
def test_errors_name_fix(stage: Stage, line: str, code: int, said: str) -> None:
    assert said in stage.errors(line, code=code)


def test_unreachable_stack_is_reported(stage: Stage) -> None:
    def fault(effect: str) -> None:
        if effect.startswith("schedules."):
            raise Transient("throttled")

    stage.fault = fault
    assert "cannot reach the stack: throttled" in stage.errors("schedule list", code=3)


def test_start_of_recurring_definition_runs_once_with_hint(stage: Stage) -> None:
    (stage.folder / "crawl.toml").write_text(RATE)
    assert stage.run("start --config crawl.toml") == 0
    assert "to repeat it on a schedule: orbweaver schedule put --config crawl.toml" in stage.noted
    assert len(stage.world.crawls) == 1
    assert stage.world.schedules == {}


def test_check_shows_times_and_host_of_webhook(stage: Stage) -> None:
    (stage.folder / "crawl.toml").write_text(
        CRON + '[notify]\nwebhook = "https://a.example/secret?t=1"\n'
    )
    assert stage.run("check crawl.toml") == 0
    for words in (
        "recurs    cron 0 3 * * ? *, after `orbweaver schedule put`",
        "in the time zone Europe/Berlin",
        "not while an earlier run of its name has not ended",
        "notifies  https://a.example when it has ended",
    ):
        assert words in stage.said
    assert "secret" not in stage.said
    assert "secret" not in stage.output("check crawl.toml --json")
