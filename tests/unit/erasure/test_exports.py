"""Erasure in exports: exports in progress, rewritten files and manifests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orbweaver.erasure.files import EXPORT_LOOK_S, EXPORT_WAIT_S, FileEraser
from orbweaver.erasure.scope import ErasureScope
from orbweaver.exporting.cells import cells_of
from orbweaver.exporting.chunk import page_row
from orbweaver.exporting.formats import writer
from orbweaver.exporting.manifest import (
    PREFIX,
    WORK,
    File,
    Manifest,
    Sums,
    decode_manifest,
    encode_manifest,
    manifest_path,
    path_of,
)
from orbweaver.exporting.run_state import RUN_MS_MAX
from orbweaver.model.columns import PAGES
from tests.memory import ManualClock, MemoryEvents, MemoryFiles
from tests.memory.world import Gate, Moment, World
from tests.unit.forgetting import (
    DAY,
    ELSEWHERE,
    ENDED,
    OTHER,
    PATH,
    URL,
    export,
    record_of,
    unpacked,
)
from tests.unit.stage import NOW_MS, noting

WHOLE = ErasureScope(urls=frozenset({URL}))
RUN = ErasureScope(runs=frozenset({ENDED.id}))
ALL = PREFIX + manifest_path(DAY, None)


class Stage:
    """Exports, a clock, and progress messages."""

    def __init__(self) -> None:
        self.world = World()
        self.clock = ManualClock(NOW_MS)
        self.said: list[str] = []

    def file_eraser(self, scope: ErasureScope, gate: Gate | None = None) -> FileEraser:
        given = () if gate is None else (gate,)
        return FileEraser(
            files=MemoryFiles(self.world, *given),
            clock=self.clock,
            scope=scope,
            say=self.said.append,
            events=MemoryEvents(self.world, *given),
        )

    async def erase(self, scope: ErasureScope = WHOLE) -> FileEraser:
        eraser = self.file_eraser(scope)
        await eraser.erase_exports()
        return eraser

    def put(self, path: str, rows: Iterable[str], folder: Path, **more: Any) -> File:
        """Write a file of pages and return its entry for a manifest."""
        name, crawl = path.split("/")[1], more.get("crawl", ENDED.id)
        made = writer(name, PAGES, folder)
        for url in rows:
            made.add(cells_of(PAGES)(page_row(record_of(url, crawl))))
        done = made.close()
        body = done.path.read_bytes()
        done.path.unlink()
        self.world.files[PREFIX + path] = body
        return File(
            path=path,
            table="pages",
            format=name,
            crawl=crawl,
            rows=done.rows,
            bytes=done.bytes,
            sha256=done.sha256,
        )

    def mean(self, *files: File, **more: Any) -> None:
        """Write the manifest of the day."""
        crawls = {
            file.crawl: Sums(name="site", rows={"pages": file.rows}, outcomes={"fetched": 9})
            for file in files
        }
        manifest = Manifest(day=DAY, crawl=None, crawls=crawls, files=files)
        self.world.files[ALL] = encode_manifest(replace(manifest, **more))

    def meaning(self) -> Manifest:
        """Read the manifest of the day."""
        manifest = decode_manifest(self.world.files[ALL])
        assert manifest is not None
        return manifest


@pytest.fixture
def stage() -> Stage:
    return Stage()


def part(name: str, crawl: str = ENDED.id, chunk: int = 0, suffix: str = "") -> str:
    suffixes = {"jsonl": ".jsonl.gz", "csv": ".csv", "parquet": ".parquet", "warc": ".warc.gz"}
    return path_of("pages", name, DAY, crawl, 0, chunk, suffix or suffixes[name])


# --- exports in progress ------------------------------------------------------------------------


def run_of(begun_ms: int, day: str = DAY) -> str:
    """Return the key of a file that marks a run."""
    return f"{PREFIX}{WORK}dt={day}/all/runs/{begun_ms:013d}-0a/plan.json"


@pytest.mark.parametrize("ends_s", [1, EXPORT_LOOK_S, EXPORT_WAIT_S - EXPORT_LOOK_S])
async def test_export_in_progress_is_waited_for_and_erased(
    stage: Stage, tmp_path: Path, ends_s: int
) -> None:
    record = record_of(URL)
    export(stage.world, tmp_path, [record, record_of(OTHER)])
    late = path_of("pages", "jsonl", DAY, ENDED.id, 0, 7, ".jsonl.gz")
    key = run_of(NOW_MS)
    stage.world.files[key] = b"{}"
    slept = stage.clock.sleep

    async def sleep(seconds: float) -> None:
        await slept(seconds)
        if stage.clock.at_ms >= NOW_MS + ends_s * 1000 and key in stage.world.files:
            del stage.world.files[key]
            stage.put(late, [URL, OTHER], tmp_path)

    stage.clock.sleep = sleep  # type: ignore[method-assign]
    file_eraser = stage.file_eraser(WHOLE)
    await file_eraser.erase()
    assert file_eraser.left == []
    assert f"waiting for the export of {DAY}" in stage.said
    waited_s = -(-ends_s // EXPORT_LOOK_S) * EXPORT_LOOK_S
    assert stage.clock.at_ms == NOW_MS + waited_s * 1000
    held = [key for key, body in stage.world.files.items() if PATH in unpacked(key, body)]
    assert held == []


@pytest.mark.parametrize("days", [(DAY,), ("2026-11-20", DAY)])
async def test_wait_for_export_in_progress_is_bounded(stage: Stage, days: tuple[str, ...]) -> None:
    stage.world.files |= {run_of(NOW_MS, day): b"{}" for day in days}
    file_eraser = stage.file_eraser(WHOLE)
    stage.world.files[PREFIX + part("csv")] = b""
    await file_eraser.erase()
    assert stage.clock.at_ms == NOW_MS + EXPORT_WAIT_S * 1000
    exports, broken = file_eraser.left
    assert f"an export of {', '.join(days)} has not ended" in exports
    assert "cannot be read" in broken
    assert stage.said.count(f"looking through the exports of {DAY}") == 2


@pytest.mark.parametrize(("age_ms", "waits"), [(RUN_MS_MAX - 1, True), (RUN_MS_MAX, False)])
async def test_dead_export_is_not_waited_for(stage: Stage, age_ms: int, *, waits: bool) -> None:
    stage.world.files[run_of(NOW_MS - age_ms)] = b"{}"
    stage.world.files[f"{PREFIX}{WORK}dt={DAY}/all/other"] = b"{}"
    await stage.file_eraser(WHOLE).erase()
    assert (stage.clock.at_ms > NOW_MS) is waits
    assert stage.said.count(f"looking through the exports of {DAY}") == 0


# --- files ---------------------------------------------------------------------------------------


async def test_missing_file_is_ignored(stage: Stage) -> None:
    reader = stage.file_eraser(WHOLE)
    found = await reader.erase_in("gone.jsonl.gz")
    assert (found.body, found.rows, reader.left) == (None, 0, [])
    await reader.remove([], "files")
    assert dict(reader.done) == {}


async def test_file_removed_meanwhile_is_not_written_again(stage: Stage, tmp_path: Path) -> None:
    file = stage.put(part("jsonl"), [URL, OTHER], tmp_path)
    stage.mean(file)

    async def gate(effect: str, moment: Moment) -> None:
        if (effect, moment) == ("files.delete", Moment.AFTER):
            stage.world.files.pop(PREFIX + file.path, None)

    await stage.file_eraser(WHOLE, gate).erase()
    assert stage.world.files == {}


@pytest.mark.parametrize("name", ["jsonl", "csv", "parquet", "warc"])
async def test_unreadable_file_is_reported_and_kept(
    stage: Stage, tmp_path: Path, name: str
) -> None:
    other = stage.put(part("jsonl"), [URL, OTHER], tmp_path)
    broken = replace(other, path=part(name, chunk=1), format=name, sha256="0" * 64)
    stage.world.files[PREFIX + broken.path] = b"\x1f\x8b\xff no such file"
    stage.mean(other, broken)
    reader = await stage.erase()
    (left,) = reader.left
    assert broken.path in left
    assert PATH not in unpacked(other.path, stage.world.files[PREFIX + other.path])
    kept, standing = stage.meaning().files
    assert (kept.path, kept.rows) == (other.path, 1)
    assert standing == broken
    assert not any(WORK in key for key in stage.world.files)


async def test_file_without_rows_is_removed(stage: Stage, tmp_path: Path) -> None:
    gone = stage.put(part("csv"), [URL], tmp_path)
    kept = stage.put(part("csv", chunk=1), [OTHER], tmp_path)
    stage.mean(gone, kept)
    reader = await stage.erase()
    assert PREFIX + gone.path not in stage.world.files
    assert stage.meaning().files == (kept,)
    assert stage.meaning().crawls[ENDED.id].rows == {"pages": 1}
    assert stage.meaning().crawls[ENDED.id].outcomes == {"fetched": 1}
    assert dict(reader.done) == {"export_files": 1, "rows": 1, "cells": 0}


@pytest.mark.parametrize("names", [("jsonl",), ("csv",), ("parquet",), ("csv", "jsonl", "parquet")])
async def test_erased_rows_are_counted_over_all_files(
    stage: Stage, tmp_path: Path, names: tuple[str, ...]
) -> None:
    files = [
        stage.put(part(name, chunk=chunk), [URL, OTHER], tmp_path)
        for name in names
        for chunk in range(3)
    ]
    referred = ErasureScope(urls=frozenset({OTHER}))  # the referrer of the other row
    stage.mean(*files)
    reader = await stage.erase(referred)
    assert dict(reader.done) == {"export_files": 3 * len(names), "rows": 3, "cells": 3}


# --- manifests -----------------------------------------------------------------------------------


async def test_manifest_of_unaffected_day_is_unchanged(stage: Stage, tmp_path: Path) -> None:
    file = stage.put(part("jsonl"), [OTHER], tmp_path)
    stage.mean(file)
    stage.world.files[PREFIX + path_of("pages", "csv", "2026-11-20", "x", 0, 0, ".csv")] = b""
    before = dict(stage.world.files)
    effects: list[str] = []
    await stage.file_eraser(WHOLE, noting(effects)).erase()
    assert stage.world.files == before
    assert not {"files.put", "events.exported"} & {*effects}


@pytest.mark.parametrize("scope", [WHOLE, RUN], ids=["its only page", "it"])
async def test_manifest_omits_erased_crawl_and_keeps_other(
    stage: Stage, tmp_path: Path, scope: ErasureScope
) -> None:
    mine = stage.put(part("jsonl"), [URL], tmp_path)
    theirs = stage.put(part("jsonl", "other-1"), [ELSEWHERE], tmp_path, crawl="other-1")
    stage.mean(mine, theirs)
    reader = await stage.erase(scope)
    assert reader.done["export_files"] == 1
    assert stage.meaning().files == (theirs,)
    assert stage.meaning().crawls.keys() == {"other-1"}
    assert stage.meaning().crawls["other-1"].outcomes == {"fetched": 1}
    assert stage.world.exported == [(stage.meaning(), ALL)]


async def test_manifest_naming_only_erased_run_is_rewritten(stage: Stage, tmp_path: Path) -> None:
    theirs = stage.put(part("jsonl", "other-1"), [ELSEWHERE], tmp_path, crawl="other-1")
    sums = {"other-1": Sums(name="other"), ENDED.id: Sums(name="site")}
    stage.mean(theirs, crawls=sums)
    own = PREFIX + manifest_path(DAY, ENDED.id)
    stage.world.files[own] = encode_manifest(Manifest(day=DAY, crawl=ENDED.id))
    await stage.erase(RUN)
    assert stage.meaning().crawls.keys() == {"other-1"}
    assert own not in stage.world.files


async def test_manifest_without_crawls_is_kept(stage: Stage, tmp_path: Path) -> None:
    file = stage.put(part("jsonl"), [URL, OTHER], tmp_path)
    stage.mean(file, crawls={})
    await stage.erase()
    assert [one.rows for one in stage.meaning().files] == [1]


@pytest.mark.parametrize("names", [("csv",), ("csv", "jsonl"), ("parquet", "csv")])
async def test_outcomes_are_counted_in_one_format(
    stage: Stage, tmp_path: Path, names: tuple[str, ...]
) -> None:
    files = [
        stage.put(part(name, chunk=chunk), [f"{OTHER}{chunk}", URL, OTHER], tmp_path)
        for name in names
        for chunk in range(2)
    ]
    archive = replace(files[0], path=part("warc"), format="warc", rows=99)
    stage.world.files[PREFIX + archive.path] = b""
    stage.mean(archive, *files)
    await stage.erase()
    sums = stage.meaning().crawls[ENDED.id]
    assert (sums.rows, sums.outcomes) == ({"pages": 4}, {"fetched": 4})


async def test_archives_alone_keep_previous_counts(stage: Stage, tmp_path: Path) -> None:
    gone = stage.put(part("jsonl"), [URL], tmp_path)
    archive = replace(gone, path=part("warc"), format="warc", rows=99, sha256="")
    stage.world.files[PREFIX + archive.path] = b""
    stage.mean(gone, archive)
    await stage.erase()
    sums = stage.meaning().crawls[ENDED.id]
    assert (sums.rows, sums.outcomes) == ({"pages": 99}, {"fetched": 9})


# --- work files and snapshots --------------------------------------------------------------------


async def test_work_files_naming_url_or_run_are_removed(stage: Stage) -> None:
    work = f"{PREFIX}{WORK}dt={DAY}"
    stage.world.files |= {
        f"{work}/all/a": f'"{URL}"'.encode(),
        f"{work}/all/b": f'"{URL}0"'.encode(),
        f"{work}/crawl={ENDED.id}/c": b"{}",
        f"{work}/all/runs/1/units/{ENDED.id}/00": b"{}",
        f"{work}/crawl={ENDED.id}0/d": b"{}",
    }
    file_eraser = stage.file_eraser(WHOLE)
    await file_eraser.erase()
    assert file_eraser.done["work_files"] == 1
    assert f"{work}/all/a" not in stage.world.files
    file_eraser = stage.file_eraser(RUN)
    await file_eraser.erase()
    assert file_eraser.done["work_files"] == 2
    assert stage.world.files.keys() == {f"{work}/all/b", f"{work}/crawl={ENDED.id}0/d"}


async def test_snapshots_are_removed_with_run_or_name(stage: Stage) -> None:
    of = f"{PREFIX}_snapshots/"
    keys = [f"{of}{name}/{run}/pages" for name, run in (("a", "a-1"), ("a", "a-2"), ("b", "a"))]
    stage.world.files |= dict.fromkeys(keys, b"")
    file_eraser = stage.file_eraser(ErasureScope(runs=frozenset({"a-1"})))
    await file_eraser.erase()
    assert file_eraser.done["snapshots"] == 1
    assert sorted(stage.world.files) == keys[1:]
    await stage.file_eraser(ErasureScope(runs=frozenset({"x"}), names=frozenset({"a"}))).erase()
    assert sorted(stage.world.files) == keys[2:]
