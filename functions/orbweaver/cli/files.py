"""Writing page records into a folder, and not over somebody else's.

A day's folder holds one export. A later run of the same crawl replaces it; another crawl's is
never touched, and that is found out before anything is crawled.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from orbweaver.adapters.files import FolderFiles
from orbweaver.cli.parser import UsageError
from orbweaver.core.export import decode_manifest
from orbweaver.exporter import Exported, Exporter

if TYPE_CHECKING:
    from orbweaver.cli.session import Session
    from orbweaver.core.crawl import Crawl
    from orbweaver.core.export import Manifest

OUT = Path("out")
RUN_SUFFIX_CHARS = len("-20261121-235959")


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What was written: the manifests of the days, and where they lie."""

    folder: Path
    manifests: tuple[Manifest, ...]

    @property
    def rows(self) -> int:
        """How many rows there are in all."""
        return sum(manifest.rows for manifest in self.manifests)

    @property
    def parts(self) -> list[tuple[Path, int, int]]:
        """Path, rows and bytes of each part."""
        return [
            (self.folder / f"dt={manifest.day}" / part.name, part.rows, part.bytes)
            for manifest in self.manifests
            for part in manifest.parts
        ]


def check_folder(folder: Path, name: str | None, crawl_id: str | None = None) -> None:
    """Refuse a folder that holds the files of a crawl of another name; raises UsageError.

    `name` None stands for all crawls together.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--out: {folder} is a file: give a folder")
    for file in sorted(folder.glob("dt=*/manifest.json")):
        manifest = decode_manifest(file.read_bytes())
        if manifest is None:
            continue
        owner = manifest.crawl
        if (owner and owner[:-RUN_SUFFIX_CHARS]) != name and owner != crawl_id:
            who = f"the crawl {owner}" if owner else "all crawls"
            raise UsageError(f"--out: {folder} holds files of {who} already: give another folder")


async def export_crawl(session: Session, crawl: Crawl, folder: Path) -> Written:
    """Write a crawl's records, day by day."""
    last_ms = crawl.finished_at_ms or session.ports.clock.now_ms()
    exporter = _exporter(session, folder)
    manifests = await exporter.export_between(crawl.started_at_ms, last_ms, crawl=crawl.id)
    return Written(folder=folder, manifests=manifests)


async def export_day(session: Session, day: str, crawl: Crawl | None, folder: Path) -> Written:
    """Write a day's records, of one crawl or of all."""
    result = await _exporter(session, folder).export(day, crawl=crawl.id if crawl else None)
    manifests = (result.manifest,) if isinstance(result, Exported) else ()  # without a deadline
    return Written(folder=folder, manifests=manifests)


def _exporter(session: Session, folder: Path) -> Exporter:
    return Exporter(
        pages=session.ports.pages,
        files=FolderFiles(folder),
        clock=session.ports.clock,
        random=session.ports.random,
        part_rows_max=session.settings.part_rows_max,
        prefix="",
    )
