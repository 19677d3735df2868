"""Read the body of a response within limits on size, rate and time.

A body is read if the status is 2xx and the content type is accepted, missing or vague. If it has
more decoded bytes than the limit, it is truncated and the connection is closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from orbweaver.adapters.web.deadline import Deadline
from orbweaver.adapters.web.decompression import CodingError, Decoding, codings_of
from orbweaver.adapters.web.errors import FAILURES, DroppedError
from orbweaver.adapters.web.large_bodies import SMALL_BYTES, LargeBody
from orbweaver.model.http_exchange import Request
from orbweaver.model.value import value_class
from orbweaver.parsing.sniffing import ANY_TYPE, HEAD_BYTES, HTML_TYPES, kind_of

if TYPE_CHECKING:
    import aiohttp

DRAIN_BYTES_MAX = 65_536


class TooSlowError(TimeoutError):
    """The body arrives too slowly."""


@value_class
class Rate:
    """Minimum rate of a body, on average. It is enforced once `after_s` seconds have passed."""

    bytes_min: int = 100  # bytes on the wire per second
    after_s: float = 10.0


@value_class
class Body:
    """A decoded body. `data` is None if the body is not wanted."""

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
    """Read a body up to its limit.

    A large body waits until only a few others are being read (`large_bodies`).
    """
    coded = codings_of(headers.get("content-encoding"), headers.get("transfer-encoding"))
    content, most = answer.content, request.body_bytes_max
    if not coded and content.is_eof() and content.total_bytes <= room_of(request):
        return Body(data=content.read_nowait())  # the whole body has arrived
    decoding = Decoding(coded, most, halts_at=min(SMALL_BYTES, room_of(request)))
    clock = asyncio.get_running_loop().time
    began_s, size = clock(), 0
    # Stop reading once the first bytes show that the body is not a page.
    sniffed = HTML_TYPES.isdisjoint(request.accept) or ANY_TYPE in request.accept
    while chunk := await content.readany():
        deadline.note_activity()
        size += len(chunk)
        taken_s = clock() - began_s
        # With the idle limit alone, a server could hold a request for its total time.
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
    # An encoded body that ends early is kept as truncated if its end was marked. Otherwise the
    # connection was dropped.
    if not decoding.complete:
        if not framed(headers):
            raise DroppedError("the connection was closed within the body")
        if not body:
            raise CodingError("the body ends before anything of it could be decoded")
    return Body(data=body, truncated=not decoding.complete)


async def _fed(
    decoding: Decoding, chunk: bytes, request: Request, large: LargeBody, deadline: Deadline
) -> tuple[bool, float]:
    """Decode a chunk. Return True to read more, and the seconds spent waiting.

    It waits for other large bodies, or for bytes of the crawl's limit.
    """
    goes_on = decoding.feed(chunk)
    if not decoding.halted and not _fills_room(decoding, request):
        return goes_on, 0.0
    clock = asyncio.get_running_loop().time
    began_s = clock()
    deadline.hold()  # the server is not idle: its bytes are not being read
    # If the crawl has a byte limit, the body asks for more bytes than it reserved.
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
    deadline.note_activity()
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
    """Read the remaining body if it is small, so that the connection can be reused. Else close it.

    The bytes are dropped, or returned with `keep`, up to `bytes_max`. The call takes at most
    `drain_s` seconds.
    """
    coded = codings_of(headers.get("content-encoding"), headers.get("transfer-encoding"))
    kept: Decoding | None = None
    until = asyncio.get_running_loop().time() + drain_s
    until = min(until, deadline.until_s)
    deadline.release()  # the head has arrived, so a failure of the rest does not matter
    little = (keep or framed(headers)) and (answer.content_length or 0) <= bytes_max
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
    """Return how many decoded bytes the body can have before more must be reserved."""
    most = request.body_bytes_max
    return most if request.room is None else min(most, request.room.bytes_max)


def framed(headers: Mapping[str, str]) -> bool:
    """Whether the headers mark the end of the body. Otherwise the end of the connection ends it."""
    return "content-length" in headers or "transfer-encoding" in headers
