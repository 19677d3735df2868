"""Define input and result of erasing data from files.

Data that remains keeps its bytes, except cells that mention erased data. A file without remaining
rows is deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

# `bytes` would refer to the method below.
Raw: TypeAlias = bytes


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


@dataclass(frozen=True, slots=True, kw_only=True)
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
