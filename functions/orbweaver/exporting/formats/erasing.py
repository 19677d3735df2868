"""Erasers of files: input and result of taking out what is to be erased.

Rules
- What is left is byte for byte what it was, but for cells that mention what is erased.
- A file of which no row is left is none.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

# A method below is called as they are.
Raw: TypeAlias = bytes


class ErasureFilter(Protocol):
    """What is to be erased, as formats ask for it: `erasure.scope.ErasureScope`."""

    @property
    def runs(self) -> Collection[str]:
        """Runs all of which is."""

    @property
    def mentions(self) -> bool:
        """Whether bodies and texts go that only mention it."""

    def url(self, url: str | None) -> bool:
        """Whether a URL is of it."""

    def run(self, crawl_id: str | None) -> bool:
        """Whether everything of a run is."""

    def bytes(self, body: Raw) -> bool:
        """Whether a body mentions it."""

    def line(self, line: Raw) -> bool:
        """Whether a line may hold it."""

    def row_left(self, row: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Say what is left of a row: None for nothing, the same one if it holds none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """A file that was looked through: its new body if it is another one by now, its rows.

    `gone` counts what is not there any more by kind, `mentions` what stays though it mentions it.
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
    """Go through a file of lines; those that cannot hold it are not read."""
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
