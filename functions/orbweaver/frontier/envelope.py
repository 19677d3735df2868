"""The envelope of a message: version, crawl and time, which mean the same in every version.

`v` is the version, `crawl` (or `close`) the id of the crawl, `at` when the message was made, in
milliseconds. They tell a body of a newer version, which waits in the fairness group of its crawl,
from one that can never succeed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, NoReturn, TypeGuard

from orbweaver.model.version import NewerVersion

VERSION = 1
# Of packs that have a place in a backlog.
VERSION_PLACED = 2
# Of packs whose URLs are not claimed yet.
VERSION_LATE = 3
# The attribute, beside the body, that says since when a message waits for a newer version.
SINCE, SINCE_DIGITS_MAX = "waiting_since", 16
CRAWL_ID_CHARS_MAX = 128
# Ids become keys of tables, where `#` sets parts apart: one that no table takes, or that names
# something else there, would bring down the batch it came in.
ID = re.compile(r"[!\"$-~]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Newer:
    """A body of a newer version; crawl and time are None where they cannot be read."""

    said: str
    crawl: str | None = None
    at_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingMessage:
    """A body that waits, as it is, for a newer version; since when it does."""

    body: str
    crawl: str
    since_ms: int


class InvalidError(Exception):
    """A field that breaks the schema."""


def refuse(reason: str) -> NoReturn:
    """Raise InvalidError."""
    raise InvalidError(reason)


def newer(raw: dict[str, Any], known: int) -> Newer | None:
    """Read the envelope of a newer version; None for what is none. Never raises."""
    version, crawl, at_ms = raw.get("v"), raw.get("crawl", raw.get("close")), raw.get("at")
    if not is_integer(version) or version <= known:
        return None
    return Newer(
        said=str(NewerVersion("a message", version, known)),
        crawl=crawl if is_id(crawl, CRAWL_ID_CHARS_MAX) else None,
        at_ms=at_ms if is_integer(at_ms) else None,
    )


def identity(raw: dict[str, Any], key: str, chars_max: int) -> str:
    """Read an id; raises InvalidError."""
    value = raw.get(key)
    if not is_id(value, chars_max):
        refuse(f"{key} must be a string of 1 to {chars_max} ASCII characters, none a space or #")
    return value


def is_id(value: object, chars_max: int) -> TypeGuard[str]:
    """Whether this may be an id."""
    return isinstance(value, str) and len(value) <= chars_max and bool(ID.fullmatch(value))


def integer(value: object, key: str) -> int:
    """Read a number that is not negative; raises InvalidError."""
    if not is_integer(value):
        refuse(f"{key} must be an integer from 0 to 2^53")
    return value


def is_integer(value: object) -> TypeGuard[int]:
    """Whether this is a number of the kind; bool is an int in Python, and no number in JSON."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53
