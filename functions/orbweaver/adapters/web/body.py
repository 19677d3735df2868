"""Bodies: which are read, how far, how fast, and what becomes of those that are not.

Rules:

- Only a 2xx answer of an accepted type, or of none that says anything, has its body read; its
  first bytes then say what it is (`parsing/sniffing.py`), and what is no page is left there.
- More than a little of one is read in its place among large ones (`large_bodies`).
- A body is cut at its limit in decoded bytes; the connection is closed then. Where the crawl has a
  limit of bytes, a body that fills its room asks for more first.
- A coded body that ends early is kept and marked as truncated where the server meant that to be
  all, and is a dropped connection where the connection's end was the body's. One that is not coded
  is kept there too, and marked, where that end may have been an accident (`http_wire`).
- A body that comes at less than `rate_bytes_min` a second on average, once it has been coming for
  `rate_after_s`, is given up: the idle limit alone lets a server hold us for the whole total time.
- What is left of an unread answer is read away if it is small, to keep the connection, and
  dropped with it if it is not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orbweaver.adapters.web.deadline import Deadline
from orbweaver.adapters.web.decompression import CodingError, Decoding, codings_of
from orbweaver.adapters.web.errors import FAILURES, DroppedError
from orbweaver.adapters.web.large_bodies import SMALL_BYTES, LargeBody
from orbweaver.model.http_exchange import Request
from orbweaver.parsing.sniffing import ANY_TYPE, HEAD_BYTES, HTML_TYPES, kind_of

if TYPE_CHECKING:
    import aiohttp

DRAIN_BYTES_MAX = 65_536


class TooSlowError(TimeoutError):
    """A body that comes too slowly to wait for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """How slow a body may be."""

    bytes_min: int = 100  # a second, as they come over the wire
    after_s: float = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """What was read: decoded bytes, None where they are not wanted, and whether there was more."""

    data: bytes | None = None
    truncated: bool = False


async def read(
    answer: aiohttp.ClientResponse,
    headers: dict[str, str],
    request: Request,
    deadline: Deadline,
    rate: Rate,
    large: LargeBody,
) -> Body:
    """Read a body up to its limit; its place is taken, if it is a large one."""
    coded = codings_of(headers.get("content-encoding"), headers.get("transfer-encoding"))
    content, most = answer.content, request.body_bytes_max
    if not coded and content.is_eof() and content.total_bytes <= room_of(request):
        return Body(data=content.read_nowait())  # all of it is here: there is nothing to leave
    decoding = Decoding(coded, most, halts_at=min(SMALL_BYTES, room_of(request)))
    clock = asyncio.get_running_loop().time
    began_s, size = clock(), 0
    # What is read in the hope for a page is left as soon as it turns out to be none.
    sniffed = HTML_TYPES.isdisjoint(request.accept) or ANY_TYPE in request.accept
    while chunk := await content.readany():
        deadline.heard()
        size += len(chunk)
        taken_s = clock() - began_s
        if taken_s > rate.after_s and size < rate.bytes_min * taken_s:
            text = f"{size} bytes of the body within {taken_s:.0f} s are too few"
            raise TooSlowError(text)
        goes_on, waited_s = await _fed(decoding, chunk, request, large, deadline)
        began_s += waited_s
        if not goes_on:
            answer.close()
            return Body(data=decoding.body, truncated=True)
        if not sniffed and len(head := decoding.head(HEAD_BYTES)) == HEAD_BYTES:
            sniffed = True
            if kind_of(headers, head) not in request.accept:
                answer.close()
                return Body(data=head, truncated=True)
    body = decoding.body
    if not decoding.complete:
        if not framed(headers):
            raise DroppedError("the connection was closed within the body")
        if not body:
            raise CodingError("the body ends before anything of it could be decoded")
    return Body(data=body, truncated=not decoding.complete)


async def _fed(
    decoding: Decoding, chunk: bytes, request: Request, large: LargeBody, deadline: Deadline
) -> tuple[bool, float]:
    """Decode a chunk, of a large body in its place; for how many seconds it was waited for that."""
    goes_on = decoding.feed(chunk)
    if not decoding.halted and not _fills_room(decoding, request):
        return goes_on, 0.0
    clock = asyncio.get_running_loop().time
    began_s = clock()
    deadline.hold()  # its server is not silent: nothing of it is read
    while decoding.halted or _fills_room(decoding, request):
        if request.room is not None:
            await request.room.grow(decoding.size)
            if _fills_room(decoding, request):
                decoding.cut_at(room_of(request))
        if decoding.cut:
            goes_on = False
            break
        if decoding.size > SMALL_BYTES and not large.taken:
            await large.take()
        room = room_of(request)
        goes_on = decoding.go_on(halts_at=room if large.taken else min(room, SMALL_BYTES))
    deadline.heard()
    return goes_on, clock() - began_s


async def drain(
    answer: aiohttp.ClientResponse,
    headers: dict[str, str],
    deadline: Deadline,
    drain_s: float,
    bytes_max: int = DRAIN_BYTES_MAX,
    *,
    keep: bool = False,
) -> Body:
    """Read away what is left of an answer if it is little, else close the connection.

    `keep` keeps the result, to be looked at; that it is broken off is no failure then.
    """
    coded = codings_of(headers.get("content-encoding"), headers.get("transfer-encoding"))
    kept: Decoding | None = None
    until = asyncio.get_running_loop().time() + drain_s
    until = min(until, deadline.until_s)
    deadline.release()  # the head is here: the answer stands, whatever becomes of the rest
    little = framed(headers) and (answer.content_length or 0) <= bytes_max
    left = bytes_max if little else 0
    try:
        async with asyncio.timeout_at(until):
            kept = Decoding(coded, bytes_max) if keep else None
            while left > 0 and (chunk := await answer.content.readany()):
                left -= len(chunk)
                if kept is not None and not kept.feed(chunk):
                    break
    except FAILURES:
        answer.close()
    if not answer.content.at_eof():
        answer.close()
    return Body() if kept is None else Body(data=kept.body, truncated=kept.cut)


def _fills_room(decoding: Decoding, request: Request) -> bool:
    return min(decoding.size, request.body_bytes_max) > room_of(request)


def room_of(request: Request) -> int:
    """Return how many decoded bytes a body may have before its reader asks for more room."""
    most = request.body_bytes_max
    return most if request.room is None else min(most, request.room.bytes_max)


def framed(headers: Mapping[str, str]) -> bool:
    """Whether a body has an end of its own; otherwise it is the end of the connection."""
    return "content-length" in headers or "transfer-encoding" in headers
