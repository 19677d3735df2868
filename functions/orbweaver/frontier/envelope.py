"""Fields that mean the same in every version of a message: version, crawl id, creation time.

They show whether an unreadable message is of a newer version, and must wait, or is invalid.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn, TypeGuard

from orbweaver.model.value import value_class
from orbweaver.model.version import NewerVersion

VERSION = 1
# Message attribute with the time since which a message waits for a newer version.
SINCE, SINCE_DIGITS_MAX = "waiting_since", 16
CRAWL_ID_CHARS_MAX = 128
# Ids become table keys, in which `#` separates parts. An invalid key would fail its whole batch.
ID = re.compile(r"[!\"$-~]+")


@value_class
class Newer:
    """A message of a newer version of Orbweaver, with a text about that version.

    `crawl` and `at_ms` (creation time) are None if they are unreadable.
    """

    said: str
    crawl: str | None = None
    at_ms: int | None = None


@value_class
class WaitingMessage:
    """A message body that waits unchanged for a newer version of Orbweaver, since `since_ms`."""

    body: str
    crawl: str
    since_ms: int


class InvalidError(Exception):
    """A field of a message does not match the schema."""


def refuse(reason: str) -> NoReturn:
    raise InvalidError(reason)


def newer(raw: dict[str, Any], known: int) -> Newer | None:
    """Return the envelope of a message if its version is above `known`, else None. Never raises."""
    version, crawl, at_ms = raw.get("v"), raw.get("crawl", raw.get("close")), raw.get("at")
    if not is_integer(version) or version <= known:
        return None
    return Newer(
        said=str(NewerVersion("a message", version, known)),
        crawl=crawl if is_id(crawl, CRAWL_ID_CHARS_MAX) else None,
        at_ms=at_ms if is_integer(at_ms) else None,
    )


def identity(raw: dict[str, Any], key: str, chars_max: int) -> str:
    """Return the id in field `key`. Raises InvalidError if it is no valid id."""
    value = raw.get(key)
    if not is_id(value, chars_max):
        refuse(f"{key} must be a string of 1 to {chars_max} ASCII characters, none a space or #")
    return value


def is_id(value: object, chars_max: int) -> TypeGuard[str]:
    return isinstance(value, str) and len(value) <= chars_max and bool(ID.fullmatch(value))


def integer(value: object, key: str) -> int:
    """Return `value` if it is a non-negative integer. Raises an InvalidError that names `key`."""
    if not is_integer(value):
        refuse(f"{key} must be an integer from 0 to 2^53")
    return value


def is_integer(value: object) -> TypeGuard[int]:
    # Bool is an int in Python, but no number in JSON.
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53
