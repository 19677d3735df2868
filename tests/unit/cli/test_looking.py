"""Commands that look: status, pages, page, export."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orbweaver.cli.text import UNSAFE
from orbweaver.frontier.queues import Depths
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.politeness.host_schedule import Host
from tests.memory import MemoryPages
from tests.unit.cli.fakes import NOW_MS, SITE, Closing, Machine, Row, Stage, Terminal

RUN = "example.com-20261121-090000"
EVIL = "\x1b[31mred\x1b[0m\n{}\u202e"


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """Give a machine with a stack on which one crawl has ended."""
    stage = Stage(folder=tmp_path, machine=Machine(up_already=True))
    stage.site = [
        Row("/", title="Home"),
        Row("/evil", title=EVIL),
        Row("/lost", Outcome.FAILED, Reason.HTTP_CLIENT_ERROR, bytes=None),
    ]
    stage.run(f"crawl {SITE} --out first")
    return stage


# --- status -------------------------------------------------------------------------------------


def test_status_shows_how_a_crawl_stands(stage: Stage) -> None:
    """Counts, reasons, waiting hosts and queues of the newest crawl, and the names of others."""
    stage.run(f"start {SITE} --name other")
    stage.world.hosts[SITE] = Host(name=SITE, blocked_until_ms=stage.clock.at_ms + 58_000)
    stage.machine.queue = Depths(waiting=12, in_work=3, delayed=1_234, dead=1)
    assert stage.run("status") == 0
    assert "other-20261121-090002 · running" in stage.said
    assert "waiting  example.com: blocked 58 s" in stage.said
    assert "queue    12 waiting · 3 in flight · 1,234 delayed" in stage.said
    assert "dead     1 message that could not be processed" in stage.said
    assert f"other crawls\n  {RUN}  finished" in stage.said
    assert stage.run(f"status {RUN}") == 0
    assert "2 fetched, 3 of 3 known URLs" in stage.said
    assert "failed    http_client_error 1" in stage.said
    assert "other crawls" not in stage.said


def test_status_lists_only_some_of_many_crawls(stage: Stage) -> None:
    """A long history is cut."""
    for number in range(12):
        stage.run(f"start {SITE} --name n{number}")
    stage.run("status")
    assert "  and 2 more" in stage.said


def test_status_for_machines(stage: Stage) -> None:
    """One object, with everything that people are shown."""
    assert stage.run("status example.com --json") == 0
    (body,) = stage.objects()
    assert (body["type"], body["crawl"], body["claimed"]) == ("status", RUN, 3)
    assert body["queue"] == {"waiting": 0, "in_work": 0, "delayed": 0, "dead": 0}


@pytest.mark.parametrize("form", ["", " --json"])
def test_status_watches_to_the_end(stage: Stage, form: str) -> None:
    """With --watch it stays until the crawl has ended, and sums it up."""
    stage.run(f"start {SITE} --name other")
    stage.machine.queue = None  # may not be read
    assert stage.run(f"status --watch{form}") == 0
    assert "2 fetched, 3 of 3" in stage.said if not form else stage.objects()[-1]["done"] == 3


def test_a_paused_crawl_says_how_it_goes_on(stage: Stage) -> None:
    """The command that helps stands where the person looks."""
    stage.run(f"start {SITE} --name other")
    stage.run("pause other")
    stage.run("status")
    assert "paused  continue with `orbweaver resume other-20261121-090002`" in stage.said


def test_an_unknown_crawl_is_a_usage_error(stage: Stage) -> None:
    """The nearest id is named."""
    assert stage.run("status exmple.com") == 2
    assert "no crawl has the id or name 'exmple.com': did you mean example.com?" in stage.noted


def test_on_a_terminal_a_panel_is_drawn(stage: Stage) -> None:
    """The panel is drawn in place and goes at the end; the summary stays."""
    stage.out = Terminal()
    stage.environment["TERM"] = "xterm"
    stage.site = [Row("/"), *stage.site]
    stage.world.hosts[SITE] = Host(name=SITE, tat_ms=NOW_MS + 60_000)
    assert stage.run(f"crawl {SITE} --window 0s --name other") == 0
    assert "busy: next 5" in stage.said
    assert "━" in stage.said
    assert "orbweaver query" in stage.said.splitlines()[-1]
    stage.environment["TERM"] = "dumb"
    stage.run(f"crawl {SITE} --window 0s --name another")
    assert "\x1b" not in stage.said


def test_status_of_a_crawl_with_many_reasons(stage: Stage) -> None:
    """The most frequent reasons are shown, the rest counted."""
    reasons = [Reason.DNS, Reason.TLS, Reason.TIMEOUT, Reason.CONNECT, Reason.PROTOCOL, Reason.DNS]
    stage.site = [Row(f"/{n}", Outcome.FAILED, reason) for n, reason in enumerate(reasons)]
    stage.run(f"crawl {SITE} --window 0s --name other --json")
    crawl = stage.world.crawls[json.loads(stage.said.splitlines()[-1])["crawl"]]
    stage.world.crawls[crawl.id] = replace(crawl, seeds=())
    stage.run(f"status {crawl.id}")
    assert "dns 2 · connect 1 · protocol 1 · timeout 1 · 1 more" in stage.said


# --- readers that have seen enough ---------------------------------------------------------------


@pytest.mark.parametrize("form", ["", " --json", " --outcome fetched"])
def test_a_listing_whose_reader_is_gone_ends_its_reading(
    stage: Stage, form: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`pages | head -1` closes what it reads from, and nothing is left for the loop to close."""
    read_shard = MemoryPages.read_shard

    async def slow_to_close(pages: MemoryPages, *given: Any, **more: Any) -> AsyncIterator[Any]:
        try:
            async for row in read_shard(pages, *given, **more):
                yield row
        finally:
            await asyncio.sleep(0)  # as a connection takes its time

    monkeypatch.setattr(MemoryPages, "read_shard", slow_to_close)
    stage.out = Closing(lines=1)
    with pytest.raises(BrokenPipeError):
        stage.run(f"pages {RUN}{form}")
    assert caplog.records == []


# --- pages --------------------------------------------------------------------------------------


def test_pages_are_listed_safely(stage: Stage) -> None:
    """A line a page, whatever its title holds; the number goes beside it."""
    assert stage.run(f"pages {RUN}") == 0
    assert len(stage.said.splitlines()) == 3
    assert f"fetched    ok                 200  {SITE}/evil red {{}}\n" in stage.said
    assert not {"\x1b", "\u202e"} & set(stage.said)
    assert stage.noted == f"3 pages of {RUN}\n"


@pytest.mark.parametrize(
    "command",
    [
        "pages example.com",
        "pages example.com --json",
        f"page {SITE}/evil",
        f"page {SITE}/evil --json",
        f"explain {SITE}/evil",
        f"explain {SITE}/evil --json",
        "report example.com",
        "report example.com --json",
        "hosts example.com",
        "status example.com",
        "status no\x1b[2Jsuch",
        "query 'no\x9b2J'",
        "dlq list",
        "export --crawl example.com --out terminal",
    ],
)
def test_no_command_steers_a_terminal(stage: Stage, command: str) -> None:
    """Whatever pages, hosts and links are called, a terminal gets no control character."""
    stage.world.samples[RUN] = {"scope": ("https://third.example/\x1b[31m?…",)}
    stage.out, stage.err = Terminal(), Terminal()
    stage.run(command)
    assert stage.said + stage.noted
    assert not UNSAFE.search((stage.said + stage.noted).replace("\n", ""))


def test_pages_of_one_outcome(stage: Stage) -> None:
    """--outcome picks, --limit ends."""
    assert stage.run("pages example.com --outcome failed") == 0
    assert stage.said == f"failed     http_client_error  200  {SITE}/lost\n"
    assert stage.noted == f"1 failed page of {RUN}\n"
    stage.run("pages example.com --limit 2")
    assert len(stage.said.splitlines()) == 2


def test_a_run_that_asked_for_nothing_leaves_its_name_to_the_one_before(stage: Stage) -> None:
    """What came too soon found nothing new: pages and report are of the run before, and say so."""
    stage.run(f"crawl {SITE}")
    empty = max(stage.world.crawls)
    assert empty != RUN
    for words in ("pages example.com", "report example.com", "report"):
        assert stage.run(words) == 0
        assert f"{empty} fetched nothing: this is about {RUN}, an earlier run\n" in stage.noted
        assert f"{SITE}/lost" in stage.said
    assert stage.run(f"pages {empty}") == 0
    assert (stage.said, "fetched nothing" in stage.noted) == ("", False)
    assert stage.noted == f"0 pages of {empty}\nprevious run: {RUN}\n"
    assert stage.run("export --crawl example.com") == 0
    assert f"this is about {RUN}, an earlier run\n" in stage.noted
    stage.run(f"pages {RUN} --outcome unchanged")
    assert "the run before" not in stage.noted


def test_pages_for_machines(stage: Stage) -> None:
    """Lines as exports have them, in ASCII."""
    stage.run(f"pages {RUN} --json")
    titles = {row["url"]: row["title"] for row in stage.objects()}
    assert titles[f"{SITE}/evil"] == EVIL
    assert stage.said.isascii()


def test_a_page_is_shown_whole(stage: Stage) -> None:
    """Every known field on a line of its own, safely; for machines as a row."""
    assert stage.run(f"page {SITE}/evil#x") == 0
    assert "outcome     fetched\n" in stage.said
    assert "title       red {}\n" in stage.said
    assert "fetched_at  2026-11-21T09:00:01.000Z" in stage.said
    assert "referrer" not in stage.said
    stage.run(f"page {SITE}/evil --json --crawl example.com")
    assert stage.objects()[0]["title"] == EVIL


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        (f"page {SITE}/none", 1, f"there is no record of {SITE}/none in any crawl"),
        (f"page {SITE}/none", 1, f": `orbweaver explain {SITE}/none` explains why"),
        (f"page {SITE}/none --crawl {RUN}", 1, f"in {RUN}"),
        ("page example.com", 2, "'example.com': not an absolute URL"),
        ("page x --crawl none", 2, "'x': not an absolute URL: give one like https"),
        (f"page {SITE} --crawl none", 2, "no crawl has the id or name 'none'"),
    ],
)
def test_a_page_that_is_not_there(stage: Stage, line: str, code: int, said: str) -> None:
    """No record, no URL and no crawl are told apart."""
    assert stage.run(line) == code
    assert said in stage.noted


def test_several_records_of_a_day_are_shown(stage: Stage) -> None:
    """Two crawls of one URL on one day are two blocks, the newest first."""
    stage.run(f"crawl {SITE} --window 0s --out second --name other")
    stage.run(f"page {SITE}/")
    first, second = stage.said.split("\n\n")
    assert "other-" in first
    assert RUN in second


# --- export -------------------------------------------------------------------------------------


def test_export_of_a_crawl_and_of_a_day(stage: Stage) -> None:
    """A crawl's records go below out/ID, a day's below out/; each is one export."""
    assert stage.run(f"export --crawl {RUN}") == 0
    for name, suffix in (("jsonl", "jsonl.gz"), ("parquet", "parquet")):
        file = f"pages/{name}/dt=2026-11-21/{RUN}/part-00-00000.{suffix}"
        assert f"out/{RUN}/{file}" in stage.said
    assert stage.run("export --format csv,jsonl") == 0
    for name in ("csv", "jsonl"):
        assert f"out/pages/{name}/dt=2026-11-21/{RUN}/part-00-00000.{name}" in stage.said
    assert "parquet" not in stage.said.rpartition("out/pages/csv")[2]
    assert stage.run(f"export --day 2026-11-21 --crawl {RUN} --out x --json") == 0
    assert stage.objects()[0]["rows"] == 3
    assert stage.run("export --day 2026-11-20") == 0
    assert "no records, so no files in out" in stage.said


def test_an_export_replaces_the_files_of_a_crawl_whose_id_is_its_name(stage: Stage) -> None:
    """The crawl `default` has no runs: its id is its name, without a moment behind."""
    stage.world.crawls["default"] = replace(stage.world.crawls[RUN], id="default", name="default")
    for _ in range(2):
        assert stage.run("export --crawl default --day 2026-11-21 --out again") == 0


def test_an_export_does_not_replace_another_ones_files(stage: Stage) -> None:
    """All crawls' records of a day are not those of one crawl."""
    assert stage.run("export --out first") == 2
    assert f"holds files of the crawl {RUN} already" in stage.noted
    stage.run("export --out all")
    assert stage.run(f"export --crawl {RUN} --out all") == 2
    assert "holds files of all crawls already" in stage.noted
