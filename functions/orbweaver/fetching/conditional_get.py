"""Request a page only if it has changed since an earlier run (RFC 9110, section 13)."""

from __future__ import annotations

from dataclasses import replace

from orbweaver.model.crawl import Crawl
from orbweaver.model.crawl_settings import RenderMode
from orbweaver.model.http_exchange import Condition
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import HEADER_CHARS_MAX, PageRecord
from orbweaver.model.render_rules import mode_of
from orbweaver.model.request_url import is_post
from orbweaver.model.target import Target


def condition_of(crawl: Crawl, target: Target, before: PageRecord | None) -> Condition | None:
    """Return the condition of a URL's request, or None if the page must be requested in full.

    `before` is the page's record of an earlier run.
    """
    # If the crawl redacts, the earlier record may contain unredacted data.
    if before is None or before.reason not in (Reason.OK, Reason.NOT_MODIFIED) or crawl.redacted:
        return None
    # An unchanged page comes without a body, so its links cannot be read.
    if before.links != 0 and target.depth < crawl.depth_max:
        return None
    # An unchanged page of an API would not name the next page. A POST has no conditions.
    unconditional = target.api is not None or is_post(target.url)
    # The page's scripts may load resources that have changed.
    if unconditional or before.rendered or mode_of(crawl, target.url) is RenderMode.ALWAYS:
        return None
    # A run that retries failed URLs requests pages in full. So does a crawl that stores texts or
    # links, if the earlier record has none.
    lacks_text = crawl.texts and before.text_offset is None
    if crawl.retry_of is not None or lacks_text or (crawl.links and before.links_offset is None):
        return None
    condition = Condition(
        etag=_untruncated(before.etag), last_modified=_untruncated(before.last_modified)
    )
    return condition if condition.etag or condition.last_modified else None


def complete_unchanged(record: PageRecord, before: PageRecord) -> PageRecord:
    """Copy fields of `before`, the record of an earlier run, to the record of an unchanged page."""
    if record.outcome is not Outcome.UNCHANGED:
        return record
    return replace(
        record,
        content_type=before.content_type,
        charset=before.charset,
        bytes=0,
        title=before.title,
        description=before.description,
        language=before.language,
        canonical=before.canonical,
        links=before.links,
        h1=before.h1,
        sha256=before.sha256,
        etag=record.etag or before.etag,
        last_modified=record.last_modified or before.last_modified,
        body_key=before.body_key,
        body_offset=before.body_offset,
        body_length=before.body_length,
        text_offset=before.text_offset,
        text_length=before.text_length,
        items=before.items,
        items_invalid=before.items_invalid,
        extracted=before.extracted,
        cut=before.cut,
        needs_rendering=before.needs_rendering,
        rendered=before.rendered,
        screenshot_offset=before.screenshot_offset,
        screenshot_length=before.screenshot_length,
        render_why=before.render_why,
        links_offset=before.links_offset,
        links_length=before.links_length,
    )


def _untruncated(validator: str | None) -> str | None:
    # A record stores the first HEADER_CHARS_MAX characters of a header.
    return validator if validator and len(validator) < HEADER_CHARS_MAX else None
