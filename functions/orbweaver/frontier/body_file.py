"""A segment: what is stored of the pages of one crawl by one invocation, as one file.

It is a WARC file (`frontier/warc.py`), and a page's record says which part of it is the page's.
Names never repeat, so a file is written once. One that no record means, since its invocation died
too soon or another one had been faster, is deleted with all others after its retention.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from io import BytesIO
from typing import TYPE_CHECKING, Any, TypeAlias

from orbweaver.frontier import warc
from orbweaver.model.page_record import PageRecord, day_of

if TYPE_CHECKING:
    from random import Random

    from orbweaver.model.http_exchange import Response

PREFIX = "bodies/"
# Where a part begins, and how many bytes it has.
Span: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The answer and the text of a page, and a picture of it, each as a record to store."""

    url: str
    response: bytes | None = None
    conversion: bytes | None = None
    picture: bytes | None = None

    @property
    def size(self) -> int:
        """How many bytes are to be stored."""
        return sum(map(len, filter(None, (self.response, self.conversion, self.picture))))


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyPlace:
    """Where what is stored of a page lies."""

    key: str
    body: Span | None = None
    text: Span | None = None
    picture: Span | None = None


def folder_of(crawl_id: str) -> str:
    """Name the folder that holds the segments of a crawl."""
    return f"{PREFIX}{crawl_id}/"


def kept_of(
    url: str,
    at_ms: int,
    *,
    answer: Response,
    body: bytes | None,
    document: Mapping[str, Any] | None,
) -> Kept | None:
    """Make records of an answer with this body, and of what was made of it; None for neither."""
    if body is None and document is None:
        return None
    response = conversion = None
    if body is not None:
        response = warc.response(
            url,
            at_ms,
            status=answer.status,
            headers=answer.headers,
            body=body,
            truncated=answer.truncated,
            octets=answer.octets,
            asked=answer.asked,
        )
    if document is not None:
        conversion = warc.conversion(url, at_ms, document, stored=body is not None)
    return Kept(url=url, response=response, conversion=conversion)


def pictured(kept: Kept | None, url: str, at_ms: int, image: bytes | None) -> Kept | None:
    """Add a picture to what is stored of a page, if its body is."""
    if kept is None or kept.response is None or image is None:
        return kept
    return replace(kept, picture=warc.picture(url, at_ms, image))


class Segment:
    """A file that is being filled."""

    def __init__(self, crawl_id: str, at_ms: int, random: Random) -> None:
        name = f"{random.getrandbits(128):032x}.warc.gz"
        self.key = f"{folder_of(crawl_id)}dt={day_of(at_ms)}/{name}"
        about = {"software": "orbweaver", "format": warc.VERSION, "isPartOf": crawl_id}
        # One growing piece of memory, which is handed out as it is: to join many takes it twice.
        self._whole = BytesIO()
        self._whole.write(warc.warcinfo(name, at_ms, about))

    @property
    def size(self) -> int:
        """How long the file is so far."""
        return self._whole.tell()

    def add(self, kept: Kept) -> BodyPlace:
        """Append what is stored of a page."""
        body, text = self._append(kept.response), self._append(kept.conversion)
        picture = self._append(kept.picture)
        return BodyPlace(key=self.key, body=body, text=text, picture=picture)

    def _append(self, member: bytes | None) -> Span | None:
        if member is None:
            return None
        span = (self.size, len(member))
        self._whole.write(member)
        return span

    def whole(self) -> bytes:
        """Return the file, to which nothing is added any more."""
        return self._whole.getvalue()


def located(record: PageRecord, place: BodyPlace) -> PageRecord:
    """Write into a record where what is stored of its page lies."""
    body, text = place.body or (None, None), place.text or (None, None)
    picture = place.picture or (None, None)
    return replace(
        record,
        body_key=place.key,
        body_offset=body[0],
        body_length=body[1],
        text_offset=text[0],
        text_length=text[1],
        screenshot_offset=picture[0],
        screenshot_length=picture[1],
    )
