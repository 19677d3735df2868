"""Provide temporary folders for the files of a chunk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from orbweaver.exporting import formats
from orbweaver.exporting.formats import Writer
from orbweaver.exporting.formats.warc import WarcWriter
from orbweaver.model.columns import Table


class ChunkWorkspace(Protocol):
    """Temporary folder of one chunk."""

    def writer(self, name: str, table: Table) -> Writer: ...

    def archive(self, name: str) -> WarcWriter: ...


class Workspace(Protocol):
    """Provides temporary folders."""

    def opened(self) -> AbstractContextManager[ChunkWorkspace]:
        """Create a temporary folder for a chunk. It is removed when the context ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderWorkspace:
    """Provides temporary folders below `folder`. None: below the system's temporary folder."""

    folder: Path | None = None

    @contextmanager
    def opened(self) -> Iterator[ChunkWorkspace]:
        with TemporaryDirectory(dir=self.folder, prefix="orbweaver-") as folder:
            yield _ChunkFolder(Path(folder))


@dataclass(frozen=True, slots=True)
class _ChunkFolder:
    folder: Path

    def writer(self, name: str, table: Table) -> Writer:
        return formats.writer(name, table, self.folder)

    def archive(self, name: str) -> WarcWriter:
        return formats.archive(self.folder, name)
