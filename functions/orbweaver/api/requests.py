"""Requests of the API: parameters, headers, bodies, and the cursors of listings."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from hashlib import blake2b
from typing import Annotated, Any, TypeVar

from orbweaver.control.definition_keys import schema_of_definition
from orbweaver.control.json_reader import Fits
from orbweaver.frontier.envelope import CRAWL_ID_CHARS_MAX
from orbweaver.frontier.messages import REFERENCE_CHARS_MAX
from orbweaver.model.crawl import State
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.value import value_class

SEEDS_FOLDER = "seeds/"
CRAWL_EXAMPLE = "example.com-20261121-090000"
CrawlId = Annotated[
    str,
    Fits(
        says="the id of a crawl",
        low=1,
        high=CRAWL_ID_CHARS_MAX,
        pattern="[a-z0-9._-]+",
        example=CRAWL_EXAMPLE,
    ),
]
Cursor = Annotated[
    str | None, Fits(says="`next` of the previous page, unchanged; without it, the first page")
]
T = TypeVar("T", bound=tuple[Any, ...])
# Version of cursors. A cursor has a checksum over its parts and the listing (route, crawl, filter).
# It detects a cursor that was truncated, changed or passed to another listing. The checksum has no
# key. A forged cursor grants no access, because its parts are validated like parameters.
CURSOR_VERSION = b"1"
SUM_BYTES = 9  # with the version's byte, base64 has no padding in the middle
CURSOR_CHARS_MAX = 1_000


class YesNo(StrEnum):
    """Yes or no."""

    YES = "yes"
    NO = "no"


Url = Annotated[str, Fits(low=1, high=REFERENCE_CHARS_MAX, example="https://example.com/")]
Definition = Annotated[Mapping[str, Any], Fits(schema=schema_of_definition())]
# Not validated on decoding, because this request lists the mistakes of a definition.
DefinitionTried = Annotated[Mapping[str, Any], Fits(schema={"type": "object"})]


@value_class
class OfCrawl:
    """The id of a crawl."""

    id: CrawlId


@value_class
class Keyed:
    """An idempotency key of the client: requests with the same key count as one."""

    idempotency_key: Annotated[
        str | None,
        Fits(says="1 to 255 printable ASCII characters", low=1, high=255, pattern="[!-~]+"),
    ] = None


@value_class
class Listing:
    """Query parameters that filter a list of crawls."""

    state: Annotated[State | None, Fits(says="only crawls in this state")] = None
    limit: Annotated[int, Fits(says="crawls a page", low=1, high=100)] = 50
    cursor: Cursor = None


@value_class
class Overviewed:
    """Query parameters of an overview: the newest run of each name, or all runs of one name."""

    name: Annotated[str | None, Fits(says="all runs of this name", low=1, high=300)] = None
    begins: Annotated[
        str | None, Fits(says="only names that begin so", low=1, high=300, example="shop")
    ] = None
    state: Annotated[State | None, Fits(says="only crawls in this state")] = None
    day: Annotated[
        str | None,
        Fits(says="only crawls that began on this day", pattern=r"\d{4}-\d\d-\d\d"),
    ] = None
    zone: Annotated[
        str | None,
        Fits(says="time zone of `day`; default: UTC", low=1, high=60, example="Europe/Berlin"),
    ] = None
    limit: Annotated[int, Fits(says="crawls a page", low=1, high=100)] = 50
    cursor: Cursor = None


@value_class
class HostAsked:
    """A host, and optionally a URL on it whose robots.txt decision is wanted."""

    host: Annotated[str, Fits(says="a name, or a URL's beginning", low=1, high=300)]
    url: Annotated[
        str | None, Fits(says="a URL that robots.txt decides on", low=1, high=REFERENCE_CHARS_MAX)
    ] = None


@value_class
class Records:
    """Query parameters of a list of page records."""

    outcome: Annotated[Outcome | None, Fits(says="only pages that ended so")] = None
    limit: Annotated[int, Fits(says="records a page, at most", low=1, high=1_000)] = 100
    cursor: Cursor = None


@value_class
class Items:
    """Query parameters of a list of items."""

    rule: Annotated[
        str | None, Fits(says="only what this rule found", low=1, high=100, pattern="[!-~]+")
    ] = None
    valid: Annotated[
        YesNo | None, Fits(says="only what is as its rule asks, or only what is not")
    ] = None
    limit: Annotated[
        int, Fits(says="items a page, and then the rest of their URL's", low=1, high=1_000)
    ] = 100
    cursor: Cursor = None


@value_class
class Texts:
    """Query parameters of a list of main texts."""

    limit: Annotated[int, Fits(says="texts a page, at most", low=1, high=100)] = 20
    cursor: Cursor = None


@value_class
class Exported:
    """Query parameters of a list of exported files."""

    limit: Annotated[int, Fits(says="files a page, at most", low=1, high=500)] = 100
    cursor: Cursor = None


@value_class
class HostsShown:
    """A host to show in addition to the hosts of the seeds."""

    host: Annotated[str | None, Fits(says="another host, as URLs spell it", low=1, high=300)] = None


@value_class
class Asking:
    """A URL to explain. Without `crawl`, the most likely crawl is used."""

    url: Annotated[str, Fits(says="the URL", low=1, high=REFERENCE_CHARS_MAX)]
    crawl: CrawlId | None = None


@value_class
class Seeds:
    """URLs for a running crawl: give `url`, `urls` or `s3`, and optionally `crawl`."""

    url: Url | None = None
    urls: Annotated[tuple[Url, ...] | None, Fits(says="at most 10,000 of them", low=1)] = None
    s3: Annotated[
        str | None,
        Fits(
            says="a file of the stack's bucket below seeds/: a URL a line, # begins a comment",
            low=len(SEEDS_FOLDER) + 1,
            high=1_000,
            pattern=rf"{SEEDS_FOLDER}[!-~]+",
            example="seeds/shops.txt",
        ),
    ] = None
    crawl: CrawlId = "default"


@value_class
class Again:
    """Selects which failed URLs to retry. The default is all."""

    reasons: Annotated[tuple[Reason, ...], Fits(says="only what failed for one of these")] = ()
    host: Annotated[
        str | None, Fits(says="only what is of this host", low=1, high=300, example="example.com")
    ] = None


class CursorError(ValueError):
    """The text is not a cursor of this listing."""


def encode_cursor(listing: Sequence[str], place: Sequence[str | int]) -> str:
    body = json.dumps(list(place), separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(_sum(listing, body) + body).rstrip(b"=").decode()


def decode_cursor(listing: Sequence[str], text: str | None, first: T) -> T:
    """Decode a cursor to a position in a listing. None: the position `first`.

    Raises CursorError for a text that `encode_cursor` did not create for this listing.
    """
    if text is None:
        return first
    if len(text) > CURSOR_CHARS_MAX or not text.isascii():
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
    if encode_cursor(listing, place) != text:
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
    said = CURSOR_VERSION + json.dumps(list(listing)).encode() + body
    return blake2b(said, digest_size=SUM_BYTES).digest()
