"""Export page records into a folder without overwriting files of another crawl.

A folder contains exports of days, or exports of crawls with one name. A later run of a crawl adds
to the folder. Before a crawl starts, the command checks that the folder is writable and has no
files of another crawl.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

from orbweaver.adapters.local.folder import FolderError
from orbweaver.app.wiring_exporting import alone_of
from orbweaver.cli.exit_codes import UsageError, WriteError
from orbweaver.cli.session import Session
from orbweaver.exporting.manifest import MANIFESTS, RUN_CHARS, Manifest, decode_manifest
from orbweaver.model.columns import PAGES
from orbweaver.model.crawl import Crawl
from orbweaver.model.outcome import SUCCESSES, Outcome
from orbweaver.model.value import value_class

if TYPE_CHECKING:
    from orbweaver.exporting.exporter import InProcessExporter
    from orbweaver.exporting.run_state import UnitProgress
    from orbweaver.frontier.ports import Pages

OUT = Path("out")
# Default formats of an export.
FORMATS = ("jsonl", "parquet")
# Formats of one file, by its extension (cli/one_file.py).
SUFFIXES = {".csv": "csv", ".jsonl": "jsonl", ".parquet": "parquet"}
PROBE_BYTES = 64 * 1024


@value_class
class ExportPlan:
    """Folder and formats of an export, and a callback for messages about the progress."""

    folder: Path
    formats: tuple[str, ...] = FORMATS
    say: Callable[[str], None] | None = None


@value_class
class WrittenFile:
    """A written file that contains all rows of a table."""

    path: Path
    rows: int
    bytes: int
    # Size of the file that was replaced. None: no file had this path.
    replaced_bytes: int | None = None


@value_class
class ExportResult:
    """Result of an export: a folder and the manifests of its days, or one `file`.

    `runs` are the runs whose rows the files contain, newest first. `absent` is the number of pages
    of earlier runs of the crawl that the folder does not contain.
    """

    folder: Path
    manifests: tuple[Manifest, ...]
    file: WrittenFile | None = None
    runs: tuple[str, ...] = ()
    absent: int = 0
    # Name of the crawl, for a suggested command that exports all runs of the crawl.
    name: str = ""

    @property
    def rows(self) -> int:
        """Number of page rows."""
        return sum(manifest.rows.get(PAGES.name, 0) for manifest in self.manifests)

    @property
    def parts(self) -> list[tuple[Path, int, int]]:
        """Path, number of rows and size in bytes of each file."""
        if self.file is not None:
            return [(self.file.path, self.file.rows, self.file.bytes)]
        return [
            (self.folder / file.path, file.rows, file.bytes)
            for manifest in self.manifests
            for file in manifest.files
        ]


def check_folder(folder: Path, name: str | None, crawl_id: str | None = None) -> None:
    """Raise UsageError if a folder contains exports of a crawl other than `name` or `crawl_id`.

    If `name` is None, the folder is for exports of all crawls together.
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
        if (owner and owner[:-RUN_CHARS]) != name and owner != crawl_id:
            who = f"the crawl {owner}" if owner else "all crawls"
            raise UsageError(f"--out: {folder} holds files of {who} already: give another folder")


def check_writable(folder: Path) -> None:
    """Raise UsageError if a folder is not writable. The check removes the files that it creates."""
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
    """Convert errors of the file system to WriteError. Errors of the stack are not converted."""
    try:
        yield
    except (OSError, FolderError) as error:
        cause = error if isinstance(error, OSError) else error.__cause__
        number = cause.errno if isinstance(cause, OSError) else None
        why = os.strerror(number) if number else str(error)
        raise WriteError(f"cannot write the files to {folder}: {why}") from error


async def export_crawl(
    session: Session, crawl: Crawl, wanted: ExportPlan, pages: Pages | None = None
) -> ExportResult:
    """Write the records of a run as files.

    `pages` replaces the session's page records. Then the table of changes is omitted.
    """
    last_ms = crawl.finished_at_ms or session.ports.clock.now_ms()
    alone = _alone(session, wanted, pages)
    with _writing(wanted.folder):
        manifests = await alone.export_between(crawl.started_at_ms, last_ms, crawl=crawl.id)
    return ExportResult(folder=wanted.folder, manifests=manifests)


async def stored_run(session: Session, crawl: Crawl, say: Callable[[str], None]) -> Crawl | None:
    """Return the newest run of the same crawl that fetched pages.

    None: no run did, and a message to `say` explains that no file is written.
    """
    for run in await session.control.with_same_crawl(crawl):
        if await _count(session, run, SUCCESSES):
            return run
    say("no file is written: no earlier run with these seeds has a page")
    other, _ = await session.control.newest_fetching(crawl.name)
    if other.id != crawl.id:
        say(f"{other.id}, with other seeds, has: orbweaver export --crawl {other.id}")
    return None


async def pages_absent(session: Session, crawl: Crawl, folder: Path) -> int:
    """Count the pages of a crawl's other runs, except runs with an export in the folder."""
    pages = 0
    for run in await session.control.with_same_crawl(crawl):
        if run.id != crawl.id and not has_files(folder, run):
            pages += await _count(session, run, (Outcome.FETCHED, Outcome.UNCHANGED))
    return pages


async def _count(session: Session, run: Crawl, outcomes: tuple[Outcome, ...]) -> int:
    total = (await session.control.status(run.id)).counters.total
    return sum(total.get(outcome, 0) for outcome in outcomes)


def has_files(folder: Path, run: Crawl) -> bool:
    return any(folder.glob(f"{MANIFESTS}*/crawl={run.id}.json"))


async def export_day(
    session: Session, day: str, crawl: Crawl | None, wanted: ExportPlan
) -> ExportResult:
    """Write the records of a day, of one crawl or (`crawl` None) of all crawls."""
    with _writing(wanted.folder):
        manifest = await _alone(session, wanted).export(day, crawl=crawl.id if crawl else None)
    return ExportResult(folder=wanted.folder, manifests=(manifest,))


def _alone(session: Session, wanted: ExportPlan, pages: Pages | None = None) -> InProcessExporter:
    say = wanted.say

    def tell(progress: UnitProgress) -> None:
        # An export that consists of a single chunk is not reported.
        if say is not None and progress.chunk > 1:
            rows = progress.rows.get(PAGES.name, 0)
            say(f"{progress.name}: {rows:,} pages in {len(progress.files)} files so far")

    return alone_of(session.ports, wanted.folder, wanted.formats, tell, pages)
