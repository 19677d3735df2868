"""Write one table of a crawl as one file: `--out pages.csv`.

- The extension names the format: .csv, .jsonl or .parquet. The name without extension selects the
  table: the name of an item rule, or else `texts`, `changes` or `invalid_items`. All other names
  mean `pages`.
- The file contains the newest record of each URL in all given runs, or the items or text of these
  records. The table `changes` contains only the changes of the newest run.
- The export is written to a temporary folder first. Then the complete file replaces an existing
  file.
"""

from __future__ import annotations

import gzip
import shutil
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from orbweaver.cli.exit_codes import UsageError, WriteError
from orbweaver.cli.export_files import (
    SUFFIXES,
    ExportPlan,
    ExportResult,
    WrittenFile,
    export_crawl,
)
from orbweaver.exporting.formats.csv import BYTE_ORDER_MARK, END, columns_of, rows_below
from orbweaver.exporting.glue_schema import sql_text
from orbweaver.frontier.retrying import closing
from orbweaver.model.columns import CHANGES, INVALID_ITEMS, LINKS, PAGES, TEXTS, items_folder
from orbweaver.model.value import value_class

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from orbweaver.cli.session import Session
    from orbweaver.exporting.manifest import Manifest
    from orbweaver.frontier.ports import Pages
    from orbweaver.model.crawl import Crawl
    from orbweaver.model.page_record import PageRecord

OTHERS = (TEXTS.name, LINKS.name, CHANGES.name, INVALID_ITEMS.name)


@value_class
class OneFile:
    """Path and format of the file to write."""

    path: Path
    format: str


def one_file(out: Path | None, place: Path, formats: tuple[str, ...] | None) -> OneFile | None:
    """Return the file that --out names. None: it names a folder. Raises UsageError.

    `place` is the absolute path of `out`, `formats` the value of --format.
    """
    if out is None or place.is_dir():
        return None
    name = SUFFIXES.get(out.suffix.lower())
    if name is None:
        if out.suffix.lower() in (".json", ".gz", ".xlsx", ".tsv", ".txt", ".warc", ".sqlite"):
            known = ", ".join(SUFFIXES)
            raise UsageError(f"--out: {out}: one file ends in {known}; else give a folder")
        return None
    if formats not in (None, (name,)):
        raise UsageError(f"--format: {out} is {name}: leave out --format, or give a folder")
    return OneFile(path=place, format=name)


async def write_one(session: Session, runs: Sequence[Crawl], wanted: OneFile) -> ExportResult:
    """Write the table that `wanted` names, from runs of a crawl (newest first)."""
    table = table_of(runs[0], wanted.path.stem)
    pages = None
    if table == CHANGES.name:
        runs = runs[:1]
    else:
        pages = NewestRecords(session.ports.pages, [run.id for run in runs])
    with TemporaryDirectory(prefix="orbweaver-") as temporary:
        manifests: list[Manifest] = []
        found: list[tuple[str, Path, int]] = []
        for place, run in enumerate(runs):
            folder = Path(temporary, str(place))
            parts = ExportPlan(folder=folder, formats=(wanted.format,))
            written = await export_crawl(session, run, parts, pages)
            manifests += written.manifests
            found += [
                (run.id, folder / file.path, file.rows)
                for manifest in written.manifests
                for file in manifest.files
                if file.table == table
            ]
        part = wanted.path.with_name(f".{wanted.path.name}.part")
        try:
            replaced = wanted.path.stat().st_size if wanted.path.exists() else None
            wanted.path.parent.mkdir(parents=True, exist_ok=True)
            _join([path for _, path, _ in found], part, wanted.format)
            part.replace(wanted.path)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise WriteError(f"cannot write {wanted.path}: {error.strerror}") from error
    size = wanted.path.stat().st_size
    rows = sum(number for _, _, number in found)
    return ExportResult(
        folder=wanted.path.parent,
        manifests=tuple(manifests),
        file=WrittenFile(path=wanted.path, rows=rows, bytes=size, replaced_bytes=replaced),
        runs=tuple(dict.fromkeys(run for run, _, _ in found)),
    )


def shown_as(written: ExportResult, out: Path) -> ExportResult:
    """Return the result with the path of the file as the user typed it (`out`)."""
    if written.file is None:
        return written
    return replace(written, file=replace(written.file, path=out))


def table_of(crawl: Crawl, stem: str) -> str:
    """Return the table that a file's name without extension selects."""
    if stem in {rule.name for rule in crawl.items}:
        return f"{items_folder(crawl.name)}{stem}"
    return stem if stem in OTHERS else PAGES.name


def _join(parts: list[Path], target: Path, form: str) -> None:
    match form:
        case "parquet":
            _join_parquet(parts, target)
        case "csv":
            _join_csv(parts, target)
        case _:
            with target.open("wb") as out:
                for part in parts:
                    with gzip.open(part) as lines:
                        shutil.copyfileobj(lines, out)


def _join_csv(parts: list[Path], target: Path) -> None:
    heads: list[list[str]] = []
    for part in parts:
        with part.open("rb") as lines:
            heads.append(columns_of(lines.readline()))
    # The columns of runs with different item rules can differ.
    columns = list(dict.fromkeys(name for head in heads for name in head))
    with target.open("wb") as out:
        if parts:
            out.write(BYTE_ORDER_MARK + ",".join(columns).encode() + END.encode())
        for part in parts:
            out.write(rows_below(columns, part.read_bytes()))


def _join_parquet(parts: list[Path], target: Path) -> None:
    if len(parts) == 1:
        shutil.copyfile(parts[0], target)
        return
    if not parts:
        raise WriteError(f"cannot write {target}: Parquet needs a row, and the table has none")
    import duckdb

    quoted = ", ".join(map(sql_text, parts))
    options = "hive_partitioning = false, union_by_name = true"
    read = f"SELECT * FROM read_parquet([{quoted}], {options})"  # noqa: S608 - quoted
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({read}) TO {sql_text(target)} (FORMAT parquet)")


class NewestRecords:
    """A `Pages` port with only the newest record of each URL.

    `runs` are newest first, and must be exported one after the other in this order.
    Memory contains one hash for each record, except for records of the oldest run.
    """

    def __init__(self, pages: Pages, runs: Sequence[str]) -> None:
        self._pages = pages
        self._runs = tuple(runs)
        self._hashes: dict[str, set[str]] = {run: set() for run in runs[:-1]}

    async def store(self, records: Sequence[PageRecord]) -> None:
        await self._pages.store(records)

    async def read_shard(
        self, day: str, shard: int, *, after: str | None = None, crawl: str | None = None
    ) -> AsyncIterator[tuple[str, PageRecord]]:
        """Read a run's records, without URLs that have a record in a newer run."""
        place = self._runs.index(crawl) if crawl in self._runs else 0
        newer = [self._hashes[run] for run in self._runs[:place]]
        own = self._hashes.get(crawl or "", set())
        rows = self._pages.read_shard(day, shard, after=after, crawl=crawl)
        async with closing(rows):
            async for key, record in rows:
                url_hash = key.rpartition("#")[2]
                own.add(url_hash)
                if not any(url_hash in hashes for hashes in newer):
                    yield key, record

    async def crawls_of(self, day: str) -> tuple[str, ...]:
        return await self._pages.crawls_of(day)

    async def count(self, day: str, shard: int, crawl: str, rows_max: int) -> int:
        return await self._pages.count(day, shard, crawl, rows_max)

    @property
    def shards(self) -> int:
        return self._pages.shards
