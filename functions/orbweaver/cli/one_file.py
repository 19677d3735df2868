"""One table of a crawl as one file: `--out pages.csv`.

- The extension names the format: .csv, .jsonl or .parquet. The file's stem names the table: a rule
  for its items, else `texts`, `changes` or `invalid_items`; every other stem means `pages`.
- The export is written to a temporary folder first. A whole file replaces an older one.
"""

from __future__ import annotations

import gzip
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from orbweaver.cli.exit_codes import UsageError
from orbweaver.cli.export_files import (
    SUFFIXES,
    FilesWanted,
    Unwritten,
    Written,
    WrittenFile,
    export_crawl,
)
from orbweaver.exporting.formats.csv import BYTE_ORDER_MARK, END
from orbweaver.model.columns import CHANGES, INVALID_ITEMS, PAGES, TEXTS, items_folder

if TYPE_CHECKING:
    from orbweaver.cli.session import Session
    from orbweaver.model.crawl import Crawl

OTHERS = (TEXTS.name, CHANGES.name, INVALID_ITEMS.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class OneFile:
    """Path and format of the file."""

    path: Path
    format: str


def one_file(out: Path | None, place: Path, formats: tuple[str, ...] | None) -> OneFile | None:
    """Return the file that --out names, or None if it names a folder; raises UsageError."""
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


async def write_one(session: Session, crawl: Crawl, wanted: OneFile) -> Written:
    table = table_of(crawl, wanted.path.stem)
    with TemporaryDirectory(prefix="orbweaver-") as temporary:
        parts = FilesWanted(folder=Path(temporary), formats=(wanted.format,))
        written = await export_crawl(session, crawl, parts)
        found = [
            (written.folder / file.path, file.rows)
            for manifest in written.manifests
            for file in manifest.files
            if file.table == table
        ]
        part = wanted.path.with_name(f".{wanted.path.name}.part")
        try:
            wanted.path.parent.mkdir(parents=True, exist_ok=True)
            _join([path for path, _ in found], part, wanted.format)
            part.replace(wanted.path)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise Unwritten(f"cannot write {wanted.path}: {error.strerror}") from error
    size = wanted.path.stat().st_size
    rows = sum(number for _, number in found)
    return Written(
        folder=wanted.path.parent,
        manifests=written.manifests,
        file=WrittenFile(path=wanted.path, rows=rows, bytes=size),
    )


def shown_as(written: Written, out: Path) -> Written:
    """Replace the path by the typed one."""
    if written.file is None:
        return written
    return replace(written, file=replace(written.file, path=out))


def table_of(crawl: Crawl, stem: str) -> str:
    """Return the table that a file's stem means."""
    if stem in {rule.name for rule in crawl.items}:
        return f"{items_folder(crawl.name)}{stem}"
    return stem if stem in OTHERS else PAGES.name


def _join(parts: list[Path], target: Path, form: str) -> None:
    match form:
        case "parquet":
            _join_parquet(parts, target)
        case "csv":
            with target.open("wb") as out:
                for place, part in enumerate(parts):
                    body = part.read_bytes().removeprefix(BYTE_ORDER_MARK)
                    # Each part has a header.
                    rows = body.partition(END.encode())[2] if place else BYTE_ORDER_MARK + body
                    out.write(rows)
        case _:
            with target.open("wb") as out:
                for part in parts:
                    with gzip.open(part) as lines:
                        shutil.copyfileobj(lines, out)


def _join_parquet(parts: list[Path], target: Path) -> None:
    if len(parts) == 1:
        shutil.copyfile(parts[0], target)
        return
    if not parts:
        raise Unwritten(f"cannot write {target}: Parquet needs a row, and the table has none")
    import duckdb

    quoted = ", ".join(map(_text, map(str, parts)))
    read = f"SELECT * FROM read_parquet([{quoted}], hive_partitioning = false)"  # noqa: S608 - quoted
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({read}) TO {_text(str(target))} (FORMAT parquet)")


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
