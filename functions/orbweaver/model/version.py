"""Check the versions of stored and queued data before reading them.

The field `v` has the version, 1 if it is missing. Newer data is not an error: it waits unchanged
for a deployment that can read it (docs/upgrade.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

E = TypeVar("E", bound=StrEnum)
# A new field needs no new version, because older code ignores unknown fields. Data that older code
# would misread, such as a new value of an enumeration, needs one. A writer then states the lowest
# version that can read its data, so that a rollback leaves little data waiting.
FIELD = "v"
FIRST = 1
# Beginning of each message about newer data, and the fix.
NEWER = "stored by a newer version"
REMEDY = "deploy that version or newer"


class NewerVersion(Exception):
    """Data was stored by a newer version. `version` is None if it is unknown."""

    def __init__(self, what: str, version: int | None, known: int) -> None:
        """`what` names the data, such as "a journal". `known` is the newest readable version."""
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
