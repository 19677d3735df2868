"""Check the versions of stored and queued data before reading them.

Rules
- A layout has a version number, `v`. Without it the version is 1. It is checked first.
- Fields may be added without a new number, because older code ignores unknown fields. Data that
  older code would misread, including a new value of an enumeration, needs a new number.
- A writer states the lowest version that can read its data, so that a rollback leaves as little
  data waiting as possible.
- Newer data is not an error. It waits unchanged for a deployment that can read it
  (docs/upgrade.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

E = TypeVar("E", bound=StrEnum)
FIELD = "v"
FIRST = 1
# Beginning of each message about newer data, and the remedy.
NEWER = "stored by a newer version"
REMEDY = "deploy that version or newer"


class NewerVersion(Exception):
    """Data has a newer version. `version` is None if even that is unreadable."""

    def __init__(self, what: str, version: int | None, known: int) -> None:
        """Take a noun with its article, its version, and the newest readable version."""
        number = "unknown" if version is None else str(version)
        super().__init__(
            f"{NEWER}: {what} of version {number}, but this version reads up to {known}"
        )
        self.version = version


def check(fields: Mapping[str, object], what: str, known: int) -> None:
    """Raise NewerVersion if the version of the fields is above `known`."""
    version = fields.get(FIELD, FIRST)
    if isinstance(version, int) and version > known:
        raise NewerVersion(what, version, known)


def one_of(kind: type[E], value: str, what: str, known: int) -> E:
    """Parse a value of an enumeration. Raises NewerVersion for an unknown one."""
    try:
        return kind(value)
    except ValueError as error:
        raise NewerVersion(what, None, known) from error
