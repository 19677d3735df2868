"""`crawl`, from the command line to files and exit codes."""

from __future__ import annotations

import errno
import gzip
import json
import os
import re
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from orbweaver.adapters.local import folder as adapter
from orbweaver.exporting import workspace
from orbweaver.frontier.queues import Depths
from orbweaver.model.crawl import State, Stop
from orbweaver.model.crawl_settings import Scope
from orbweaver.model.errors import Transient
from orbweaver.model.outcome import Outcome, Reason
from tests.unit.cli.fakes import LOCAL, NOW_MS, SITE, Closing, Row, Stage

RUN = "example.com-20261121-090000"
BROKEN = Row("/broken", Outcome.FAILED, Reason.HTTP_CLIENT_ERROR, bytes=None)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """Give a machine on which nothing runs."""
    return Stage(folder=tmp_path)


def rows(folder: Path) -> list[dict[str, object]]:
    """Read the export of the last run as a reader does: by its manifest."""
    manifest = max(folder.glob("manifests/dt=*/*.json"))
    files = json.loads(manifest.read_text())["files"]
    mine = [file for file in files if (file["table"], file["format"]) == ("pages", "jsonl")]
    lines = [gzip.decompress((folder / file["path"]).read_bytes()) for file in mine]
    return [json.loads(line) for line in b"".join(lines).splitlines()]


def test_crawl_goes_from_nothing_to_files(stage: Stage) -> None:
    """The emulator is started and stopped, the crawl shown, and its records lie in the folder."""
    assert stage.run(f"crawl {SITE} --out data --delay 0") == 0
    assert stage.machine.asked == ["start 4566", "stop 4566"]
    assert {row["url"] for row in rows(stage.folder / "data")} == {
        f"{SITE}/",
        f"{SITE}/a",
        f"{SITE}/b",
    }
    assert f"{RUN} finished in 0:02: 3 pages, 1.5 a second, 3.0 kB" in stage.said
    assert "fetched          3  ok 3" in stage.said
    assert "(refused)      4  links: outside the scope 4" in stage.said
    part = f"dt=2026-11-21/{RUN}/part-00-00000"
    assert re.search(rf"data/pages/jsonl/{part}\.jsonl\.gz +3 rows", stage.said)
    assert re.search(rf"data/pages/parquet/{part}\.parquet +3 rows", stage.said)
    settings, environment = stage.connected[0]
    assert environment == LOCAL
    assert settings.pages_table == "the-PagesTable"
    crawl = stage.world.crawls[RUN]
    assert (crawl.delay_ms, crawl.concurrency, crawl.shards) == (0, 16, 16)


@pytest.mark.parametrize("table", ["pages", "changes"])
def test_parquet_folder_is_read_as_one_partitioned_table(stage: Stage, table: str) -> None:
    """Readers reject a column that the names of folders repeat: pandas reads by `read_table`."""
    assert stage.run(f"crawl {SITE} --out data --delay 0") == 0
    folder = stage.folder / "data" / table / "parquet"
    found = pq.read_table(folder).to_pylist()
    assert [(row["crawl"], row["dt"]) for row in found] == [(RUN, "2026-11-21")] * 3
    for hive in ("", ", hive_partitioning = true", ", hive_partitioning = false"):
        read = f"SELECT DISTINCT crawl FROM read_parquet('{folder}/**/*.parquet'{hive})"  # noqa: S608 - our own folder
        assert duckdb.connect().execute(read).fetchall() == [(RUN,)]


def test_options_of_urls_reach_the_crawl(stage: Stage) -> None:
    """Which links belong, and what their URLs do without."""
    options = "--scope domain --strip-parameter ref --strip-parameter=my_* --keep-parameters"
    assert stage.run(f"crawl {SITE}?utm_id=1&ref=2 {options}") == 0
    crawl = stage.world.crawls[RUN]
    assert (crawl.scope, crawl.tracking) == (Scope.DOMAIN, ("my_*", "ref"))
    assert crawl.seeds == (f"{SITE}/?utm_id=1",)
    assert stage.run(f"crawl {SITE} --strip-parameter a=b") == 2
    assert "--strip-parameter: 'a=b' is not a parameter's name" in stage.noted


def test_a_running_emulator_is_used_and_left(stage: Stage) -> None:
    """What this command did not start, it does not stop; files go below out/ by default."""
    stage.machine.up_already = True
    assert stage.run(f"crawl {SITE}") == 0
    assert stage.machine.asked == []
    assert len(rows(stage.folder / "out" / RUN)) == 3


def test_crawling_again_at_once_fetches_nothing(stage: Stage) -> None:
    """A second run says why there is nothing new, and leaves the first one's files alone."""
    stage.run(f"crawl {SITE} --out data")
    assert stage.run(f"crawl {SITE} --out data") == 0
    assert "nothing new: the seed was crawled within the window of 7 days;" in stage.said
    advice = "--window 0s crawls it again, and `orbweaver local up && orbweaver explain URL` shows"
    assert advice in stage.said
    assert len(rows(stage.folder / "data")) == 3
    stage.site.append(Row("/new"))
    assert stage.run(f"crawl {SITE} --out data --window 0s") == 0
    assert len(rows(stage.folder / "data")) == 4


def test_files_of_another_crawl_are_not_replaced(stage: Stage) -> None:
    """A folder with another crawl's files is refused before anything is started."""
    stage.run(f"crawl {SITE} --out data")
    stage.machine.asked.clear()
    assert stage.run(f"crawl {SITE} --out data --name other") == 2
    assert f"data holds files of the crawl {RUN} already: give another folder" in stage.noted
    (stage.folder / "file").write_text("")
    assert stage.run(f"crawl {SITE} --out file") == 2
    assert "file is a file: give a folder" in stage.noted
    (manifest,) = (stage.folder / "data" / "manifests").rglob("*.json")
    manifest.write_text("not ours")
    assert stage.run(f"crawl {SITE} --out data --name other --window 0s") == 0
    assert stage.machine.asked == ["start 4566", "stop 4566"]


@pytest.mark.parametrize("out", ["--out sealed/data", "--out sealed", ""])
def test_a_folder_that_cannot_be_written_to_starts_nothing(
    stage: Stage, out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is tried before the crawl, the usual folder too, and said with what to do."""
    (stage.folder / "sealed").mkdir()

    def refused(_path: Path, _body: bytes) -> int:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(Path, "write_bytes", refused)
    assert stage.run(f"crawl {SITE} {out}") == 2
    assert "--out: cannot write to" in stage.noted
    assert "Read-only file system: give another folder" in stage.noted
    assert stage.machine.asked == []
    assert [each.name for each in stage.folder.iterdir()] == ["sealed"]
    assert list((stage.folder / "sealed").iterdir()) == []


def test_a_folder_below_a_file_starts_nothing(stage: Stage) -> None:
    """A path through a file is no folder."""
    (stage.folder / "file").write_text("")
    assert stage.run(f"crawl {SITE} --out file/data") == 2
    assert "Not a directory: give another folder" in stage.noted
    assert stage.machine.asked == []


@pytest.mark.parametrize("where", ["out", "temporary"])
def test_a_disk_that_fills_up_is_told_as_that(
    stage: Stage, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not as a stack that cannot be reached; the records are kept, and what to run is said."""
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def fill(*_: object, **__: object) -> None:
        raise full

    if where == "out":
        monkeypatch.setattr(adapter, "copyfile", fill)
    else:
        monkeypatch.setattr(workspace, "TemporaryDirectory", fill)
    assert stage.run(f"crawl {SITE} --out data --json") == 1
    assert f"cannot write the files to {stage.folder / 'data'}: No space left" in stage.noted
    then = f"orbweaver local up && orbweaver export --crawl {RUN} --out DIR"
    assert f"{RUN} has ended and its records are kept; make room, then: {then}" in stage.noted
    assert "No space left" in stage.objects()[-1]["error"]
    stage.machine.up_already = True
    assert stage.run(f"export --crawl {RUN} --out data") == 1
    assert "free disk space or give another --out, and run it again" in stage.noted
    monkeypatch.undo()
    assert stage.run(f"export --crawl {RUN} --out data") == 0
    assert len(rows(stage.folder / "data")) == 3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("example.com", "URL: 'example.com' cannot be crawled"),
        (f"{SITE} --name A!", "--name: 'A!' does not fit"),
        (f"{SITE} --max-pages 0", "--max-pages: 0 does not fit: give 1 to 100,000,000"),
        (f"{SITE} --concurrency 99", "--concurrency: 99 does not fit: give 1 to 64"),
        (f"{SITE} --max-depth 9999", "--max-depth: 9999 does not fit"),
        (f"{SITE} --delay 9d", "--delay: 9d does not fit: give 0s to 1d"),
        (f"{SITE} --window 999d", "--window: 999d does not fit: give 0s to 366d"),
    ],
)
def test_what_cannot_be_crawled_starts_nothing(stage: Stage, options: str, said: str) -> None:
    """A mistake in the plan is found before the emulator is started, and named by its option."""
    assert stage.run(f"crawl {options}") == 2
    assert said in stage.noted
    assert stage.machine.asked == []


@pytest.mark.parametrize(
    ("threshold", "code"),
    [("", 0), ("--fail-above 0", 1), ("--fail-above 1", 0), ("--fail-above 20%", 1)],
)
def test_failures_above_the_threshold_are_an_exit_code(
    stage: Stage, threshold: str, code: int
) -> None:
    """Only who asks for it gets an error for pages that failed."""
    stage.site = [Row("/"), Row("/a"), BROKEN, Row("/c")]
    assert stage.run(f"crawl {SITE} {threshold}") == code
    assert ("1 failures are above --fail-above" in stage.noted) == bool(code)
    assert "failed           1  http_client_error 1" in stage.said


NEVER = "robots.txt could not be fetched: connection refused"


def test_nothing_fetched_is_no_success(stage: Stage) -> None:
    """Whatever --fail-above says; why is said of the first URLs, in words."""
    stage.site = [Row("/", Outcome.SKIPPED, Reason.ROBOTS_UNREACHABLE, bytes=None, error=NEVER)]
    assert stage.run(f"crawl {SITE} --fail-above 100%") == 1
    assert stage.noted == f"nothing was fetched:\n  {SITE}/: {NEVER}\n"
    stage.clock.at_ms += 60_000
    assert stage.run(f"start {SITE} --wait --json --window 0s") == 1
    result = stage.objects()[-1]
    assert (result["exit_code"], result["why"]) == (1, [f"  {SITE}/: {NEVER}"])


def test_a_site_that_cannot_be_reached_starts_nothing(stage: Stage) -> None:
    """It is said before the emulator is started; where one of two can be reached, it goes on."""
    stage.unreached = {f"{SITE}/": "connection refused"}
    assert stage.run(f"crawl {SITE}") == 1
    assert stage.noted == f"{SITE}/ cannot be reached: connection refused\nnothing was crawled\n"
    assert stage.run(f"crawl {SITE} --json") == 1
    (result,) = stage.objects()
    assert result["error"] == f"{SITE}/ cannot be reached: connection refused"
    assert (result["exit_code"], stage.machine.asked) == (1, [])
    stage.machine.up_already = True
    assert stage.run(f"crawl {SITE}") == 1
    stage.machine.function = {"ORBWEAVER_PROXY_SECRET": "proxies"}  # which may reach it
    assert stage.run(f"crawl {SITE}") == 0
    stage.machine.function = {}
    assert stage.run(f"crawl {SITE} https://other.example/ --name two") == 0


def test_the_last_line_says_what_to_type_next(stage: Stage) -> None:
    """A query of the very folder, which needs no emulator."""
    assert stage.run(f"crawl {SITE} --out my_data") == 0
    last = stage.said.splitlines()[-1]
    assert last.startswith('next  orbweaver query --from my_data "SELECT ')
    assert stage.run("query --list --from my_data") == 0


def test_json_is_one_object_a_line(stage: Stage) -> None:
    """Steps, progress and one result at the end, and nothing else on the standard output."""
    stage.site = [Row("/"), BROKEN]
    stage.per_step = 1
    assert stage.run(f"crawl {SITE} --out data --json --fail-above 0") == 1
    objects = stage.objects()
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


def test_an_interrupted_crawl_is_paused_and_gone_on_with(stage: Stage) -> None:
    """Ctrl-C stops the emulator that was started, and the same command goes on from there."""
    stage.per_step, stage.interrupt_at = 1, 2
    assert stage.run(f"crawl {SITE} --out data") == 130
    assert stage.machine.asked == ["start 4566", "stop 4566"]
    assert stage.world.crawls[RUN].state is State.PAUSED
    assert f"interrupted: {RUN} is paused" in stage.noted
    assert f"orbweaver local up && orbweaver status {RUN}" in stage.noted
    stage.clock.at_ms += 60_000
    stage.machine.up_already = True
    stage.interrupt_at = 3
    assert stage.run(f"crawl {SITE} --out data") == 130
    assert f"  orbweaver status {RUN}" in stage.noted
    assert stage.run(f"crawl {SITE} --out data") == 0
    assert f"continuing {RUN}, which had not finished" in stage.said
    assert list(stage.world.crawls) == [RUN]
    assert len(rows(stage.folder / "data")) == 3


def test_a_crawl_whose_output_is_closed_is_paused(stage: Stage) -> None:
    """`crawl … | head -2` leaves no site being asked: the crawl waits, and how to go on is said."""
    stage.out = Closing(lines=2)
    with pytest.raises(BrokenPipeError):
        stage.run(f"crawl {SITE} --out data")
    assert stage.world.crawls[RUN].state is State.PAUSED
    assert f"interrupted: {RUN} is paused" in stage.noted
    assert stage.machine.asked == ["start 4566", "stop 4566"]


def test_an_interrupted_crawl_that_cannot_be_paused_says_so(stage: Stage) -> None:
    """A stack that does not answer any more does not keep the person waiting."""

    def fault(effect: str) -> None:
        if effect == "crawls.move":
            raise Transient("gone")

    stage.per_step, stage.interrupt_at, stage.fault = 1, 1, fault
    assert stage.run(f"crawl {SITE} --json") == 130
    assert f"interrupted: {RUN} is not finished" in stage.noted
    assert stage.objects()[-1] == {"type": "result", "crawl": RUN, "interrupted": True}


def test_an_interrupt_before_the_crawl_is_only_that(stage: Stage) -> None:
    """While the emulator starts there is no crawl to speak of."""

    def fault(_effect: str) -> None:
        raise KeyboardInterrupt

    stage.fault = fault
    assert stage.run(f"crawl {SITE}") == 130
    assert stage.noted == "interrupted\n"
    assert stage.machine.asked == ["start 4566", "stop 4566"]


def test_unfinished_crawl_with_other_options_ends_before_a_new_run(stage: Stage) -> None:
    stage.interrupt_at = 1
    stage.run(f"crawl {SITE} --delay 5s")
    stage.clock.at_ms += 60_000
    assert stage.run(f"crawl {SITE} --window 0s") == 0
    assert f"{RUN} had not finished and had another dedup.window" in stage.said
    assert stage.world.crawls[RUN].stop is Stop.CANCELLED
    assert len(stage.world.crawls) == 2


def test_a_crawl_that_stands_still_is_given_up(stage: Stage) -> None:
    """Nothing on the queues for a minute, and no end: the person is not kept waiting for ever."""
    stage.stuck = True
    stage.machine.queue = Depths(dead=2)
    assert stage.run(f"crawl {SITE}") == 1
    assert f"{RUN} is stalled: nothing is queued, and 0 URLs have no outcome" in stage.noted
    assert "2 messages on the dead-letter queue" in stage.noted
    assert "  orbweaver dlq redrive --all" in stage.noted
    assert "no records, so no files in" in stage.said
    assert stage.clock.at_ms - NOW_MS < 100_000
    stage.machine.queue = Depths()
    assert stage.run(f"crawl {SITE} --json") == 1
    assert "dead-letter" not in stage.noted
    assert (stage.objects()[-1]["type"], stage.objects()[-1]["stalled"]) == ("result", True)


def test_a_stack_that_fails_for_a_moment_is_asked_again(stage: Stage) -> None:
    """One reading that fails is no reason to give up; many are."""
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


def test_limits_of_the_stack_hold_for_what_is_read(stage: Stage) -> None:
    """Records are exported from as many shards as the worker of this stack writes to."""
    stage.machine.function = {"ORBWEAVER_PAGES_SHARDS": "16", "ORBWEAVER_PART_ROWS_MAX": "2"}
    stage.run(f"crawl {SITE} --out data")
    folder = stage.folder / "data" / "pages" / "jsonl"
    assert sorted(path.name for path in folder.glob("dt=*/*/part*")) == [
        "part-00-00000.jsonl.gz",
        "part-00-00001.jsonl.gz",
    ]


def test_a_crawl_cancelled_by_somebody_else_ends(stage: Stage) -> None:
    """The summary says that it did not come to its own end."""
    stage.per_step = 1
    stage.machine.up_already = True

    def fault(effect: str) -> None:
        if effect == "hosts.look" and stage.clock.at_ms > NOW_MS:
            crawl = stage.world.crawls[RUN]
            if crawl.state is State.RUNNING:
                stage.world.crawls[RUN] = replace(crawl, state=State.STOPPING)

    stage.fault = fault
    assert stage.run(f"crawl {SITE}") == 0
    assert "(it was cancelled): 1 page" in stage.said


# --- formats, and functions of the user's own -----------------------------------------------------

OWN = """seeds = ["https://example.com/"]
[[items]]
name = "books"
match = "."
extractor = "books"
fields = { title = {} }
"""


def test_a_crawl_writes_the_formats_that_are_wanted(stage: Stage) -> None:
    """As `export` does; each in a folder of its own."""
    assert stage.run(f"crawl {SITE} --out data --format csv,jsonl") == 0
    folders = sorted(path.name for path in (stage.folder / "data" / "pages").iterdir())
    assert folders == ["csv", "jsonl"]


def test_archives_without_bodies_are_refused(stage: Stage) -> None:
    """A format that would be empty is a contradiction, found before anything is asked for."""
    assert stage.run(f"crawl {SITE} --format warc --bodies off") == 2
    assert "--format: warc needs bodies, and this crawl stores none" in stage.noted
    assert stage.machine.asked == []


def test_a_crawl_with_functions_of_ones_own(stage: Stage) -> None:
    """The module is looked at, and deployed to the stack on this machine before the crawl."""
    (stage.folder / "own.toml").write_text(OWN)
    (stage.folder / "ext.py").write_text("def books(page, url):\n    return []\n")
    assert stage.run("crawl --config own.toml --extractor ext.py --out data") == 0
    assert stage.machine.contexts == [{"extractor": str(stage.folder / "ext.py")}]
    assert stage.run("crawl --config own.toml --out other --name again") == 0  # it is kept


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
        (
            "schedule put --config recurs.toml",
            "extractor books: the stack has no custom functions",
        ),
        ("start --config own.toml", "custom functions: orbweaver deploy -c extractor=FILE"),
    ],
)
def test_functions_that_are_not_there_are_found_before_the_crawl(
    stage: Stage, line: str, said: str
) -> None:
    """A crawl that could only end in invalid items is not begun, and `check` knows it, too."""
    (stage.folder / "own.toml").write_text(OWN)
    (stage.folder / "recurs.toml").write_text(f"{OWN}[schedule]\nevery = '1d'\n")
    (stage.folder / "other.py").write_text("def films(page, url):\n    return []\n")
    assert stage.run(line) == 2
    assert said in stage.noted
    assert stage.world.crawls == {}
