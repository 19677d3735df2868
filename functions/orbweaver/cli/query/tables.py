"""Find the tables for queries, and the files of exports that the tables consist of.

- Only files that a manifest lists are part of an export. If several exports contain a crawl's rows
  of the same day, only the latest export counts.
- Tables have the same names as in Athena. Tables that each deployment has exist even without rows.
- Files of a stack's exports are fetched, because DuckDB could read them in place only with an
  extension from the network. Only files of referenced tables are fetched. Their SHA-256 is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from orbweaver.adapters.local.folder import FolderFiles
from orbweaver.cli import text
from orbweaver.cli.exit_codes import UsageError
from orbweaver.exporting.glue_schema import FORMAT, TABLES, query_names
from orbweaver.exporting.manifest import MANIFESTS, PREFIX, File, Manifest, decode_manifest
from orbweaver.frontier.retrying import all_of
from orbweaver.model.columns import Column
from orbweaver.model.ports import Files
from orbweaver.model.value import value_class

AT_ONCE = 4
FETCH_BYTES_MAX = 10_000_000_000


@value_class
class Export:
    """The manifest of an export, and the folder to which the manifest's paths are relative."""

    folder: Path
    manifest: Manifest


@value_class
class Piece:
    """The files of one table in one export. All have the same columns."""

    day: str
    columns: tuple[Column, ...]
    folder: Path
    files: tuple[File, ...]

    @property
    def paths(self) -> list[Path]:
        return [self.folder / file.path for file in self.files]


@dataclass(slots=True, kw_only=True)
class Sheet:
    """A table: its name in queries, its columns, and its files by export, oldest export first."""

    name: str
    columns: dict[str, Column] = field(default_factory=dict)
    pieces: list[Piece] = field(default_factory=list)

    @property
    def rows(self) -> int:
        return sum(file.rows for piece in self.pieces for file in piece.files)


def sheets_of(exports: Sequence[Export]) -> dict[str, Sheet]:
    """Build the tables of exports (oldest first), by name.

    If two exports contain the same rows, the later export counts.
    """
    owners = {
        (file.table, export.manifest.day, file.crawl): place
        for place, export in enumerate(exports)
        for file in _wanted(export.manifest)
    }
    names = query_names({*(name for name, _, _ in owners), *(table.name for table in TABLES)})
    sheets = {table: Sheet(name=name) for name, table in names.items()}
    for table in TABLES:
        sheets[table.name].columns = {column.name: column for column in table.columns}
    for place, export in enumerate(exports):
        manifest = export.manifest
        taken: dict[str, list[File]] = {}
        for file in _wanted(manifest):
            if owners[file.table, manifest.day, file.crawl] == place:
                taken.setdefault(file.table, []).append(file)
        for name, files in taken.items():
            columns = tuple(manifest.columns[name])
            sheets[name].columns |= {column.name: column for column in columns}
            piece = Piece(
                day=manifest.day, columns=columns, folder=export.folder, files=tuple(files)
            )
            sheets[name].pieces.append(piece)
    return {sheet.name: sheet for sheet in sheets.values()}


def _wanted(manifest: Manifest) -> Iterable[File]:
    return (file for file in manifest.files if file.format == FORMAT)


# --- exports in folders -------------------------------------------------------------------------


def exports_in(folder: Path, shown: Path, day: str | None) -> list[Export]:
    """Find the exports in a folder and its subfolders, oldest first.

    `shown` is the folder in messages. Raises UsageError if there are none or files are missing.
    """
    roots = [folder, *sorted(path for path in folder.glob("*") if path.is_dir())]
    found = []
    for root in roots:
        for file in sorted((root / MANIFESTS).rglob("*.json")):
            manifest = decode_manifest(file.read_bytes())
            if manifest is not None and day in (None, manifest.day):
                found.append((file.stat().st_mtime_ns, Export(folder=root, manifest=manifest)))
    if not found:
        of = f" of {day}" if day else ""
        raise UsageError(
            f"there are no exports{of} in {shown}: `orbweaver crawl URL` makes one, `orbweaver"
            " export` fetches those of a stack, and --from names another folder"
        )
    exports = [export for _, export in sorted(found, key=lambda one: one[0])]
    _check_format(exports, str(shown))
    for export in exports:
        for wanted in _wanted(export.manifest):
            path = export.folder / wanted.path
            if not path.is_file() or path.stat().st_size != wanted.bytes:
                raise UsageError(
                    f"{path} is not the file that was exported: export {export.manifest.day} again"
                )
    return exports


def _check_format(exports: Sequence[Export], where: str) -> None:
    formats = {file.format for export in exports for file in export.manifest.files}
    if formats and FORMAT not in formats:
        raise UsageError(
            f"the exports in {where} have no Parquet, which queries read: export with --format"
            f" {FORMAT}"
        )


# --- exports of a stack -------------------------------------------------------------------------


async def exports_of(files: Files, folder: Path, day: str | None) -> list[Export]:
    """Read the manifests of a stack's exports. `folder` is the folder for fetched files."""
    # A day's manifest comes after the manifests of single crawls of that day. So the day's export
    # counts, because it is the last.
    keys = sorted(await files.list(f"{PREFIX}{MANIFESTS}"), key=lambda key: (-key.count("/"), key))
    of_day = f"{PREFIX}{MANIFESTS}dt={day}"
    keys = [key for key in keys if day is None or key.startswith(of_day)]
    found = await all_of(map(files.get, keys), AT_ONCE)
    manifests = [decode_manifest(body) for body in found if body is not None]
    exports = [Export(folder=folder, manifest=manifest) for manifest in manifests if manifest]
    if not exports:
        of = f" of {day}" if day else ""
        raise UsageError(
            f"the stack has no exports{of} yet: it makes those of a day in the night after it."
            " For now `orbweaver export --crawl ID` writes a crawl's files on this machine, and"
            " `orbweaver query` without --target queries them"
        )
    _check_format(exports, "the stack")
    return exports


async def fetch(
    files: Files,
    sheets: Iterable[Sheet],
    say: Callable[[str], None],
    had: dict[tuple[str, str], int] | None = None,
    bytes_max: int | None = None,
) -> None:
    """Fetch the files of tables from a stack.

    Raises UsageError if the files have more than `bytes_max` in total, or have changed since the
    export.

    `had` contains the sizes of files that are already fetched, by path and SHA-256. New files are
    added to it.
    """
    wanted: Mapping[str, tuple[Path, File]] = {
        file.path: (piece.folder, file)
        for sheet in sheets
        for piece in sheet.pieces
        for file in piece.files
        if had is None or (file.path, file.sha256) not in had
    }
    size = sum(file.bytes for _, file in wanted.values())
    if size > (FETCH_BYTES_MAX if bytes_max is None else bytes_max):
        raise UsageError(
            f"{text.size(size)} would have to be fetched: select a day with --day, or use Athena"
        )
    if wanted:
        say(f"fetching {text.plural(len(wanted), 'file')}, {text.size(size)}")

    async def one(folder: Path, file: File) -> None:
        body = await files.get(f"{PREFIX}{file.path}")
        if body is None or sha256(body).hexdigest() != file.sha256:
            raise UsageError(
                f"{file.path} is not the file that was exported: the day is being exported"
                " anew; try again in a few minutes"
            )
        await FolderFiles(folder).put(file.path, body)
        if had is not None:
            had[file.path, file.sha256] = file.bytes

    await all_of((one(folder, file) for folder, file in wanted.values()), AT_ONCE)
