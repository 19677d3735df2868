"""The commands `status`, `pages`, `page` and `export`."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from orbweaver.cli.text import UNSAFE
from orbweaver.frontier import body_file, warc
from orbweaver.frontier.queues import Depths
from orbweaver.model.http_exchange import Response
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.politeness.host_schedule import Host
from tests.memory import MemoryPages
from tests.unit.cli.fakes import NOW_MS, SITE, Closing, Machine, Row, Stage, Terminal

RUN = "example.com-20261121-090000"
EVIL = "\x1b[31mred\x1b[0m\n{}\u202e"


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(folder=tmp_path, machine=Machine(up_already=True))
    stage.site = [
        Row("/", title="Home"),
        Row("/evil", title=EVIL),
        Row("/lost", Outcome.FAILED, Reason.HTTP_CLIENT_ERROR, bytes=None),
    ]
    stage.run(f"crawl {SITE} --out first")
    return stage


# --- status -------------------------------------------------------------------------------------


def test_status_shows_newest_crawl_and_names_of_others(stage: Stage) -> None:
    stage.run(f"start {SITE} --name other")
    stage.world.hosts[SITE] = Host(name=SITE, blocked_until_ms=stage.clock.at_ms + 58_000)
    stage.machine.queue = Depths(waiting=12, in_work=3, delayed=1_234, dead=1)
    assert "other-20261121-090002 · running" in stage.output("status")
    assert "waiting  example.com: blocked 58 s" in stage.said
    assert "queue    12 waiting · 3 in flight · 1,234 delayed" in stage.said
    assert "dead     1 message that could not be processed" in stage.said
    assert f"other crawls\n  {RUN}  finished" in stage.said
    stage.shows(f"status {RUN}", "2 fetched, 3 of 3 known URLs", "failed    http_client_error 1")
    assert "other crawls" not in stage.said


def test_status_truncates_list_of_crawls(stage: Stage) -> None:
    for number in range(12):
        stage.run(f"start {SITE} --name n{number}")
    assert "  and 2 more" in stage.output("status")


def test_status_as_json_is_one_object(stage: Stage) -> None:
    (body,) = stage.run_json("status example.com --json")
    assert (body["type"], body["crawl"], body["claimed"]) == ("status", RUN, 3)
    assert body["queue"] == {"waiting": 0, "in_work": 0, "delayed": 0, "dead": 0}


@pytest.mark.parametrize("form", ["", " --json"])
def test_status_with_watch_stays_until_end_and_summarizes(stage: Stage, form: str) -> None:
    stage.run(f"start {SITE} --name other")
    stage.machine.queue = None  # no permission to read it
    assert stage.run(f"status --watch{form}") == 0
    assert "2 fetched, 3 of 3" in stage.said if not form else stage.objects()[-1]["done"] == 3


def test_status_of_paused_crawl_names_resume(stage: Stage) -> None:
    stage.run(f"start {SITE} --name other")
    stage.run("pause other")
    stage.run("status")
    assert "paused  continue with `orbweaver resume other-20261121-090002`" in stage.said


def test_unknown_crawl_is_usage_error_with_nearest_id(stage: Stage) -> None:
    assert stage.run("status exmple.com") == 2
    assert "no crawl has the id or name 'exmple.com': did you mean example.com?" in stage.noted


def test_status_on_terminal_draws_panel_and_leaves_summary(stage: Stage) -> None:
    stage.out = Terminal()
    stage.environment["TERM"] = "xterm"
    stage.site = [Row("/"), *stage.site]
    stage.world.hosts[SITE] = Host(name=SITE, tat_ms=NOW_MS + 60_000)
    stage.shows(f"crawl {SITE} --window 0s --name other", "busy: next 5", "━")
    assert "orbweaver query" in stage.said.splitlines()[-1]
    stage.environment["TERM"] = "dumb"
    assert "\x1b" not in stage.output(f"crawl {SITE} --window 0s --name another")


def test_status_shows_most_frequent_reasons_only(stage: Stage) -> None:
    reasons = [Reason.DNS, Reason.TLS, Reason.TIMEOUT, Reason.CONNECT, Reason.PROTOCOL, Reason.DNS]
    stage.site = [Row(f"/{n}", Outcome.FAILED, reason) for n, reason in enumerate(reasons)]
    stage.run(f"crawl {SITE} --window 0s --name other --json")
    crawl = stage.world.crawls[json.loads(stage.said.splitlines()[-1])["crawl"]]
    stage.world.crawls[crawl.id] = replace(crawl, seeds=())
    stage.run(f"status {crawl.id}")
    assert "dns 2 · connect 1 · protocol 1 · timeout 1 · 1 more" in stage.said


# --- closed outputs ------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["", " --json", " --outcome fetched"])
def test_pages_with_closed_output_closes_its_generator(
    stage: Stage, form: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_shard = MemoryPages.read_shard

    async def slow_to_close(pages: MemoryPages, *given: Any, **more: Any) -> AsyncIterator[Any]:
        try:
            async for row in read_shard(pages, *given, **more):
                yield row
        finally:
            await asyncio.sleep(0)  # takes time, like a connection

    monkeypatch.setattr(MemoryPages, "read_shard", slow_to_close)
    stage.out = Closing(lines=1)
    with pytest.raises(BrokenPipeError):
        stage.run(f"pages {RUN}{form}")
    assert caplog.records == []


# --- pages --------------------------------------------------------------------------------------


def test_pages_has_one_line_per_page_for_any_title(stage: Stage) -> None:
    assert len(stage.output(f"pages {RUN}").splitlines()) == 3
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
def test_no_command_prints_control_characters(stage: Stage, command: str) -> None:
    stage.world.samples[RUN] = {"scope": ("https://third.example/\x1b[31m?…",)}
    stage.out, stage.err = Terminal(), Terminal()
    stage.run(command)
    assert stage.said + stage.noted
    assert not UNSAFE.search((stage.said + stage.noted).replace("\n", ""))


def test_pages_are_filtered_by_outcome_and_limit(stage: Stage) -> None:
    assert stage.run("pages example.com --outcome failed") == 0
    assert stage.said == f"failed     http_client_error  200  {SITE}/lost\n"
    assert stage.noted == f"1 failed page of {RUN}\n"
    assert len(stage.output("pages example.com --limit 2").splitlines()) == 2


def test_run_without_requests_shows_pages_of_run_before(stage: Stage) -> None:
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
    assert "the run before" not in stage.errors(f"pages {RUN} --outcome unchanged", code=0)


def test_pages_as_json_are_ascii_lines_like_exports(stage: Stage) -> None:
    titles = {row["url"]: row["title"] for row in stage.run_json(f"pages {RUN} --json")}
    assert titles[f"{SITE}/evil"] == EVIL
    assert stage.said.isascii()


def test_page_shows_every_field_safely(stage: Stage) -> None:
    assert "outcome     fetched\n" in stage.output(f"page {SITE}/evil#x")
    assert "title       red {}\n" in stage.said
    assert "fetched_at  2026-11-21T09:00:01.000Z" in stage.said
    assert "referrer" not in stage.said
    assert stage.run_json(f"page {SITE}/evil --json --crawl example.com")[0]["title"] == EVIL


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        (f"page {SITE}/none", 11, f"there is no record of {SITE}/none in any crawl"),
        (f"page {SITE}/none", 11, f": `orbweaver explain {SITE}/none` explains why"),
        (f"page {SITE}/none --crawl {RUN}", 11, f"in {RUN}"),
        ("page example.com", 2, "'example.com': not an absolute URL: did you mean https://example"),
        ("explain 127.0.0.1:80/a", 2, "not an absolute URL: did you mean http://127.0.0.1/a?"),
        ("page x --crawl none", 2, "'x': not an absolute URL: give one like https"),
        (f"page {SITE} --crawl none", 2, "no crawl has the id or name 'none'"),
    ],
)
def test_page_without_record_url_or_crawl_has_own_error(
    stage: Stage, line: str, code: int, said: str
) -> None:
    assert said in stage.errors(line, code=code)


def test_page_shows_all_records_of_a_day_newest_first(stage: Stage) -> None:
    stage.run(f"crawl {SITE} --window 0s --out second --name other")
    first, second = stage.output(f"page {SITE}/").split("\n\n")
    assert "other-" in first
    assert RUN in second


# --- export -------------------------------------------------------------------------------------


def test_export_of_crawl_or_day_has_own_folder(stage: Stage) -> None:
    assert stage.run(f"export --crawl {RUN}") == 0
    for name, suffix in (("jsonl", "jsonl.gz"), ("parquet", "parquet")):
        file = f"pages/{name}/dt=2026-11-21/{RUN}/part-00-00000.{suffix}"
        assert f"out/{RUN}/{file}" in stage.said
    assert stage.run("export --format csv,jsonl") == 0
    for name in ("csv", "jsonl"):
        assert f"out/pages/{name}/dt=2026-11-21/{RUN}/part-00-00000.{name}" in stage.said
    assert "parquet" not in stage.said.rpartition("out/pages/csv")[2]
    assert stage.run_json(f"export --day 2026-11-21 --crawl {RUN} --out x --json")[0]["rows"] == 3
    assert "no records, so no files in out" in stage.output("export --day 2026-11-20")


def test_export_replaces_files_of_crawl_without_runs(stage: Stage) -> None:
    stage.world.crawls["default"] = replace(stage.world.crawls[RUN], id="default", name="default")
    for _ in range(2):
        assert stage.run("export --crawl default --day 2026-11-21 --out again") == 0


def test_export_never_replaces_files_of_another_export(stage: Stage) -> None:
    assert f"holds files of the crawl {RUN} already" in stage.errors("export --out first")
    stage.run("export --out all")
    assert "holds files of all crawls already" in stage.errors(f"export --crawl {RUN} --out all")


# --- page --body, --text and --screenshot ---------------------------------------------------------

PICTURE = b"RIFF" + bytes(300)
BODY = "<p>läuft \x1b[31m\nzwei".encode()


@pytest.fixture
def stored(tmp_path: Path) -> Stage:
    stage = Stage(tmp_path)
    stage.run(f"crawl {SITE}")
    (key, record), *_ = (
        (key, record) for key, record in stage.world.pages.items() if record.url == f"{SITE}/"
    )
    answer = Response(status=200, headers={}, body=BODY)
    document = {"text": "läuft", "markdown": "# läuft \x1b[31m\n\nzwei"}
    kept = body_file.kept_of(record.url, NOW_MS, answer=answer, body=BODY, document=document)
    kept = body_file.with_screenshot(kept, record.url, NOW_MS, PICTURE)
    assert kept is not None
    opened = body_file.Segment(record.crawl, NOW_MS, Random(1))
    stage.world.pages[key] = body_file.with_body_location(record, opened.add(kept))
    stage.world.files[opened.key] = opened.whole()
    stage.out.seek(0)
    stage.out.truncate()
    return stage


def test_body_is_written_unchanged_to_pipe_or_file(stored: Stage) -> None:
    raw = io.BytesIO()
    stored.out = io.TextIOWrapper(raw, encoding="ascii")  # type: ignore[assignment]
    assert stored.run(f"page {SITE}/ --body") == 0
    assert raw.getvalue() == BODY


def test_body_on_terminal_is_cleaned(stored: Stage) -> None:
    assert stored.output(f"page {SITE}/ --body") == "<p>läuft \nzwei\n"


def test_main_text_is_written_as_clean_markdown(stored: Stage) -> None:
    assert stored.output(f"page {SITE}/ --text") == "# läuft \n\nzwei\n"


def test_truncated_main_text_is_reported_on_standard_error(stored: Stage) -> None:
    (place,) = (k for k, record in stored.world.pages.items() if record.body_key)
    record = stored.world.pages[place]
    stored.world.pages[place] = replace(record, cut="text=1200 title=3")
    assert stored.output(f"page {SITE}/ --text") == "# läuft \n\nzwei\n"
    assert "the text is cut: text 1,200: bytes of the main part" in stored.noted
    assert "title" not in stored.noted
    stored.world.pages[place] = replace(record, cut="title=3")
    assert "cut" not in stored.errors(f"page {SITE}/ --text", code=0)


def test_missing_body_has_reason(stored: Stage) -> None:
    (key,) = (key for key in stored.world.files if key.startswith("bodies/"))
    (place,) = (k for k, record in stored.world.pages.items() if record.body_key)
    record = stored.world.pages[place]
    whole = stored.world.files[key]
    length = record.body_length or 0
    end = (record.body_offset or 0) + length
    erased = whole[: record.body_offset] + warc.tombstone(length) + whole[end:]
    stored.world.files[key] = erased
    assert "was forgotten" in stored.errors(f"page {SITE}/ --body", code=11)
    del stored.world.files[key]
    stored.notes(f"page {SITE}/ --text", "the text of", "is past its retention", code=11)
    stored.world.pages[place] = replace(record, body_key=None)
    assert "no body of it is stored" in stored.errors(f"page {SITE}/ --body", code=11)


def test_screenshot_is_written_to_file_only(stored: Stage, tmp_path: Path) -> None:
    file = tmp_path / "page.webp"
    assert stored.run(f"page {SITE}/ --screenshot {file}") == 0
    assert file.read_bytes() == PICTURE
    assert (stored.said, "304 bytes of WebP" in stored.noted) == ("", True)
    (place,) = (k for k, record in stored.world.pages.items() if record.body_key)
    record = stored.world.pages[place]
    stored.world.pages[place] = replace(record, screenshot_offset=None, screenshot_length=None)
    assert stored.run(f"page {SITE}/ --screenshot {file}") == 11
    assert "set `render.screenshot` in the definition" in stored.noted
