"""Write files that are hashed and counted while they are written, and rows as text into them.

This module also defines input and result of erasing data from files. Data that remains keeps its
bytes, except cells that mention erased data. A file without remaining rows is deleted.
"""

from __future__ import annotations

import hashlib
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

from orbweaver.model.columns import Column, Table
from orbweaver.model.value import value_class

if TYPE_CHECKING:
    from orbweaver.exporting.formats import Block

# `bytes` would refer to the method below.
Raw: TypeAlias = bytes


@value_class
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
        self._texts = tuple(map(text_of, table.columns))
        self._sink = sink
        self.rows = 0

    @property
    def size(self) -> int:
        return self._sink.bytes

    def add(self, cells: Sequence[Any]) -> None:
        self._write(
            [
                self.EMPTY if value is None else text(value)
                for text, value in zip(self._texts, cells, strict=True)
            ]
        )
        self.rows += 1

    def add_block(self, block: Block) -> None:
        for cells in block.cells():
            self.add(cells)

    def close(self) -> FinishedFile:
        return self._sink.made(self.rows)

    def discard(self) -> None:
        self._sink.discard()

    @abstractmethod
    def _write(self, texts: list[str]) -> None: ...


class ErasureFilter(Protocol):
    """Selection of data to erase, as formats need it: `erasure.scope.ErasureScope`."""

    @property
    def runs(self) -> Collection[str]:
        """Runs that are erased completely."""

    @property
    def mentions(self) -> bool:
        """Whether to erase bodies and texts of other pages that mention selected URLs."""

    def url(self, url: str | None) -> bool:
        """Whether a URL belongs to the selection."""

    def run(self, crawl_id: str | None) -> bool:
        """Whether a run is erased completely."""

    def bytes(self, body: Raw) -> bool:
        """Whether a body mentions the selection."""

    def line(self, line: Raw) -> bool:
        """Whether a line may contain selected data."""

    def row_left(self, row: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return what remains of a row.

        None: the row is erased. The same object: the row contains no selected data.
        """


@value_class
class Erased:
    """Result of erasing in a file. `body` is the new file, or None if nothing changed.

    `rows` is the number of remaining rows. `gone` counts erased data by kind, and `mentions` counts
    mentions that remain.
    """

    body: bytes | None = None
    rows: int = 0
    gone: Mapping[str, int]
    mentions: int = 0


def lines_left(
    lines: list[bytes],
    scope: ErasureFilter,
    left_of: Callable[[bytes, ErasureFilter], bytes | None],
    packed: Callable[[list[bytes]], bytes],
) -> Erased:
    """Erase data from a file of lines.

    `left_of` returns what remains of a line, and `packed` makes a file of the remaining lines.
    Lines that cannot contain selected data are not parsed.
    """
    needed = [scope.line(line) or bool(scope.runs) for line in lines]
    if not any(needed):
        return Erased(rows=len(lines), gone={})
    left = [
        left_of(line, scope) if look else line for line, look in zip(lines, needed, strict=True)
    ]
    kept = [line for line in left if line is not None]
    if kept == lines:
        return Erased(rows=len(lines), gone={})
    changed = sum(new is not None and new != old for new, old in zip(left, lines, strict=True))
    gone = {"rows": len(lines) - len(kept), "cells": changed}
    return Erased(body=packed(kept), rows=len(kept), gone=gone)
