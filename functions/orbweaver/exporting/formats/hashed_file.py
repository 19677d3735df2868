"""Write files that are hashed and counted while they are written, and rows as text into them."""

from __future__ import annotations

import hashlib
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from orbweaver.exporting.cells import cells_of
from orbweaver.model.columns import Column, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedFile:
    """A finished file. `suffix` is the end of its final name."""

    path: Path
    suffix: str
    rows: int
    bytes: int
    sha256: str


class HashedFile:
    """A new file in a folder. It is hashed while it is written, and never read back."""

    def __init__(self, folder: Path, suffix: str) -> None:
        # Buffered, because gzip and CSV write small pieces.
        self._file = tempfile.NamedTemporaryFile(dir=folder, suffix=suffix, delete=False)  # noqa: SIM115 - see `close`
        self.folder, self._suffix = folder, suffix
        self._digest = hashlib.sha256()
        self.bytes = 0

    def write(self, data: bytes) -> int:
        self._digest.update(data)
        self.bytes += len(data)
        return self._file.write(data)

    def flush(self) -> None:
        """Write the buffer to the file."""
        self._file.flush()

    @property
    def closed(self) -> bool:
        return self._file.closed

    def close(self) -> None:
        self._file.close()

    def made(self, rows: int) -> FinishedFile:
        self.close()
        return FinishedFile(
            path=Path(self._file.name),
            suffix=self._suffix,
            rows=rows,
            bytes=self.bytes,
            sha256=self._digest.hexdigest(),
        )

    def discard(self) -> None:
        """Remove the file, unless it is closed."""
        if not self._file.closed:
            self.close()
            Path(self._file.name).unlink(missing_ok=True)


class TextWriter(ABC):
    """Writes each row immediately, from the texts of its cells."""

    # The text that an empty cell is written as.
    EMPTY: ClassVar[str]

    def __init__(
        self, table: Table, sink: HashedFile, text_of: Callable[[Column], Callable[[Any], str]]
    ) -> None:
        self._cells = cells_of(table)
        self._texts = tuple(map(text_of, table.columns))
        self._sink = sink
        self.rows = 0

    @property
    def size(self) -> int:
        return self._sink.bytes

    def add(self, row: Mapping[str, Any]) -> None:
        found = self._cells(row)
        self._write(
            [
                self.EMPTY if value is None else text(value)
                for text, value in zip(self._texts, found, strict=True)
            ]
        )
        self.rows += 1

    def close(self) -> FinishedFile:
        return self._sink.made(self.rows)

    def discard(self) -> None:
        self._sink.discard()

    @abstractmethod
    def _write(self, texts: list[str]) -> None: ...
