"""Errors of ports: how one says that it could not do what was asked."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from orbweaver.model.version import NewerVersion

NOTHING: Mapping[str, int] = MappingProxyType({})
_PACKAGE = "/orbweaver/"
# The type that pyo3 raises when a library in Rust panics; it derives from BaseException.
_PANIC = "PanicException"


class PortError(Exception):
    """A port could not do what was asked."""


class Transient(PortError):
    """It may work later: throttled, timed out, conflicting."""


class Permanent(PortError):
    """It will not work: denied, missing, invalid."""


def is_port_error(error: BaseException) -> bool:
    """Return whether only ports failed; an ExceptionGroup counts if all of its errors do."""
    if isinstance(error, BaseExceptionGroup):
        return error.split(PortError)[1] is None
    return isinstance(error, PortError)


def is_fault(error: BaseException) -> bool:
    """Return whether an exception is a fault of processing: no port failed, and nothing ends."""
    if type(error).__name__ == _PANIC:
        return True
    return isinstance(error, Exception) and not is_port_error(error)


def type_and_place(error: BaseException) -> str:
    """Name the type of an exception and the last line of this package that it passed."""
    known = getattr(error, "type_and_place", None)  # of an exception in another process
    if known is not None:
        return str(known)
    kind = type(error).__name__
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        _, package, module = frame.filename.rpartition(_PACKAGE)
        if package:
            return f"{kind} in {module}, line {frame.lineno}"
    return kind


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
