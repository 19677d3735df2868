"""Trace of a simulation: a running hash of every step, and event counts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from hashlib import blake2b

# A scenario takes a few thousand steps. One in thousands takes a hundred times as many: a fifth of
# all acknowledgements is lost for hours while a host is down, and each loss creates a copy of a
# pack (batch of URLs).
STEPS_MAX = 300_000


class Endless(Exception):
    """Too many steps without an end."""


@dataclass(slots=True)
class Trace:
    """Running hash and counts of all events."""

    digest: object = field(default_factory=lambda: blake2b(digest_size=16))
    counts: Counter[str] = field(default_factory=Counter)
    lines: list[str] | None = None
    steps: int = 0
    steps_max: int = STEPS_MAX

    def note(self, line: str) -> None:
        self.steps += 1
        self.digest.update(line.encode())  # type: ignore[attr-defined]
        if self.lines is not None:
            self.lines.append(line)

    @property
    def endless(self) -> bool:
        return self.steps > self.steps_max

    @property
    def hash(self) -> str:
        return self.digest.hexdigest()  # type: ignore[attr-defined,no-any-return]
