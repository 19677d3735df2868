"""Writing page records into a folder, and not over other files.

A folder holds exports of days, or those of crawls of one name; a later run of that crawl lies
beside the others. Another crawl's is never touched. That, and whether the folder can be written to,
is found out before anything is crawled.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

from orbweaver.adapters.local.folder import FolderError
from orbweaver.app.wiring_exporting import alone_of
from orbweaver.cli.exit_codes import UsageError
from orbweaver.cli.session import Session
from orbweaver.exporting.manifest import MANIFESTS, Manifest, decode_manifest
from orbweaver.model.columns import PAGES
from orbweaver.model.crawl import Crawl

if TYPE_CHECKING:
    from orbweaver.exporting.exporter import Alone
    from orbweaver.exporting.run_state import UnitProgress

OUT = Path("out")
# Of an export that is told none.
FORMATS = ("jsonl", "parquet")
# Formats of one file, by its extension (cli/one_file.py).
SUFFIXES = {".csv": "csv", ".jsonl": "jsonl", ".parquet": "parquet"}
RUN_SUFFIX_CHARS = len("-20261121-235959")


PROBE_BYTES = 64 * 1024


class Unwritten(Exception):
    """Files could not be written; the text says where and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesWanted:
    """What is to be written where, and who is told how far it is."""

    folder: Path
    formats: tuple[str, ...] = FORMATS
    say: Callable[[str], None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFile:
    """One file that holds all rows of a table."""

    path: Path
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Result of an export: the manifests of the days and their folder, or one `file`."""

    folder: Path
    manifests: tuple[Manifest, ...]
    file: WrittenFile | None = None

    @property
    def rows(self) -> int:
        """How many pages there are in all."""
        return sum(manifest.rows.get(PAGES.name, 0) for manifest in self.manifests)

    @property
    def parts(self) -> list[tuple[Path, int, int]]:
        """Path, rows and bytes of each file."""
        if self.file is not None:
            return [(self.file.path, self.file.rows, self.file.bytes)]
        return [
            (self.folder / file.path, file.rows, file.bytes)
            for manifest in self.manifests
            for file in manifest.files
        ]


def check_folder(folder: Path, name: str | None, crawl_id: str | None = None) -> None:
    """Refuse a folder that holds the files of a crawl of another name; raises UsageError.

    `name` None stands for all crawls together.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--out: {folder} is a file: give a folder")
    if folder.suffix.lower() in SUFFIXES and not folder.exists():
        raise UsageError(f"--out: {folder} names one file: this command needs a folder")
    for file in sorted((folder / MANIFESTS).glob("**/*.json")):
        manifest = decode_manifest(file.read_bytes())
        if manifest is None:
            continue
        owner = manifest.crawl
        if (owner and owner[:-RUN_SUFFIX_CHARS]) != name and owner != crawl_id:
            who = f"the crawl {owner}" if owner else "all crawls"
            raise UsageError(f"--out: {folder} holds files of {who} already: give another folder")


def check_writable(folder: Path) -> None:
    """Refuse a folder that cannot be written to; raises UsageError. Nothing stays of the trial."""
    made = [each for each in (folder, *folder.parents) if not each.exists()]
    probe = folder / f".orbweaver-{token_hex(4)}"
    try:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            probe.write_bytes(bytes(PROBE_BYTES))
        finally:
            if probe.exists():
                probe.unlink()
            for each in made:
                if each.exists():
                    each.rmdir()
    except OSError as error:
        why = os.strerror(error.errno or 0)
        fix = "give another folder, or make this one writable"
        raise UsageError(f"--out: cannot write to {folder}: {why}: {fix}") from error


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Tell what the file system refuses from what a stack does; raises Unwritten."""
    try:
        yield
    except (OSError, FolderError) as error:
        cause = error if isinstance(error, OSError) else error.__cause__
        number = cause.errno if isinstance(cause, OSError) else None
        why = os.strerror(number) if number else str(error)
        raise Unwritten(f"cannot write the files to {folder}: {why}") from error


async def export_crawl(session: Session, crawl: Crawl, wanted: FilesWanted) -> Written:
    """Write a crawl's records, day by day."""
    last_ms = crawl.finished_at_ms or session.ports.clock.now_ms()
    alone = _alone(session, wanted)
    with _writing(wanted.folder):
        manifests = await alone.export_between(crawl.started_at_ms, last_ms, crawl=crawl.id)
    return Written(folder=wanted.folder, manifests=manifests)


async def export_day(
    session: Session, day: str, crawl: Crawl | None, wanted: FilesWanted
) -> Written:
    """Write a day's records, of one crawl or of all."""
    with _writing(wanted.folder):
        manifest = await _alone(session, wanted).export(day, crawl=crawl.id if crawl else None)
    return Written(folder=wanted.folder, manifests=(manifest,))


def _alone(session: Session, wanted: FilesWanted) -> Alone:
    say = wanted.say

    def tell(progress: UnitProgress) -> None:
        # What is done with one file is not worth a word.
        if say is not None and progress.chunk > 1:
            rows = progress.rows.get(PAGES.name, 0)
            say(f"{progress.name}: {rows:,} pages in {len(progress.files)} files so far")

    return alone_of(session.ports, wanted.folder, wanted.formats, tell)
