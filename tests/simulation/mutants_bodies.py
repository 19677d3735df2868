"""Mutants of stored bodies."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from orbweaver.frontier import body_file
from orbweaver.model.errors import Transient
from orbweaver.worker import body_writer
from tests.simulation.mutant import mutants

_WHOLE_PUT = body_writer.BodyWriter.__dict__["put"]
_WHOLE_ADD = body_file.Segment.__dict__["_append"]


def _writing(store: Callable[[Any, Any], Awaitable[None]]) -> Any:
    """Write segments differently: `store` gets the files and the content."""

    async def write(self: Any, whole: Any) -> None:
        await store(self._files, whole)

    return write


async def _later(files: Any, whole: Any) -> None:
    """Write the file after journals refer to it."""
    writing = asyncio.get_running_loop().create_task(files.put(whole.key, whole.whole()))
    writing.add_done_callback(lambda done: done.cancelled() or done.exception())
    await asyncio.sleep(0)


async def _if_it_goes(files: Any, whole: Any) -> None:
    """Try once, and ignore a failure."""
    with suppress(Transient):
        await files.put(whole.key, whole.whole())


async def _shared(self: Any, _crawl_id: str, kept: Any) -> Any:
    return await _WHOLE_PUT(self, "all", kept)


def _from_the_first(self: Any, member: bytes | None) -> Any:
    """Count offsets from the first page, as if the file began there."""
    begin = vars(self).setdefault("_begin", self.size)
    span = _WHOLE_ADD(self, member)
    return None if span is None else (span[0] - begin, span[1])


MUTANTS = mutants(
    ("bodies: named before they are there", body_writer.BodyWriter, "_write", _writing(_later)),
    (
        "bodies: a file that fails is passed over",
        body_writer.BodyWriter,
        "_write",
        _writing(_if_it_goes),
    ),
    ("bodies: one file for all crawls", body_writer.BodyWriter, "put", _shared),
    ("bodies: places that are off", body_file.Segment, "_append", _from_the_first),
)
