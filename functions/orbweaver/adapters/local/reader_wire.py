"""Messages between a worker and its child process: length-prefixed pickles over a socket.

The worker sends a job without its body, then the body. The child sends `PageReading`s, then a
`ReadingEnd`.
"""

from __future__ import annotations

import io
import pickle
import struct
from typing import Any

from orbweaver.model.value import value_class

LENGTH = struct.Struct(">Q")
PIECE_BYTES = 262_144
SAID_BYTES_MAX = 64 * 1024 * 1024

# Types that the worker decodes. No others, because the child processes untrusted pages.
_ALLOWED = frozenset(
    {
        ("orbweaver.worker.page_reading", "PageReading"),
        ("orbweaver.worker.page_reading", "ReadingStage"),
        ("orbweaver.model.api_source", "PagingFacts"),
        ("orbweaver.parsing.page", "Page"),
        ("orbweaver.parsing.link_rows", "LinkRows"),
        ("orbweaver.model.item", "Item"),
        ("orbweaver.frontier.body_file", "Kept"),
        ("orbweaver.adapters.local.reader_wire", "ReadingEnd"),
    }
)


@value_class
class ReadingEnd:
    """Last message of the child about a page.

    `why`: reason or traceback if the page is not complete.
    """

    why: str | None = None
    fault: str | None = None  # type and place of an exception
    retires: bool = False  # the child exits now, and the next page needs a new one


def packed(value: Any) -> bytes:
    return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)


def decode_response(said: bytes) -> Any:
    """Decode a value from the child. Raises UnpicklingError for types other than `_ALLOWED`."""
    return _SafeUnpickler(io.BytesIO(said)).load()


def decode_request(said: bytes) -> Any:
    return pickle.loads(said)  # noqa: S301 - from the process that started this one


class _SafeUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"{module}.{name} is nothing that a reader says")
        return super().find_class(module, name)
