"""Encode a position in a paginated listing as a text (cursor) that only this listing accepts."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, TypeVar

T = TypeVar("T", bound=tuple[Any, ...])
# Version of cursors. A cursor has a checksum over its parts and the listing (route, crawl, filter).
# It detects a cursor that was truncated, changed or passed to another listing. The checksum has no
# key. A forged cursor grants no access, because its parts are validated like parameters.
VERSION = b"1"
SUM_BYTES = 9  # with the version's byte, base64 has no padding in the middle
CHARS_MAX = 1_000


class CursorError(ValueError):
    """The text is not a cursor of this listing."""


def encode(listing: Sequence[str], place: Sequence[str | int]) -> str:
    body = json.dumps(list(place), separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(_sum(listing, body) + body).rstrip(b"=").decode()


def decode(listing: Sequence[str], text: str | None, first: T) -> T:
    """Decode a cursor to a position in a listing. None: the position `first`.

    Raises CursorError for a text that `encode` did not create for this listing.
    """
    if text is None:
        return first
    if len(text) > CHARS_MAX or not text.isascii():
        raise CursorError
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise CursorError from error
    body = raw[SUM_BYTES:]
    if raw[:SUM_BYTES] != _sum(listing, body):
        raise CursorError
    place = _place(body, first)
    # Unused bits of the last base64 character must be zero, so each position has one cursor.
    if encode(listing, place) != text:
        raise CursorError
    return place


def _place(body: bytes, first: T) -> T:
    try:
        place = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise CursorError from error
    # A position has as many parts as `first`, of the same types. Its strings are ASCII, like all
    # keys.
    if not isinstance(place, list) or [*map(type, place)] != [*map(type, first)]:
        raise CursorError
    if not all(part.isascii() for part in place if isinstance(part, str)):
        raise CursorError
    return type(first)(place)


def _sum(listing: Sequence[str], body: bytes) -> bytes:
    said = VERSION + json.dumps(list(listing)).encode() + body
    return blake2b(said, digest_size=SUM_BYTES).digest()
