"""`start`: from the command line to the id or the end of the crawl."""

from __future__ import annotations

import pytest

from orbweaver.cli.commands import crawl as crawl_command
from orbweaver.cli.crawl_end import NONE_BEGUN
from orbweaver.cli.main import run
from orbweaver.cli.stack import StackUnreachable
from orbweaver.model.crawl import State
from orbweaver.model.errors import Transient
from orbweaver.model.outcome import Outcome, Reason
from tests.unit.cli.fakes import SITE, Row, Stage

RUN = "example.com-20261121-090000"
AFTER = "example.com-20261121-090001"
BROKEN = Row("/broken", Outcome.FAILED, Reason.HTTP_CLIENT_ERROR, bytes=None)


def test_start_prints_id_alone_to_standard_output(stage: Stage) -> None:
    stage.machine.up_already = True
    assert stage.output(f"start {SITE} --priority high --max-pages 5") == f"{RUN}\n"
    assert f"orbweaver status {RUN} --watch" in stage.noted
    crawl = stage.world.crawls[RUN]
    assert (crawl.express, crawl.pages_max, crawl.shards) == (True, 5, 1)
    assert crawl.state is State.RUNNING


def test_start_for_missing_bodies_reports_run_and_pages(stage: Stage) -> None:
    stage.machine.up_already = True
    stage.site = [Row("/", title="Home")]
    stage.run(f"crawl {SITE} --out first --bodies off")
    assert stage.run(f"start {SITE} --refetch missing") == 0
    assert (stage.said, stage.noted) == (f"{RUN}-retry1\n", "requested again: 1 page\n")
    assert stage.run(f"start {SITE} --bodies off --refetch missing") == 0
    assert "nothing to request" in stage.noted


def test_second_run_within_a_second_gets_next_id(stage: Stage) -> None:
    stage.machine.up_already = True
    assert stage.run(f"start {SITE} --wait --window 0s") == 0
    stage.clock.at_ms = stage.world.crawls[RUN].started_at_ms
    stage.interrupt_at = stage.clock.sleeps + 1
    assert stage.run(f"start {SITE} --wait --window 0s") == 130
    assert list(stage.world.crawls) == [RUN, AFTER]
    assert f"{AFTER} continues: orbweaver status {AFTER} --watch" in stage.noted


def test_start_with_wait_shows_progress_and_exit_code(stage: Stage) -> None:
    stage.machine.up_already = True
    stage.site = [BROKEN]
    assert stage.run(f"start {SITE} --wait --fail-above 0 --json") == 8
    assert [one["type"] for one in stage.objects()] == ["started", "progress", "result"]
    assert "files" not in stage.objects()[-1]


def test_interrupt_before_start_begins_no_crawl(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    stage.machine.up_already = True
    monkeypatch.setattr(crawl_command, "with_unused_id", interrupted)
    assert stage.errors(f"start {SITE}", code=130) == f"{NONE_BEGUN}\n"
    assert not stage.world.crawls


def test_interrupted_wait_leaves_crawl_running(stage: Stage) -> None:
    stage.machine.up_already, stage.interrupt_at = True, 1
    assert stage.run(f"start {SITE} --wait") == 130
    assert stage.world.crawls[RUN].state is State.RUNNING
    assert f"{RUN} continues: orbweaver status {RUN} --watch" in stage.noted
    stage.clock.at_ms += 60_000
    stage.interrupt_at = 3
    assert stage.run_json(f"start {SITE} --wait --json --window 0s", code=130)[-1]["interrupted"]
    stage.stuck = True
    assert "is stalled" in stage.errors(f"start {SITE} --wait --name other", code=10)


def test_start_cut_short_names_id_and_repeated_start_completes(stage: Stage) -> None:
    stage.machine.up_already = True

    def fault(effect: str) -> None:
        if effect == "queue.send":
            raise Transient("throttled")

    stage.fault = fault
    assert f"add --id {RUN} to repeat it" in stage.errors(f"start {SITE}", code=3)
    stage.fault = lambda _: None
    stage.clock.at_ms += 9_000
    assert stage.run(f"start {SITE} --id {RUN}") == 0
    assert list(stage.world.crawls) == [RUN]
    assert len(stage.world.sent) == 1
    assert stage.run(f"start {SITE} --id {RUN} --delay 9s") == 2
    assert "belongs to a crawl with other seeds or options" in stage.noted


@pytest.mark.parametrize("line", [f"start {SITE}", "status", "pages x", "pause x", "export"])
def test_start_without_stack_exits_with_3_and_names_command(stage: Stage, line: str) -> None:
    stage.machine.deployed = None
    assert "`orbweaver local up`" in stage.errors(line, code=3)


def test_failed_start_of_emulator_exits_with_3(stage: Stage) -> None:
    def refuse(*_: object) -> None:
        raise StackUnreachable("Port 4566 is taken by another program")

    stage.machine.running_stack = refuse  # type: ignore[method-assign, assignment]
    assert stage.errors(f"crawl {SITE}", code=3) == "Port 4566 is taken by another program\n"


def test_identity_options_reach_crawl_and_stay_hidden(stage: Stage) -> None:
    stage.machine.up_already = True
    words = f"start {SITE} --user-agent one/1 --user-agent two/1 --proxies no".split()
    words += ["--header", "Cookie: a=s3cret; b=2", "--header", "x-key:s3cret"]
    assert run(words, stage.surroundings) == 0
    assert "s3cret" not in stage.said + stage.noted
    crawl = stage.world.crawls[RUN]
    assert (crawl.user_agents, crawl.proxied) == (("one/1", "two/1"), False)
    assert crawl.headers == (("Cookie", "a=s3cret; b=2"), ("x-key", "s3cret"))
    for command in ("status", "status --json"):
        assert stage.run(command) == 0
        assert "s3cret" not in stage.said + stage.noted


@pytest.mark.parametrize(
    ("header", "said"),
    [("s3cret", "a colon"), ("Host: s3cret", "--header: "), ("X: s3cret\nY: z", "line ends")],
)
def test_invalid_header_error_hides_its_value(stage: Stage, header: str, said: str) -> None:
    assert run(["start", SITE, "--header", header], stage.surroundings) == 2
    assert said in stage.noted
    assert "s3cret" not in stage.noted


def test_start_with_same_key_is_same_crawl_or_conflict(stage: Stage) -> None:
    stage.machine.up_already = True
    first = stage.output(f"start {SITE} --idempotency-key order-1")
    stage.clock.at_ms += 86_400_000
    assert stage.output(f"start {SITE} --idempotency-key order-1") == first
    assert len(stage.world.crawls) == 1
    assert stage.run(f"start {SITE} --idempotency-key order-1 --delay 3s") == 2
    assert "belongs to a crawl with other seeds or options" in stage.noted
    assert stage.output(f"start {SITE} --idempotency-key order-2") != first


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--idempotency-key a --id mine", "an id names the run already: give one of the two"),
        (f"--idempotency-key {'x' * 256}", "a key is 1 to 255 printable characters"),
        ("--idempotency-key a\x07b", "a key is 1 to 255 printable characters"),
        ("--idempotency-key=", "a key is 1 to 255 printable characters"),
    ],
)
def test_invalid_key_is_refused_without_showing_it(stage: Stage, options: str, words: str) -> None:
    stage.machine.up_already = True
    assert stage.errors(f"start {SITE} {options}") == f"--idempotency-key: {words}" + (
        ": give another\n" if "printable" in words else "\n"
    )
