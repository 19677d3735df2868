"""Read a page's stored body, main text or screenshot, or the reason why there is none."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from orbweaver.frontier import warc
from orbweaver.model.page_record import PageRecord

if TYPE_CHECKING:
    from orbweaver.model.ports import Files


class PagePart(StrEnum):
    """A part of a page that has a WARC record of its own."""

    BODY = "body"
    TEXT = "text"
    SCREENSHOT = "screenshot"


class Missing(StrEnum):
    """Reason why a stored part of a page cannot be read."""

    NOT_KEPT = "is not stored"
    GONE = "is past its retention, or its file was deleted"
    FORGOTTEN = "was forgotten"


async def read_stored(files: Files, page: PageRecord, part: PagePart) -> warc.Record | Missing:
    """Read a stored part of a page. Raises WarcError if it is no valid record."""
    offset, length = {
        PagePart.BODY: (page.body_offset, page.body_length),
        PagePart.TEXT: (page.text_offset, page.text_length),
        PagePart.SCREENSHOT: (page.screenshot_offset, page.screenshot_length),
    }[part]
    if page.body_key is None or offset is None or length is None:
        return Missing.NOT_KEPT
    member = await files.cut(page.body_key, offset, length)
    if member is None:
        return Missing.GONE
    found = warc.read(member)
    return Missing.FORGOTTEN if warc.is_tombstone(found) else found
