"""Watching a crawl: on a terminal, as lines, as JSON, and while a stack does not answer."""

from __future__ import annotations

import re
from argparse import Namespace
from dataclasses import replace
from errno import EIO
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from orbweaver.cli import session, stack
from orbweaver.cli.live.display import JsonDisplay, Lines, Panel, WarningsOnly
from orbweaver.model.crawl import State
from orbweaver.model.errors import Transient
from orbweaver.model.outcome import Outcome, Reason
from tests.unit.cli.fakes import SITE, Machine, Row, Stage, Terminal
from tests.unit.cli.views import example, view_of

RUN = "example.com-20261121-090000"
SECOND_SCREEN, FIRST_SCREEN = "\x1b[?1049h", "\x1b[?1049l"
COLOUR = re.compile("\x1b\\[[0-9;]*3[0-7][0-9;]*m")


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(folder=tmp_path, machine=Machine(up_already=True))
    stage.site = [Row(f"/{number}") for number in range(40)]
    stage.out = Terminal()
    stage.environment = {"TERM": "xterm", "COLUMNS": "80", "LINES": "24"}
    stage.run(f"start {SITE} --max-pages 1000")  # all counts in one shard, so one read returns them
    return stage


def pictures(said: str) -> list[str]:
    drawn = said.partition(SECOND_SCREEN)[2].rpartition(FIRST_SCREEN)[0].split("\x1b[H")
    return [re.sub("\x1b\\[[?0-9;]*[A-Za-z]", "", one).replace("\r", "") for one in drawn if one]


def test_screens_are_drawn_over_each_other_then_summary(stage: Stage) -> None:
    assert stage.run("status --watch") == 0
    assert stage.said.count(SECOND_SCREEN) == stage.said.count(FIRST_SCREEN) == 1
    drawn = [one for one in pictures(stage.said) if one.strip()]
    assert len(drawn) > 10
    for one in drawn:
        assert len(one.split("\n")) <= 24
        assert max(map(len, one.split("\n"))) <= 80
    assert "20 of 40 known URLs · 50 %" in stage.said
    assert "Ctrl-C stops watching; the crawl continues" in drawn[0]
    assert f"{RUN} finished in 0:20: 40 pages" in stage.said.rpartition(FIRST_SCREEN)[2]
    assert COLOUR.search(stage.said)


def test_no_color_removes_only_colours(stage: Stage) -> None:
    stage.environment["NO_COLOR"] = "1"
    assert not COLOUR.search(stage.output("status --watch"))
    assert "20 of 40 known URLs · 50 %" in stage.said


@pytest.mark.parametrize(
    ("changes", "footer"),
    [
        ({}, "Ctrl-C stops watching; the crawl continues"),
        ({"idle": True}, "Ctrl-C stops watching"),
        ({"state": State.STOPPING}, "Ctrl-C stops watching"),
        ({"state": State.PAUSED}, "Ctrl-C stops watching"),
    ],
)
def test_footer_of_idle_crawl_mentions_no_progress(
    stage: Stage, changes: dict[str, Any], footer: str
) -> None:
    stage.out = Terminal()
    display = stage.surroundings().display(Namespace(json=False, command="status"))
    display.show(view_of({}, **changes))
    display.close()
    assert pictures(stage.said)[-1].rstrip().splitlines()[-1] == footer


@pytest.mark.parametrize("which", [RUN, ""])
def test_interrupt_leaves_crawl_and_last_picture(stage: Stage, which: str) -> None:
    stage.interrupt_at = 5
    assert stage.run(f"status {which} --watch") == 130
    assert stage.world.crawls[RUN].state is State.RUNNING
    after = stage.said.rpartition(FIRST_SCREEN)[2]
    assert " of 40 known URLs · " in after
    assert "Ctrl-C" not in after
    assert stage.noted == f"{RUN} continues: orbweaver status {RUN} --watch\n"


def test_interrupted_watch_of_paused_crawl_names_its_state(stage: Stage) -> None:
    stage.run(f"pause {RUN}")
    stage.interrupt_at = stage.clock.sleeps + 3
    assert f"{RUN} is paused: orbweaver resume {RUN}" in stage.errors("status --watch", code=130)


def test_crawl_screen_has_hint_interrupt_pauses(stage: Stage) -> None:
    stage.interrupt_at = 3
    stage.machine.up_already = False
    before, _, rest = stage.output(f"crawl {SITE} --name other", code=130).partition(SECOND_SCREEN)
    assert "starting the emulator" in before
    assert "Ctrl-C pauses the crawl; the same command continues it" in rest
    assert rest.count(FIRST_SCREEN) == 1


def test_silent_stack_keeps_last_picture_with_its_age(stage: Stage) -> None:
    answers = iter([True] * 5 + [False] * 20 + [True] * 100)

    def fault(effect: str) -> None:
        if effect == "crawls.shard" and not next(answers):
            raise Transient("no route")

    stage.fault = fault
    stage.shows("status --watch", "no answer from the stack; last seen 8 s ago", "finished in")


@pytest.mark.parametrize(
    ("environment", "seconds"), [({"AWS_ENDPOINT_URL": "http://x"}, 60), ({}, 300)]
)
def test_silent_stack_is_given_up_after_time_limit(
    stage: Stage, environment: dict[str, str], seconds: int
) -> None:
    """The limit is one minute, or five on AWS."""
    stage.machine.up_already = False
    stage.environment |= environment
    stage.machine.queue = None
    reads = 0

    def fault(effect: str) -> None:
        nonlocal reads
        reads += effect == "crawls.shard"
        if reads > 2:
            raise Transient("no route")

    stage.fault = fault
    before_ms = stage.clock.at_ms
    assert "cannot reach the stack: no route" in stage.errors("status --watch", code=3)
    assert seconds <= (stage.clock.at_ms - before_ms) / 1000 <= seconds + 5
    assert "last seen" in stage.said.rpartition(FIRST_SCREEN)[2]


def test_slow_reading_lets_age_of_last_one_grow(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "TICK_S", 0.001)
    monkeypatch.setattr(stack, "LOCAL_POLL_S", 0.001)
    depths = stage.machine.depths
    reads = 0

    def slow(*given: object) -> object:
        nonlocal reads
        reads += 1
        if reads == 2:
            shown = stage.said.count("\x1b[H")
            while stage.said.count("\x1b[H") < shown + 3:
                stage.clock.at_ms += 1_000
        return depths(*given)  # type: ignore[arg-type]

    stage.machine.depths = slow  # type: ignore[method-assign, assignment]
    stage.machine.queue, stage.interrupt_at = None, 5
    assert "no answer from the stack; last seen" in stage.output("status --watch", code=130)


def test_lines_grow_rarer_and_objects_come_every_2_seconds() -> None:
    lines, objects = StringIO(), StringIO()
    plain, machine = Lines(lines), JsonDisplay(objects)
    view = example()
    for age_ms in (0, 1_000, 4_000, 9_000, 10_000):
        for display in (plain, machine):
            display.show(replace(view, age_ms=age_ms))
    assert len(lines.getvalue().splitlines()) == 2
    assert len(objects.getvalue().splitlines()) == 2
    assert "at least 10 min: 590 URLs left on shop.example" in lines.getvalue().splitlines()[0]
    assert lines.getvalue().endswith("no answer from the stack; last seen 9 s ago\n")
    assert '"age_s": 9.0' in objects.getvalue()


def test_lines_of_long_crawl_grow_rarer() -> None:
    out, view = StringIO(), example()
    display, status = Lines(out), view.reading.status
    for second in range(3_600):
        at_ms = status.crawl.started_at_ms + second * 1_000
        display.show(
            replace(view, reading=replace(view.reading, status=replace(status, at_ms=at_ms)))
        )
    assert 60 < len(out.getvalue().splitlines()) < 110


def test_quiet_display_warns_once_for_each_blocked_host() -> None:
    warned: list[str] = []
    quiet = WarningsOnly(warned.append)
    for display in (quiet, JsonDisplay(StringIO(), instead=quiet)):
        display.say("a step")
        display.show(example())
    assert len(warned) == 2
    assert re.fullmatch(
        r"docs\.example gets no request until \d\d:\d\d:\d\d UTC: 429 or 503 x2", warned[0]
    )


def test_every_display_shows_warnings() -> None:
    warned: list[str] = []
    quiet, out = WarningsOnly(warned.append), StringIO()
    displays = (quiet, JsonDisplay(out, instead=quiet), Lines(out), JsonDisplay(out))
    for display in displays:
        display.warn("ended")
    assert warned == ["ended", "ended"]
    assert out.getvalue() == 'ended\n{"type": "step", "text": "ended"}\n'


def test_unused_screen_can_be_closed_twice() -> None:
    out = Terminal()
    panel = Panel(out, {"TERM": "xterm"})
    panel.close()
    panel.show(example())
    panel.close()
    said = out.getvalue()
    panel.close()
    assert out.getvalue() == said


def test_screen_is_closed_after_its_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    out = Terminal()
    panel = Panel(out, {"TERM": "xterm"})
    panel.show(example())

    def fail(_text: str) -> int:
        raise OSError(EIO, "the terminal is closed")

    monkeypatch.setattr(out, "write", fail)
    panel.close()


def test_summary_has_hosts_and_cost(stage: Stage) -> None:
    stage.site = [Row("/"), Row("/a", Outcome.FAILED, Reason.DNS, bytes=None)]
    stage.run(f"start {SITE} https://b.example --name two")
    crawl = next(one for one in stage.world.crawls.values() if one.name == "two")
    counts = stage._counts(crawl)
    counts.update({"host.0.claimed": 2, "host.0.done": 2, "host.0.failed": 1})
    counts.update({"nanodollars": 1_200_000, "claimed": 2, "seeds": 1})
    after = stage.output("status two --watch").rpartition(FIRST_SCREEN)[2]
    assert "example.com     2       1\nb.example       0       0\n" in after
    assert "cost  $0.0012 in all (estimate) · $1.20 per 1,000 pages\n" in after
