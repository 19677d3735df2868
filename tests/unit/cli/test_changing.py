"""The commands `edit` and `retry`."""

from __future__ import annotations

from pathlib import Path

import pytest

from orbweaver.model.crawl import State
from orbweaver.model.outcome import Outcome, Reason
from tests.unit.cli.fakes import SITE, Machine, Row, Stage

ID = "shop-20261121-090000"


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(folder=tmp_path, machine=Machine(up_already=True))
    stage.run(f"start {SITE} --name shop --max-pages 9")
    return stage


# --- edit ---------------------------------------------------------------------------------------


def test_edit_by_options_shows_old_and_new_values(stage: Stage) -> None:
    words = "--max-pages 5 --delay 2s --concurrency 3 --max-depth 4 --duration 2h --include /p"
    assert stage.run(f"edit shop {words}") == 0
    crawl = stage.world.crawls[ID]
    assert (crawl.pages_max, crawl.delay_ms, crawl.concurrency) == (5, 2_000, 3)
    assert (crawl.depth_max, crawl.duration_max_s, crawl.include) == (4, 7_200, ("/p",))
    assert "limits.pages            9 -> 5\n" in stage.said
    assert 'scope.include           [] -> ["/p"]\n' in stage.said
    assert f"{ID}: it takes effect within 5 s" in stage.noted
    assert stage.run("edit shop --max-pages 5") == 0
    assert (stage.said, stage.noted) == ("", f"{ID} has these values already\n")


def test_edit_by_definition_accepts_seeds_and_options(stage: Stage) -> None:
    (stage.folder / "seeds.txt").write_text(f"# all\n{SITE}\n")
    lines = ['name = "shop"', 'seeds_file = "seeds.txt"', "[politeness]", 'delay = "5s"']
    (stage.folder / "shop.toml").write_text("\n".join([*lines, "[limits]", 'pages = "broken"']))
    (told,) = stage.run_json("edit shop --config shop.toml --max-pages 7 --json")
    assert told["changed"] == {
        "limits.pages": {"was": 9, "is": 7},
        "politeness.delay": {"was": "1000ms", "is": "5000ms"},
    }
    assert stage.world.crawls[ID].delay_ms == 5_000


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("edit shop", "nothing to change is given: it takes scope.include"),
        ("edit shop --max-pages 0", "orbweaver edit: 1 problem\n  --max-pages: 0 does not fit"),
        ("edit shop --exclude (", "--exclude: '('"),
        ("edit shop --name other", "unknown option --name"),
        ("edit shop --max-page 3", "did you mean --max-pages?"),
        ("edit shop --config none.toml", "there is no none.toml"),
        ("edit shop --config shop.toml", "2 problems\n  window: there is no such key"),
        ("edit shop --config file.toml", "seeds_file: none.txt cannot be read"),
        ("edit shop --config list.json --delay 1s", "it is no table of keys"),
        ("edit shop --config odd.json --delay 1s", "politeness: 3 does not fit: it is a table"),
        ("edit nobody --delay 1s", "no crawl has the id or name 'nobody'"),
    ],
)
def test_edit_with_invalid_value_names_option_or_key(stage: Stage, line: str, words: str) -> None:
    definition = 'seeds = ["https://example.org/"]\nname = "shop"\nwindow = 3\n'
    (stage.folder / "shop.toml").write_text(definition)
    (stage.folder / "file.toml").write_text('seeds_file = "none.txt"\n')
    (stage.folder / "list.json").write_text("[]")
    (stage.folder / "odd.json").write_text('{"politeness": 3}')
    before = stage.world.crawls[ID]
    assert words in stage.errors(line)
    assert stage.world.crawls[ID] == before


def test_edit_of_ended_crawl_names_state_and_alternative(stage: Stage) -> None:
    stage.run("status shop --watch")
    assert stage.world.crawls[ID].state is State.FINISHED
    assert stage.errors("edit shop --delay 5s") == f"the crawl '{ID}' is finished: start it again\n"


# --- retry --------------------------------------------------------------------------------------

RETRY = f"{ID}-retry1"


@pytest.fixture
def failed(stage: Stage) -> Stage:
    dns, gone = Reason.DNS, Reason.HTTP_CLIENT_ERROR
    stage.site += [Row("/x", Outcome.FAILED, dns), Row("/y", Outcome.FAILED, gone)]
    stage.run("status shop --watch")
    stage.site = [Row("/x"), Row("/y")]
    return stage


def test_retry_names_run_and_repeated_retry_same_run(failed: Stage) -> None:
    for which in ("shop", ID):
        assert failed.output(f"retry {which}") == f"{RETRY}\n"
        assert f"2 URLs of {ID} in 1 run: orbweaver status {RETRY} --watch" in failed.noted
    (told,) = failed.run_json(f"retry {ID} --json --reason dns --host example.com")
    assert told == {"type": "started", "crawl": RETRY, "name": "shop", "retry_of": ID, "urls": 2}


@pytest.mark.parametrize("json", ["", " --json"])
def test_retry_with_wait_shows_progress_and_summary(failed: Stage, json: str) -> None:
    assert failed.run(f"retry shop --wait{json}") == 0
    assert failed.world.crawls[RETRY].state is State.FINISHED
    if json:
        assert failed.objects()[0]["type"] == "started"
        assert failed.objects()[-1]["exit_code"] == 0
    else:
        assert f"{RETRY} finished in" in failed.said


def test_retry_without_failures_is_no_error(failed: Stage) -> None:
    assert failed.run("retry shop --reason tls --reason timeout --host example.com") == 0
    words = f"nothing failed in {ID} on example.com for tls or timeout: there is nothing to retry"
    assert (failed.said, failed.noted) == ("", f"{words}\n")
    assert failed.run("retry shop --reason tls --json") == 0
    assert failed.objects() == [{"type": "result", "crawl": ID, "runs": []}]


def test_retry_by_crawl_id_finds_unfinished_run(failed: Stage) -> None:
    assert failed.run("retry shop") == 0
    failed.clock.at_ms += 1000
    assert failed.run(f"retry {ID}") == 0
    assert f"2 URLs of {ID} in 1 run, already started: orbweaver status {RETRY}" in failed.noted
    assert failed.run("retry shop") == 0
    words = f"nothing failed in {RETRY} so far: it already requests the failed URLs of {ID} again,"
    assert f"{words} and has not ended: orbweaver status {RETRY}\n" in failed.noted


def test_crawl_with_unfinished_retry_names_its_urls(failed: Stage) -> None:
    assert failed.run("retry shop") == 0
    failed.run(f"crawl {SITE} --name shop")
    waits = f"{RETRY} has 2 URLs to request: `orbweaver status {RETRY} --watch`\n"
    assert failed.said.startswith(waits)


def test_retry_of_live_crawl_without_failures_states_it(stage: Stage) -> None:
    assert stage.run("retry shop") == 0
    assert (
        stage.noted == f"nothing failed in {ID} so far: it has not ended: orbweaver status {ID}\n"
    )


def test_retry_with_unknown_reason_suggests_nearest(failed: Stage) -> None:
    assert failed.run("retry shop --reason dsn") == 2
    assert "nothing fails for 'dsn': did you mean dns? They are redirect_invalid, " in failed.noted
