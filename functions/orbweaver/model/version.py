"""Versions of what is stored or queued: read first, and understood up to a bound.

Rules
- A layout has a number, `v`; what has none is of version 1. Nothing else is interpreted before it.
- Fields may be added without a new number: they are passed over by code that does not know them.
  What code that does not know it would misread, a value of an enumeration too, needs a new one.
- A writer states the lowest version that can read what it writes, so that a rollback leaves as
  little as possible to wait.
- What is newer than the reader is no fault: it waits as it is for a deployment that can read it
  (docs/upgrade.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

E = TypeVar("E", bound=StrEnum)
FIELD = "v"
FIRST = 1
# How every text about something newer begins, and what is to be done about it.
NEWER = "stored by a newer version"
REMEDY = "deploy that version or newer"


class NewerVersion(Exception):
    """Something was written by a newer version; `version` is None where even that is unreadable."""

    def __init__(self, what: str, version: int | None, known: int) -> None:
        """Take a noun with its article, its version, and the newest one that is read here."""
        number = "unknown" if version is None else str(version)
        super().__init__(f"{NEWER}: {what} of version {number}, and up to {known} is read here")
        self.version = version


def check(fields: Mapping[str, object], what: str, known: int) -> None:
    """Raise NewerVersion for fields of a version above `known`."""
    version = fields.get(FIELD, FIRST)
    if isinstance(version, int) and version > known:
        raise NewerVersion(what, version, known)


def one_of(kind: type[E], value: str, what: str, known: int) -> E:
    """Read a value of an enumeration; NewerVersion for one that is not known here."""
    try:
        return kind(value)
    except ValueError as error:
        raise NewerVersion(what, None, known) from error
