"""What functions have needed of AWS beside what their roles grant, both ways.

A permission is spelled `role action resource`, as in tests/e2e/grants.py: `worker dynamodb:GetItem
table/crawls`. What is granted may have wildcards in its resource.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Book:
    """What was used and what is granted, of one stack or of several."""

    used: frozenset[str]
    granted: frozenset[str]

    @property
    def denied(self) -> list[str]:
        """What was used and is not granted."""
        return sorted(use for use in self.used if not self._grants_of(use))

    @property
    def spare(self) -> list[str]:
        """What is granted and was not used."""
        used = {grant for use in self.used for grant in self._grants_of(use)}
        return sorted(self.granted - used)

    def _grants_of(self, use: str) -> set[str]:
        return {grant for grant in self.granted if covers(grant, use)}


def covers(grant: str, use: str) -> bool:
    """Whether a grant is one of what was used."""
    *mine, pattern = grant.split(" ", 2)
    *theirs, resource = use.split(" ", 2) if use else ("",)
    return mine == theirs and fnmatchcase(resource, pattern)


def read_uses(file: Path, word: Callable[[str], str]) -> frozenset[str]:
    """Read what `orbweaver.adapters.aws.recorder` wrote; `word` says what a resource is called."""
    if not file.exists():
        return frozenset()
    uses = map(json.loads, file.read_text().splitlines())
    return frozenset(
        f"{use['function'].rpartition('-')[2]} {use['action']} {word(use['resource'])}"
        for use in uses
    )


def save(book: Book, file: Path) -> None:
    """Keep what came of a stack."""
    kept = {"used": sorted(book.used), "granted": sorted(book.granted)}
    file.write_text(json.dumps(kept, indent=1))


def together(files: Iterable[Path]) -> Book:
    """Read what came of several stacks; the order does not matter."""
    books = [json.loads(file.read_text()) for file in files]
    return Book(
        used=frozenset(use for book in books for use in book["used"]),
        granted=frozenset(grant for book in books for grant in book["granted"]),
    )
