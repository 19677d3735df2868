"""The wire between a reader and its child: values, each behind its length, over a socket.

Down goes a job without its body, then the body; up come readings, then a `ReadingEnd`. The child
works on what strangers send, so of what it says only these types are made (`_SAID`).
"""

from __future__ import annotations

import io
import pickle
import struct
from dataclasses import dataclass
from typing import Any

LENGTH = struct.Struct(">Q")
PIECE_BYTES = 262_144
SAID_BYTES_MAX = 64 * 1024 * 1024

_SAID = frozenset(
    {
        ("orbweaver.worker.page_reading", "PageReading"),
        ("orbweaver.worker.page_reading", "ReadingStage"),
        ("orbweaver.parsing.page", "Page"),
        ("orbweaver.model.item", "Item"),
        ("orbweaver.frontier.body_file", "Kept"),
        ("orbweaver.adapters.local.reader_wire", "ReadingEnd"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingEnd:
    """A child is done with a page; `why` it broke off.

    `fault` is the type and place of an exception, if one was the cause; `why` is its traceback.
    `retires`: it ends now, and another one is to be started.
    """

    why: str | None = None
    fault: str | None = None
    retires: bool = False


def packed(value: Any) -> bytes:
    """Write a value."""
    return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)


def heard(said: bytes) -> Any:
    """Read what a child says; raises UnpicklingError where that is none of what it may say."""
    return _Hearing(io.BytesIO(said)).load()


def told(said: bytes) -> Any:
    """Read what the parent says."""
    return pickle.loads(said)  # noqa: S301 - from the process that started this one


class _Hearing(pickle.Unpickler):
    """Makes values of the types that a child may say, and of no other."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _SAID:
            raise pickle.UnpicklingError(f"{module}.{name} is nothing that a reader says")
        return super().find_class(module, name)
