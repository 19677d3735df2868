"""Define the errors of ports: interfaces to storage, queues and the network."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from orbweaver.model.version import NewerVersion

NOTHING: Mapping[str, int] = MappingProxyType({})
_PACKAGE = "/orbweaver/"
# Type that pyo3 raises when a Rust library panics. It derives from BaseException.
_PANIC = "PanicException"


class PortError(Exception):
    """A call to storage, a queue or the network failed."""


class Transient(PortError):
    """A retry can succeed: the call was throttled, timed out or conflicted with another."""


class Permanent(PortError):
    """A retry will fail too: the call was denied, or its data is missing or invalid."""


def is_port_error(error: BaseException) -> bool:
    """True if all errors are port errors, also those inside an ExceptionGroup."""
    if isinstance(error, BaseExceptionGroup):
        return error.split(PortError)[1] is None
    return isinstance(error, PortError)


def is_fault(error: BaseException) -> bool:
    """True for a bug in this program: not an error of a port, and not an exit."""
    if type(error).__name__ == _PANIC:
        return True
    return isinstance(error, Exception) and not is_port_error(error)


def type_and_place(error: BaseException) -> str:
    """Return the type of an exception and the last line of this package in its traceback."""
    known = getattr(error, "type_and_place", None)  # set for an exception of another process
    if known is not None:
        return str(known)
    kind = type(error).__name__
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        _, package, module = frame.filename.rpartition(_PACKAGE)
        if package:
            return f"{kind} in {module}, line {frame.lineno}"
    return kind


class StoreError(PortError):
    """The file of a local store is unusable. The message names the file and the fix."""


class StoredNewer(PortError):
    """A newer version stored the data. Nothing changes the data until that version reads it."""


@contextmanager
def readable() -> Iterator[None]:
    """Open a context that converts NewerVersion to StoredNewer."""
    try:
        yield
    except NewerVersion as error:
        raise StoredNewer(str(error)) from error


class TooLarge(Permanent):
    """Data exceeds the caller's limit."""


def check_size(what: str, size: int, bytes_max: int | None) -> None:
    if bytes_max is not None and size > bytes_max:
        raise TooLarge(f"{what} has {size:,} bytes, and at most {bytes_max:,} are read")


def check_cut(what: str, part: bytes, length: int) -> bytes:
    """Return `part`, a part of the file `what`. Raises Permanent if its length is not `length`."""
    if len(part) != length:
        raise Permanent(f"{what}: {length:,} bytes requested, only {len(part):,} exist")
    return part


class ControlError(Exception):
    """A request cannot be fulfilled. The message contains the reason and an alternative."""


class UnknownCrawl(ControlError):
    """No crawl has this id or name."""


class Conflict(ControlError):
    """The crawl's state does not allow the request, or its id belongs to another crawl."""
