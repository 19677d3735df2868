"""`crawl`: from the command line to files and exit codes."""

from __future__ import annotations

import asyncio
import errno
import gzip
import json
import os
import re
import shutil
import signal
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import duckdb
import pyarrow.parquet as pq
import pytest

from orbweaver.adapters.local import folder as adapter
from orbweaver.cli import main
from orbweaver.cli.commands import crawl as crawl_command
from orbweaver.cli.crawl_end import NONE_BEGUN
from orbweaver.exporting import file_store
from orbweaver.frontier.queues import Depths
from orbweaver.model.crawl import State, Stop
from orbweaver.model.errors import Transient
from orbweaver.model.http_exchange import Failure
from orbweaver.model.outcome import Outcome, Reason
from tests.memory.world import Moment
from tests.unit.cli.fakes import LOCAL, NOW_MS, SITE, Closing, Row, Stage

RUN = "example.com-20261121-090000"
BROKEN = Row("/broken", Outcome.FAILED, Reason.HTTP_CLIENT_ERROR, bytes=None)


def rows(folder: Path) -> list[dict[str, object]]:
    manifest = max(folder.glob("manifests/dt=*/*.json"))
    files = json.loads(manifest.read_text())["files"]
    mine = [file for file in files if (file["table"], file["format"]) == ("pages", "jsonl")]
    lines = [gzip.decompress((folder / file["path"]).read_bytes()) for file in mine]
    return [json.loads(line) for line in b"".join(lines).splitlines()]


def test_crawl_starts_emulator_and_exports_to_folder(stage: Stage) -> None:
    assert stage.run(f"crawl {SITE} --out data --delay 0") == 0
    assert stage.machine.asked == ["start 4566", "stop 4566"]
    assert {row["url"] for row in rows(stage.folder / "data")} == {
        f"{SITE}/",
        f"{SITE}/a",
        f"{SITE}/b",
    }
    assert f"{RUN} finished in 0:02: 3 pages, 1.5 a second, 3.0 kB" in stage.said
    assert "fetched 3 ok 3" in " ".join(stage.said.split())
    assert "(refused)      4  links: outside the scope 4" in stage.said
    part = f"dt=2026-11-21/{RUN}/part-00-00000"
    assert re.search(rf"data/pages/jsonl/{part}\.jsonl\.gz +3 rows", stage.said)
    assert re.search(rf"data/pages/parquet/{part}\.parquet +3 rows", stage.said)
    settings, environment = stage.connected[0]
    assert environment == LOCAL
    assert settings.names.pages_table == "the-PagesTable"
    crawl = stage.world.crawls[RUN]
    assert (crawl.delay_ms, crawl.concurrency, crawl.shards) == (0, 16, 16)


@pytest.mark.parametrize("table", ["pages", "changes"])
def test_parquet_folder_is_read_as_one_partitioned_table(stage: Stage, table: str) -> None:
    """Readers such as `read_table` of pandas reject a column that folder names repeat."""
    assert stage.run(f"crawl {SITE} --out data --delay 0") == 0
    folder = stage.folder / "data" / table / "parquet"
    found = pq.read_table(folder).to_pylist()
    assert [(row["crawl"], row["dt"]) for row in found] == [(RUN, "2026-11-21")] * 3
    for hive in ("", ", hive_partitioning = true", ", hive_partitioning = false"):
        read = f"SELECT DISTINCT crawl FROM read_parquet('{folder}/**/*.parquet'{hive})"  # noqa: S608 - our own folder
        assert duckdb.connect().execute(read).fetchall() == [(RUN,)]


def test_crawl_uses_running_emulator_and_leaves_it(stage: Stage) -> None:
    stage.machine.up_already = True
    assert stage.run(f"crawl {SITE}") == 0
    assert stage.machine.asked == []
    assert len(rows(stage.folder / "out" / RUN)) == 3


def test_crawl_repeated_at_once_requests_nothing(stage: Stage) -> None:
    stage.run(f"crawl {SITE} --out data")
    assert stage.run(f"crawl {SITE} --out data") == 0
    assert "nothing new: the seed was crawled within the window of 7 days;" in stage.said
    advice = "--window 0s crawls it again, and `orbweaver local up && orbweaver explain URL` shows"
    assert advice in stage.said
    assert len(rows(stage.folder / "data")) == 3
    stage.site.append(Row("/new"))
    assert stage.run(f"crawl {SITE} --out data --window 0s") == 0
    assert len(rows(stage.folder / "data")) == 4


def test_repeated_crawl_names_files_of_earlier_run(stage: Stage) -> None:
    stage.run(f"crawl {SITE}")
    place = f"out/{RUN}"
    *_, last = stage.output(f"crawl {SITE}").splitlines()
    assert last == f"the files of {RUN} are in {place}"
    shutil.rmtree(stage.folder / "out")
    *_, last = stage.output(f"crawl {SITE}").splitlines()
    export = f"orbweaver local up && orbweaver export --crawl {RUN} --out {place}"
    assert last == f"to write the files of {RUN} again: {export}"
    stage.machine.up_already = True
    assert stage.run(export.partition("&& orbweaver ")[2]) == 0
    assert len(rows(stage.folder / place)) == 3


def test_second_crawl_with_other_item_rules_names_pages_of_earlier_rules(stage: Stage) -> None:
    stage.machine.up_already = True
    for selector in ("h1", "h2"):
        rule = f"[[items]]\nname = 'goods'\nmatch = '/[ab]'\nfields = {{ title = '{selector}' }}\n"
        (stage.folder / f"{selector}.toml").write_text(rule)
    stage.run(f"crawl {SITE} --config h1.toml --out data")
    told = [
        "2 pages of earlier runs were stored with other settings than this command has: item rules",
        "  stored and exported items of these pages come from the earlier rules",
        "  the same command with --refetch missing requests these pages again",
    ]
    assert stage.run(f"crawl {SITE} --config h2.toml --out data --quiet") == 0
    assert stage.noted.splitlines() == told
    assert stage.run_json(f"crawl {SITE} --config h2.toml --json")[-1]["outdated"] == told
    assert stage.run(f"crawl {SITE} --config h2.toml --out data --refetch missing") == 0
    assert stage.run(f"crawl {SITE} --config h2.toml --quiet") == 0
    assert stage.noted == ""
    assert stage.run(f"start {SITE} --config h1.toml --text") == 0
    first, *_, last = stage.noted.splitlines()[:3]
    assert first.startswith("3 pages of earlier runs")
    assert first.endswith(": --text, item rules")
    assert last == told[-1]


def test_folder_with_files_of_another_crawl_is_refused(stage: Stage) -> None:
    stage.run(f"crawl {SITE} --out data")
    stage.machine.asked.clear()
    assert stage.run(f"crawl {SITE} --out data --name other") == 2
    assert f"data holds files of the crawl {RUN} already: give another folder" in stage.noted
    (manifest,) = (stage.folder / "data" / "manifests").rglob("*.json")
    manifest.write_text("not ours")
    assert stage.run(f"crawl {SITE} --out data --name other --window 0s") == 0
    assert stage.machine.asked == ["start 4566", "stop 4566"]


@pytest.mark.parametrize("out", ["--out sealed/data", "--out sealed", ""])
def test_folder_without_write_permission_starts_nothing(
    stage: Stage, out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (stage.folder / "sealed").mkdir()

    def refused(_path: Path, _body: bytes) -> int:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(Path, "write_bytes", refused)
    assert "--out: cannot write to" in stage.errors(f"crawl {SITE} {out}")
    assert "Read-only file system: give another folder" in stage.noted
    assert stage.machine.asked == []
    assert [each.name for each in stage.folder.iterdir()] == ["sealed"]
    assert list((stage.folder / "sealed").iterdir()) == []


@pytest.mark.parametrize("where", ["out", "temporary"])
def test_full_disk_is_reported_with_command_to_resume(
    stage: Stage, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def fill(*_: object, **__: object) -> None:
        raise full

    if where == "out":
        monkeypatch.setattr(adapter, "copyfile", fill)
    else:
        monkeypatch.setattr(file_store, "TemporaryDirectory", fill)
    assert stage.run(f"crawl {SITE} --out data --json") == 9
    assert f"cannot write the files to {stage.folder / 'data'}: No space left" in stage.noted
    then = f"orbweaver local up && orbweaver export --crawl {RUN} --out DIR"
    assert f"{RUN} has ended and its records are kept; make room, then: {then}" in stage.noted
    assert "No space left" in stage.objects()[-1]["error"]
    stage.machine.up_already = True
    assert stage.run(f"export --crawl {RUN} --out data") == 9
    assert "check --out and the free disk space, and run it again" in stage.noted
    monkeypatch.undo()
    assert stage.run(f"export --crawl {RUN} --out data") == 0
    assert len(rows(stage.folder / "data")) == 3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("example.com", "URL: 'example.com' cannot be crawled"),
        (f"{SITE} --include (", "--include: '(' is not a regular expression"),
        (f"{SITE} --duration 8d", "--duration: 8d does not fit"),
        (
            f"{SITE} --format warc --bodies off",
            "--format: warc needs bodies, and this crawl stores none",
        ),
        (f"{SITE} --out file", "file is a file: give a folder"),
        (f"{SITE} --out file/data", "Not a directory: give another folder"),
        (f"{SITE} --name A!", "--name: 'A!' does not fit"),
        (f"{SITE} --max-pages 0", "--max-pages: 0 does not fit: give 1 to 100,000,000"),
        (f"{SITE} --max-pages -5", "--max-pages: -5 does not fit: give 1 to 100,000,000"),
        (f"{SITE} --concurrency 99", "--concurrency: 99 does not fit: give 1 to 64"),
        (f"{SITE} --max-depth 9999", "--max-depth: 9999 does not fit"),
        (f"{SITE} --delay 9d", "--delay: 9d does not fit: give 0s to 1d"),
        (f"{SITE} --window 999d", "--window: 999d does not fit: give 0s to 366d"),
    ],
)
def test_invalid_plan_names_option_before_emulator_starts(
    stage: Stage, options: str, said: str
) -> None:
    (stage.folder / "file").write_text("")
    assert said in stage.errors(f"crawl {options}")
    assert stage.machine.asked == []


@pytest.mark.parametrize(
    ("threshold", "code"),
    [("", 0), ("--fail-above 0", 1), ("--fail-above 1", 0), ("--fail-above 20%", 1)],
)
def test_failures_above_threshold_set_exit_code(stage: Stage, threshold: str, code: int) -> None:
    stage.site = [Row("/"), Row("/a"), BROKEN, Row("/c")]
    assert stage.run(f"crawl {SITE} {threshold}") == code
    assert ("1 failures are above --fail-above" in stage.noted) == bool(code)
    assert "failed 1 http_client_error 1" in " ".join(stage.said.split())


NEVER = "robots.txt could not be fetched: connection refused"


def test_crawl_without_any_page_counts_reasons_left_out(stage: Stage) -> None:
    stage.site = [replace(BROKEN, path=f"/{number}") for number in range(5)]
    *_, last = stage.errors(f"crawl {SITE}", code=8).splitlines()
    assert last.startswith("  and 2 more: orbweaver pages ")
    assert "finished in" in stage.said


def test_crawl_without_any_page_fails_with_reasons(stage: Stage) -> None:
    stage.site = [Row("/", Outcome.SKIPPED, Reason.ROBOTS_UNREACHABLE, bytes=None, error=NEVER)]
    assert stage.run(f"crawl {SITE} --fail-above 100%") == 4
    assert stage.noted == f"nothing was fetched:\n  {SITE}/: {NEVER}\n"
    assert "finished in" not in stage.said
    assert not (stage.folder / "out").exists()
    stage.clock.at_ms += 60_000
    result = stage.run_json(f"start {SITE} --wait --json --window 0s", code=4)[-1]
    assert (result["exit_code"], result["why"]) == (4, [f"  {SITE}/: {NEVER}"])


def test_failed_paging_is_shown_with_cause_and_fix(stage: Stage) -> None:
    cause = "$.totall finds no number: None"
    failed = Row("/v1", Outcome.FAILED, Reason.PAGING, error=cause)
    lines = [
        f"  {SITE}/v1: {cause}",
        "  correct `paging` in [[api]]: the same command then requests the page again",
    ]
    noted = "\n".join(["paging of an API ended too early:", *lines, ""])
    stage.site = [Row("/"), failed]
    assert stage.errors(f"crawl {SITE}", code=0) == noted
    stage.site = [failed]
    assert stage.run(f"start {SITE} --name two --wait") == 7
    assert stage.noted == f"nothing was fetched\n{noted}"
    assert stage.run_json(f"start {SITE} --name three --wait --json", code=7)[-1]["paging"] == lines


def test_unreachable_site_starts_nothing(stage: Stage) -> None:
    refused = Failure(reason=Reason.CONNECT, detail="connection refused")
    stage.unreached = {f"{SITE}/": refused}
    assert stage.run(f"crawl {SITE}") == 4
    assert stage.noted == f"{SITE}/ cannot be reached: connection refused\nnothing was crawled\n"
    (result,) = stage.run_json(f"crawl {SITE} --json", code=4)
    assert result["error"] == f"{SITE}/ cannot be reached: connection refused"
    assert (result["exit_code"], stage.machine.asked) == (4, [])
    stage.machine.up_already = True
    assert stage.run(f"crawl {SITE}") == 4
    stage.machine.function = {"ORBWEAVER_PROXY_SECRET": "proxies"}  # a proxy may reach the site
    assert stage.run(f"crawl {SITE}") == 0
    stage.machine.function = {}
    assert stage.run(f"crawl {SITE} https://other.example/ --name two") == 0


def test_last_line_is_query_of_the_folder(stage: Stage) -> None:
    last = stage.output(f"crawl {SITE} --out my_data").splitlines()[-1]
    assert last.startswith('next  orbweaver query --from my_data "SELECT ')
    assert stage.run("query --list --from my_data") == 0


def test_json_output_is_one_object_per_line(stage: Stage) -> None:
    stage.site = [Row("/"), BROKEN]
    stage.per_step = 1
    objects = stage.run_json(f"crawl {SITE} --out data --json --fail-above 0", code=1)
    assert [one["type"] for one in objects] == ["step", "step", "progress", "progress", "result"]
    result = objects[-1]
    assert (result["crawl"], result["state"], result["stop"]) == (RUN, "finished", "finished")
    assert (result["claimed"], result["done"], result["rows"]) == (2, 2, 2)
    assert result["outcomes"]["fetched"] == result["outcomes"]["failed"] == 1
    assert result["reasons"]["failed"] == {"http_client_error": 1}
    part = f"dt=2026-11-21/{RUN}/part-00-00000"
    assert result["files"] == [
        f"data/{table}/{name}/{part}.{suffix}"
        for table in ("changes", "pages")
        for name, suffix in (("jsonl", "jsonl.gz"), ("parquet", "parquet"))
    ]
    assert (result["exit_code"], result["nothing_new"]) == (1, False)


def test_interrupted_crawl_is_paused_and_resumed_by_same_command(stage: Stage) -> None:
    stage.per_step, stage.interrupt_at = 1, 2
    assert stage.run(f"crawl {SITE} --out data") == 130
    assert stage.machine.asked == ["start 4566", "stop 4566"]
    assert stage.world.crawls[RUN].state is State.PAUSED
    assert f"interrupted: {RUN} is paused" in stage.noted
    assert f"orbweaver local up && orbweaver status {RUN}" in stage.noted
    stage.clock.at_ms += 60_000
    stage.machine.up_already = True
    stage.interrupt_at = 3
    assert f"  orbweaver status {RUN}" in stage.errors(f"crawl {SITE} --out data", code=130)
    assert f"continuing {RUN}, which had not finished" in stage.output(f"crawl {SITE} --out data")
    assert list(stage.world.crawls) == [RUN]
    assert len(rows(stage.folder / "data")) == 3


def test_crawl_with_closed_output_is_paused(stage: Stage) -> None:
    """`crawl … | head -2` must not leave a crawl running. The hint names the way to resume."""
    stage.out = Closing(lines=2)
    with pytest.raises(BrokenPipeError):
        stage.run(f"crawl {SITE} --out data")
    assert stage.world.crawls[RUN].state is State.PAUSED
    assert f"interrupted: {RUN} is paused" in stage.noted
    assert stage.machine.asked == ["start 4566", "stop 4566"]


def test_output_closed_after_end_names_export(stage: Stage) -> None:
    stage.out = Closing(lines=3)
    with pytest.raises(BrokenPipeError):
        stage.run(f"crawl {SITE} --out data")
    assert stage.world.crawls[RUN].state is State.FINISHED
    assert f"{RUN} has finished; to write its files again: orbweaver local up && " in stage.noted


def test_interrupt_with_unreachable_stack_ends_soon(stage: Stage) -> None:
    def fault(effect: str) -> None:
        if effect == "crawls.move":
            raise Transient("gone")

    stage.per_step, stage.interrupt_at, stage.fault = 1, 1, fault
    assert f"interrupted: {RUN} is not finished" in stage.errors(f"crawl {SITE} --json", code=130)
    assert stage.objects()[-1] == {"type": "result", "crawl": RUN, "interrupted": True}


NONE = f"{NONE_BEGUN}\n"


@pytest.mark.parametrize(
    ("effect", "said"),
    [
        ("crawls.list", NONE),
        ("crawls.create", NONE),
        ("queue.send", f"interrupted: {RUN} is paused\nrun the same command again to continue"),
    ],
)
def test_interrupt_before_first_line_reports_stored_crawl(
    stage: Stage, effect: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def interrupt(found: str, _moment: Moment) -> None:
        if found == effect and not interrupts:
            interrupts.append(found)
            signal.raise_signal(signal.SIGINT)
            await asyncio.sleep(0)

    interrupts: list[str] = []
    monkeypatch.setattr(stage, "gate", interrupt)
    assert stage.errors(f"crawl {SITE}", code=130).startswith(said)
    assert stage.machine.asked == ["start 4566", "stop 4566"]
    assert stage.run(f"crawl {SITE}") == 0
    assert list(stage.world.crawls) == [RUN]


def test_interrupt_of_start_at_lost_stack_names_same_command(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lose(effect: str, _moment: Moment) -> None:
        if interrupts:
            raise Transient("gone")
        if effect == "crawls.create":
            interrupts.append(effect)
            signal.raise_signal(signal.SIGINT)
            await asyncio.sleep(0)

    interrupts: list[str] = []
    monkeypatch.setattr(stage, "gate", lose)
    noted = "interrupted while the crawl began: the same command starts or continues it\n"
    assert stage.errors(f"crawl {SITE}", code=130) == noted


@pytest.mark.parametrize(
    ("where", "name", "noted"),
    [
        (crawl_command, "plan_of", NONE),
        (main, "parse", "interrupted before the command began\n"),
    ],
)
def test_interrupt_before_start_begins_no_crawl(
    stage: Stage, where: ModuleType, name: str, noted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(where, name, interrupted)
    assert stage.errors(f"crawl {SITE}", code=130) == noted


def test_unfinished_crawl_with_other_options_ends_before_a_new_run(stage: Stage) -> None:
    stage.interrupt_at = 1
    stage.run(f"crawl {SITE} --delay 5s")
    stage.clock.at_ms += 60_000
    assert stage.run(f"crawl {SITE} --window 0s") == 0
    assert f"{RUN} had not finished and had another dedup.window" in stage.said
    assert stage.world.crawls[RUN].stop is Stop.CANCELLED
    assert len(stage.world.crawls) == 2


def test_crawl_without_progress_is_given_up_after_a_minute(stage: Stage) -> None:
    stage.stuck = True
    stage.machine.queue = Depths(dead=2)
    assert stage.run(f"crawl {SITE}") == 10
    assert f"{RUN} is stalled: nothing is queued, and 0 URLs have no outcome" in stage.noted
    assert "2 messages on the dead-letter queue" in stage.noted
    assert "  orbweaver dlq redrive --all" in stage.noted
    assert "no records, so no files in" in stage.said
    assert stage.clock.at_ms - NOW_MS < 100_000
    stage.machine.queue = Depths()
    assert "dead-letter" not in stage.errors(f"crawl {SITE} --json", code=10)
    assert (stage.objects()[-1]["type"], stage.objects()[-1]["stalled"]) == ("result", True)


def test_one_failed_reading_is_retried_and_many_end_command(stage: Stage) -> None:
    failures = 3

    def fault(effect: str) -> None:
        nonlocal failures
        if effect == "crawls.shard" and failures:
            failures -= 1
            raise Transient("throttled")

    stage.fault = fault
    assert stage.run(f"crawl {SITE}") == 0
    failures = 1_000
    assert stage.run(f"crawl {SITE} --window 0s --name other") == 3
    assert "cannot reach the stack: throttled" in stage.noted


def test_export_reads_as_many_shards_as_worker_writes(stage: Stage) -> None:
    stage.machine.function = {"ORBWEAVER_PAGES_SHARDS": "16", "ORBWEAVER_PART_ROWS_MAX": "2"}
    stage.run(f"crawl {SITE} --out data")
    folder = stage.folder / "data" / "pages" / "jsonl"
    assert sorted(path.name for path in folder.glob("dt=*/*/part*")) == [
        "part-00-00000.jsonl.gz",
        "part-00-00001.jsonl.gz",
    ]


def test_crawl_cancelled_by_another_command_ends(stage: Stage) -> None:
    stage.per_step = 1
    stage.machine.up_already = True

    def fault(effect: str) -> None:
        if effect == "hosts.look" and stage.clock.at_ms > NOW_MS:
            crawl = stage.world.crawls[RUN]
            if crawl.state is State.RUNNING:
                stage.world.crawls[RUN] = replace(crawl, state=State.STOPPING)

    stage.fault = fault
    assert re.search(rf"{RUN} was cancelled after 0:0\d: 1 page", stage.output(f"crawl {SITE}"))


# --- formats and custom functions -----------------------------------------------------------------

OWN = """seeds = ["https://example.com/"]
[[items]]
name = "books"
match = "."
extractor = "books"
fields = { title = {} }
"""


def test_crawl_writes_requested_formats(stage: Stage) -> None:
    assert stage.run(f"crawl {SITE} --out data --format csv,jsonl") == 0
    folders = sorted(path.name for path in (stage.folder / "data" / "pages").iterdir())
    assert folders == ["csv", "jsonl"]


def test_crawl_with_custom_functions_deploys_them_first(stage: Stage) -> None:
    (stage.folder / "own.toml").write_text(OWN)
    (stage.folder / "ext.py").write_text("def books(page, url):\n    return []\n")
    assert stage.run("crawl --config own.toml --extractor ext.py --out data") == 0
    assert stage.machine.contexts == [{"extractor": str(stage.folder / "ext.py")}]
    assert (
        stage.run("crawl --config own.toml --out other --name again") == 0
    )  # the stack keeps the extractor


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "crawl --config own.toml",
            "items books: extractor books: the stack has no custom functions",
        ),
        ("check own.toml", "items books: extractor books: no module defines it: give"),
        ("crawl --config own.toml --extractor no.py", "extractor: there is no "),
        ("check own.toml --extractor other.py", "other.py has no function books (it has films)"),
        ("crawl https://a/ --extractor other.py", "--extractor: no rule uses a function of other"),
        ("schedule put --config recurs.toml", "extractor books: the stack has no custom functions"),
        ("start --config own.toml", "custom functions: orbweaver deploy -c extractor=FILE"),
    ],
)
def test_missing_custom_functions_are_refused(stage: Stage, line: str, said: str) -> None:
    (stage.folder / "own.toml").write_text(OWN)
    (stage.folder / "recurs.toml").write_text(f"{OWN}[schedule]\nevery = '1d'\n")
    (stage.folder / "other.py").write_text("def films(page, url):\n    return []\n")
    assert said in stage.errors(line)
    assert stage.world.crawls == {}
