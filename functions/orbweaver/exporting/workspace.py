"""Where the files of a chunk are made, before any of them is put in place: a temporary folder."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Protocol

from orbweaver.exporting import formats

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextlib import AbstractContextManager

    from orbweaver.model.columns import Table
    from orbweaver.model.page_record import PageRecord


class Made(Protocol):
    """A file that is made: `formats.sink.Made`."""

    @property
    def path(self) -> Path:
        """Where it lies."""

    @property
    def suffix(self) -> str:
        """What its name ends in."""

    @property
    def rows(self) -> int:
        """How many rows it has."""

    @property
    def bytes(self) -> int:
        """How large it is."""

    @property
    def sha256(self) -> str:
        """Its SHA-256."""


class Writer(Protocol):
    """A file of a table in the making."""

    @property
    def size(self) -> int:
        """About how large it is."""

    def add(self, row: Mapping[str, Any]) -> None:
        """Append a row."""

    def close(self) -> Made:
        """End it."""

    def discard(self) -> None:
        """Give it up."""


class Archive(Protocol):
    """A file of answers and its index in the making."""

    @property
    def size(self) -> int:
        """How large it is."""

    def add(self, record: PageRecord, member: bytes) -> bool:
        """Append a page's answer; False if the member is none."""

    def close(self) -> tuple[Made, ...]:
        """End both."""

    def discard(self) -> None:
        """Give both up."""


class Bench(Protocol):
    """Room for one chunk."""

    def writer(self, name: str, table: Table) -> Writer:
        """Begin a file of a table."""

    def archive(self, name: str) -> Archive:
        """Begin a file of answers that will be called so."""


class Desk(Protocol):
    """Room for chunks."""

    def opened(self) -> AbstractContextManager[Bench]:
        """Make room for a chunk, until its files are in place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderDesk:
    """A folder for temporary files; None: the system's own."""

    folder: Path | None = None

    @contextmanager
    def opened(self) -> Iterator[Bench]:
        """See `Desk`."""
        with TemporaryDirectory(dir=self.folder, prefix="orbweaver-") as folder:
            yield FolderBench(folder=Path(folder))


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderBench:
    """A temporary folder for the files of one chunk."""

    folder: Path

    def writer(self, name: str, table: Table) -> Writer:
        """See `Bench`."""
        return formats.writer(name, table, self.folder)

    def archive(self, name: str) -> Archive:
        """See `Bench`."""
        return formats.archive(self.folder, name)
