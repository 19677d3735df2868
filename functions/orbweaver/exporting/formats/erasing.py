"""Define input and result of erasing data from files.

Remaining data keeps its bytes, except cells that mention erased data. A file without remaining rows
is deleted.
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
        """Whether bodies and texts are erased that only mention the selection."""

    def url(self, url: str | None) -> bool:
        """Whether a URL belongs to the selection."""

    def run(self, crawl_id: str | None) -> bool:
        """Whether a run is erased completely."""

    def bytes(self, body: Raw) -> bool:
        """Whether a body mentions the selection."""

    def line(self, line: Raw) -> bool:
        """Whether a line may contain selected data."""

    def row_left(self, row: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return a row without selected data: None if it is erased, the same row if unchanged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """Result of erasing in a file: its new body if it changed, and its number of rows.

    `gone` counts erased data by kind, `mentions` counts remaining mentions.
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
    """Erase data from a file of lines. Lines that cannot contain any are not parsed."""
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
