"""Errors of ports: how one says that it could not do what was asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from orbweaver.model.version import NewerVersion

NOTHING: Mapping[str, int] = MappingProxyType({})


class PortError(Exception):
    """A port could not do what was asked."""


class Transient(PortError):
    """It may work later: throttled, timed out, conflicting."""


class Permanent(PortError):
    """It will not work: denied, missing, invalid."""


class StoreError(PortError):
    """It is the file of a store that cannot be used; the text names it and says what to do."""


class StoredNewer(PortError):
    """It was stored by a newer version, which alone can read it; it is left as it is."""


@contextmanager
def readable() -> Iterator[None]:
    """Read what is stored; raises StoredNewer for what a newer version has stored."""
    try:
        yield
    except NewerVersion as error:
        raise StoredNewer(str(error)) from error


class TooLarge(Permanent):
    """It is larger than the caller can take."""


def check_size(what: str, size: int, bytes_max: int | None) -> None:
    """Raise TooLarge for what is larger than it may be."""
    if bytes_max is not None and size > bytes_max:
        raise TooLarge(f"{what} has {size:,} bytes, and at most {bytes_max:,} are read")


def check_cut(what: str, part: bytes, length: int) -> bytes:
    """Pass a part of a file through if it is as long as was asked; else raise Permanent."""
    if len(part) != length:
        raise Permanent(f"{what} has no such {length:,} bytes, but {len(part):,} of them")
    return part


class ControlError(Exception):
    """What was asked cannot be done; the text says why, and what can."""


class UnknownCrawl(ControlError):
    """No crawl has this id or name."""


class Conflict(ControlError):
    """The crawl is not in a state for that, or its id belongs to another crawl."""
