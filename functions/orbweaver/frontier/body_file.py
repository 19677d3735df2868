"""Build segments: files with the stored content of one crawl's pages from one worker invocation.

A segment is a WARC file that is written once under a unique name. Page records refer to parts of
it. Without any page record, a segment is deleted after its retention. This happens if its worker
died, or if another worker stored its result first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from io import BytesIO
from typing import TYPE_CHECKING, Any, TypeAlias

from orbweaver.frontier import warc
from orbweaver.model.page_record import PageRecord, day_of
from orbweaver.model.value import value_class

if TYPE_CHECKING:
    from random import Random

    from orbweaver.model.http_exchange import Response

PREFIX = "bodies/"
# Offset and length of a part, in bytes.
Span: TypeAlias = tuple[int, int]


@value_class
class Kept:
    """Response, text, screenshot and links of a page, each as a WARC record to store.

    `sha256` is the digest of the response's body, in hexadecimal, if its record has that body.
    """

    url: str
    sha256: str | None = None
    response: bytes | None = None
    conversion: bytes | None = None
    screenshot: bytes | None = None
    links: bytes | None = None

    @property
    def size(self) -> int:
        parts = (self.response, self.conversion, self.screenshot, self.links)
        return sum(map(len, filter(None, parts)))


@value_class
class BodyLocation:
    """Location of a page's stored content: the file's key, and the byte range of each part."""

    key: str
    body: Span | None = None
    text: Span | None = None
    screenshot: Span | None = None
    links: Span | None = None


def folder_of(crawl_id: str) -> str:
    return f"{PREFIX}{crawl_id}/"


def kept_of(
    url: str,
    at_ms: int,
    *,
    answer: Response,
    body: bytes | None,
    document: Mapping[str, Any] | None,
) -> Kept | None:
    """Build WARC records of a response's body and texts. Return None if it has neither."""
    if body is None and document is None:
        return None
    response = conversion = own = None
    if body is not None:
        digest = sha256(body).digest()
        own = digest.hex() if body is answer.body else None
        response = warc.response(
            url,
            at_ms,
            status=answer.status,
            headers=answer.headers,
            body=body,
            truncated=answer.truncated,
            octets=answer.octets,
            asked=answer.asked,
            sha256=digest,
        )
    if document is not None:
        conversion = warc.conversion(url, at_ms, document, stored=body is not None)
    return Kept(url=url, sha256=own, response=response, conversion=conversion)


def with_screenshot(kept: Kept | None, url: str, at_ms: int, image: bytes | None) -> Kept | None:
    """Add a screenshot to a page's stored content, if its body is stored."""
    if kept is None or kept.response is None or image is None:
        return kept
    return replace(kept, screenshot=warc.screenshot_record(url, at_ms, image))


def with_links(kept: Kept | None, url: str, at_ms: int, document: Mapping[str, Any]) -> Kept:
    """Add links to a page's stored content, which may be nothing else."""
    return replace(kept or Kept(url=url), links=warc.links_record(url, at_ms, document))


class Segment:
    """A file of stored content to which pages are still added.

    The links of all pages are at the end of the file. So an export reads them by one request.
    """

    def __init__(self, crawl_id: str, at_ms: int, random: Random) -> None:
        name = f"{random.getrandbits(128):032x}.warc.gz"
        self.key = f"{folder_of(crawl_id)}dt={day_of(at_ms)}/{name}"
        about = {"software": "orbweaver", "format": warc.VERSION, "isPartOf": crawl_id}
        # One growing buffer, because joining many parts would need twice the memory.
        self._whole = BytesIO()
        self._whole.write(warc.warcinfo(name, at_ms, about))
        self._links = BytesIO()

    @property
    def size(self) -> int:
        return self._whole.tell() + self._links.tell()

    def add(self, kept: Kept) -> BodyLocation:
        """Add content of a page. Its links get their final location in `whole`."""
        body, text = self._append(kept.response), self._append(kept.conversion)
        picture, links = self._append(kept.screenshot), None
        if kept.links is not None:
            links = (self._links.tell(), len(kept.links))
            self._links.write(kept.links)
        return BodyLocation(key=self.key, body=body, text=text, screenshot=picture, links=links)

    def _append(self, member: bytes | None) -> Span | None:
        if member is None:
            return None
        span = (self._whole.tell(), len(member))
        self._whole.write(member)
        return span

    def final_location(self, location: BodyLocation) -> BodyLocation:
        """Return a location in the file to which nothing more is added."""
        if location.links is None:
            return location
        offset, length = location.links
        return replace(location, links=(self._whole.tell() + offset, length))

    def whole(self) -> bytes:
        links = self._links.getvalue()
        return self._whole.getvalue() + links if links else self._whole.getvalue()


def with_body_location(record: PageRecord, location: BodyLocation) -> PageRecord:
    body, text = location.body or (None, None), location.text or (None, None)
    picture, links = location.screenshot or (None, None), location.links or (None, None)
    return replace(
        record,
        body_key=location.key,
        body_offset=body[0],
        body_length=body[1],
        text_offset=text[0],
        text_length=text[1],
        screenshot_offset=picture[0],
        screenshot_length=picture[1],
        links_offset=links[0],
        links_length=links[1],
    )
