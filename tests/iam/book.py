"""Used permissions and grants, compared both ways.

A permission is written `role action resource`, as in tests/e2e/grants.py: `worker dynamodb:GetItem
table/crawls`. A grant's resource can have wildcards.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Book:
    """Used and granted permissions of one or several stacks."""

    used: frozenset[str]
    granted: frozenset[str]

    @property
    def denied(self) -> list[str]:
        return sorted(use for use in self.used if not self._grants_of(use))

    @property
    def spare(self) -> list[str]:
        used = {grant for use in self.used for grant in self._grants_of(use)}
        return sorted(self.granted - used)

    def _grants_of(self, use: str) -> set[str]:
        return {grant for grant in self.granted if covers(grant, use)}


def covers(grant: str, use: str) -> bool:
    *mine, pattern = grant.split(" ", 2)
    *theirs, resource = use.split(" ", 2) if use else ("",)
    return mine == theirs and fnmatchcase(resource, pattern)


def read_uses(file: Path, word: Callable[[str], str]) -> frozenset[str]:
    """Read the output of `orbweaver.adapters.aws.permissions`; `word` shortens resource names."""
    if not file.exists():
        return frozenset()
    uses = map(json.loads, file.read_text().splitlines())
    return frozenset(
        f"{use['function'].rpartition('-')[2]} {use['action']} {word(use['resource'])}"
        for use in uses
    )


def save(book: Book, file: Path) -> None:
    kept = {"used": sorted(book.used), "granted": sorted(book.granted)}
    file.write_text(json.dumps(kept, indent=1))


def together(files: Iterable[Path]) -> Book:
    """Merge several stacks' books, in any order."""
    books = [json.loads(file.read_text()) for file in files]
    return Book(
        used=frozenset(use for book in books for use in book["used"]),
        granted=frozenset(grant for book in books for grant in book["granted"]),
    )
